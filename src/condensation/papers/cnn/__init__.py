"""The convolutional paper, a file a figure or two of one kind, and additional questions."""
