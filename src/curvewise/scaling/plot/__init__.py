"""Pictures of scaling laws."""
