"""Intervals and other statistics that more than one lens needs."""
