"""Readers of model files, one a format; none runs what a file holds. ``table`` tells the formats apart."""
