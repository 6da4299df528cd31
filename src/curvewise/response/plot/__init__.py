"""Pictures of response."""
