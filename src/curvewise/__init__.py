"""Judge learners by their curves, not by one number."""

__version__ = "0.1.0"
