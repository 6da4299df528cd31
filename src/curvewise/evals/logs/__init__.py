"""Evaluation logs in the formats of the tools that write them, each read into blocks of scores."""
