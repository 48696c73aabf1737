"""The lines of attention before training: those of the values, and then of queries and keys."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from .._phrases import listed
from .._precision import precision
from ..activations import derivatives_at_zero, multiplicity
from ..errors import InputError
from ..losses import Loss
from ..networks import Attention, Model
from ..optimizers import GD, GradientFlow, Momentum, Optimizer
from ..theory import Directions, plateau_amplitude, query_key_matrix, stationary_directions, value_direction
from ._lines import LEADING_ERROR, gap_note

DECAY = "weight decay is left out: small weights may not grow against it"
Lines = tuple[np.ndarray, Directions, None, str]  # residual, lines, no fates, note
SECOND = "of the second stage, as growth begins where outer weights on the values' line come to rest"
FIRST = 1e-9  # of the largest output on the values' line: so small that the loss has not moved
SEPARATED = (
    "the values' line separates the labels, so that outer weights come to no rest: F is that of the first moment"
)


def attention_lines(
    model: Model, x: ArrayLike, y: ArrayLike, loss: Loss, optimizer: Optimizer | None
) -> tuple[dict[str, Lines], str]:
    """Residual, lines, fates (none) and note of the layers value1, query1 and key1; why the last two have none."""
    network = model.network
    assert isinstance(network, Attention)
    plain = network.vocabulary is None and not network.positions and network.key_inputs is None
    simple = plain and network.depth == network.heads == 1 and network.softmax and network.values and not network.merged
    if not simple or network.residual or network.norm is not None:
        raise InputError(
            "lines of attention are predicted for one head of softmax attention on tokens as they are, with values, "
            "separate query and key, no residual connections and no norm"
        )
    if network.outputs > 1 or loss.name != "exponential":
        raise InputError(
            f"lines of attention are predicted for one output and the exponential loss, not for {network.outputs} and "
            f"the loss {loss.describe()}"
        )
    inner = [*network.activations, *[network.activation] * (network.feed_forward is not None)]
    if any(multiplicity(each) != 1 or derivatives_at_zero(each, 0)[0] for each in inner):
        raise InputError("lines of attention are predicted for activations of multiplicity 1 that are 0 at 0")
    if not (optimizer is None or isinstance(optimizer, GradientFlow | GD | Momentum)):
        raise InputError(
            f"lines of attention are predicted for gradient flow, not for {optimizer.describe().split(',')[0]}"
        )
    if "value1" in network.fixed:
        raise InputError("lines of attention are predicted where values turn to their line, and here value1 is fixed")
    tokens, labels = np.asarray(x, float), np.asarray(y, float).reshape(-1)
    v, size = value_direction(tokens, labels)
    amplitude, largest = plateau_amplitude(tokens, labels), np.abs(tokens.mean(axis=1) @ v).max()
    matrix = query_key_matrix(tokens, labels, v * (amplitude or FIRST / largest), network.factor)
    decay = DECAY if getattr(optimizer, "weight_decay", 0.0) else ""
    told = _joined(decay, _size_note(network, model, tokens), _values_note(model, v, amplitude or 1 / size))
    values = stationary_directions(tokens.mean(axis=1), labels[:, None], 1)
    why = ""
    if network.fixed:
        why = f"queries and keys have no lines: theory trains all layers, and fixed are {listed(network.fixed)}"
    elif not matrix.any():
        why = "queries and keys have no lines: the matrix F, which they follow, is zero"
    found: dict[str, Lines] = {"value1": (labels[:, None], values, None, _joined(why, told))}
    for name, seen in () if why else (("query1", matrix.T), ("key1", matrix)):
        rows = len(seen) * seen.T  # samples whose matrix of mean fields this is
        directions = stationary_directions(np.eye(len(seen)), rows, 1)
        note = _joined(SECOND if amplitude is not None else SEPARATED, gap_note(directions), told)
        found[name] = (rows, directions, None, note)
    return found, why


def _size_note(network: Attention, model: Model, tokens: np.ndarray) -> str:
    """A sentence where the weights are not small: the theory has outputs of zero and attention that is the mean."""
    with precision("float64"):
        (pattern,) = network.assemble(model.parameters).patterns(tokens)
        off = float(np.abs(np.asarray(pattern) * tokens.shape[1] - 1).max())
    output = float(np.abs(model(tokens)).max())
    if max(output, off) <= LEADING_ERROR:
        return ""
    return f"the weights are not small: outputs reach {output:.2g}, and attention is up to {off:.0%} off the mean"


def _values_note(model: Model, v: np.ndarray, amplitude: float) -> str:
    """A sentence where values begin too large to come to the line v before the loss falls.

    Growth along v adds the same t to the squared norm of each matrix between tokens and output, until their product
    has the amplitude.
    """
    weights = {name.split(".")[0]: np.asarray(value, float) for name, value in model.parameters.items()}
    between = [value for name, value in weights.items() if not name.startswith(("query", "key"))]
    each = amplitude ** (2 / len(between))
    begun = np.array([np.linalg.norm(value, 2) ** 2 for value in between]) / each
    missing = 1 - np.prod(begun)
    growth = each * brentq(lambda t: np.prod(begun + t) - 1, 0, 1) if missing > 0 else 0.0
    values = weights["value1"]
    off = np.linalg.norm(values - np.outer(values @ v, v), 2)
    share = off / np.hypot(off, np.sqrt(growth)) if off else 0.0
    if share <= LEADING_ERROR:
        return ""
    return f"the values are not small: off their line they begin with {share:.0%} of the size that they come to"


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))
