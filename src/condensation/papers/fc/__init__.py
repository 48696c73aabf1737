"""The fully connected paper, a file a figure."""
