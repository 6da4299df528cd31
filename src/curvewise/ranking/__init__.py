"""Which of many checkpoints to fine-tune, from features alone."""
