"""Execution of a study: local, in shards, on a Ray cluster."""
