"""The convolutional paper, a file a figure or two of one kind, and the questions of additional questions."""
