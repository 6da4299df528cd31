"""Pictures of the evals lens."""
