"""Pictures of ranking."""
