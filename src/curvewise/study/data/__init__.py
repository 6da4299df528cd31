"""Data sets of a study."""
