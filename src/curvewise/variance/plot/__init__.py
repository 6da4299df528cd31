"""Pictures of variance."""
