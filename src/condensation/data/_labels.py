"""Labels of classes as targets: the whole numbers 0 to K-1, one a sample, where the loss compares K classes."""

import numpy as np

from ..errors import InputError
from ..losses import Loss


def takes_labels(loss: Loss, outputs: int) -> bool:
    """Whether one number a sample is the label of its class: not for the squared error, where it is a target."""
    return loss.of_classes and outputs > 1


def as_targets(y: np.ndarray, outputs: int, loss: Loss, every: bool = False) -> np.ndarray:
    """Targets as a loss reads them: labels become rows of one 1 and zeros, all else stays what it is.

    Args:
        y: samples x outputs, or a label for each sample.
        outputs: of the network, one for each class.
        loss: which may compare classes.
        every: each class must have a sample.

    >>> as_targets(np.array([2, 0]), 3, Loss("cross_entropy"))
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    if loss.name == "exponential" and outputs == 1 and np.any(y == 0) and np.isin(y, (0, 1)).all():
        raise InputError(
            "the loss exponential is for labels of 1 and -1, and these are 0 and 1: of a label of 0 the loss is 1 "
            "whatever the output is. 2 * y - 1 would do"
        )
    if not takes_labels(loss, outputs) or y.ndim > 2 or (y.ndim == 2 and y.shape[1] != 1):
        return y
    labels = y.reshape(-1)
    wrong = ~((labels >= 0) & (labels < outputs) & (labels == np.floor(labels)))
    if wrong.any():
        raise InputError(
            f"labels of {outputs} classes are whole numbers from 0 to {outputs - 1}, but that of sample "
            f"{wrong.argmax()} is {labels[wrong.argmax()]:g}"
        )
    counts = np.bincount(labels.astype(int), minlength=outputs)
    if every and not counts.all():
        raise InputError(
            f"no sample has the label {counts.argmin()} of 0 to {outputs - 1}: number the classes without gaps and "
            f"give the network an output for each, or pass np.eye({outputs})[labels]"
        )
    targets = np.zeros((len(labels), outputs))
    targets[np.arange(len(labels)), labels.astype(int)] = 1
    return targets
