"""Features, probes and fine-tuning of checkpoints with torch."""
