"""Perturbations and measures of networks with torch."""
