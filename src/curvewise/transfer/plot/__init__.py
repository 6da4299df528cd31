"""Pictures of transfer."""
