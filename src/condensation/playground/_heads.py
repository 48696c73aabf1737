"""The matrices of attention that the page draws: those of one block, their singular values, the vectors of theory."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ..data import InContextRegression
from ..errors import InputError
from ..measure import effective_rank
from ..networks import Attention, Model
from ..theory import context_losses
from ..training import Moment
from ._runs import ShownRun

FACTORS = ("query", "key", "key_query", "value")  # of the layers query1, key1, ...
TOP = 8  # singular values of a matrix that are drawn over the steps
MOST_SIDE, MOST_HEADS, MOST_TOKENS = 64, 16, 64  # of what is drawn; of more rows and columns some, evenly chosen
ROWS, MOST_WORK = (20, 200), 2_000_000  # least and most rows of the curve, and entries of the matrices of all rows
Marks = dict[str, Float[np.ndarray, "lines inputs"]]


@dataclass(frozen=True, eq=False)
class Heads:
    """The block of a network of attention that a layer belongs to.

    Attributes:
        marks: of each matrix the unit vectors that theory predicts for its top right singular vector.
        mark: what these vectors are, for the page.
    """

    run: ShownRun
    network: Attention
    block: int
    marks: Marks
    mark: str

    @classmethod
    def of(cls, run: ShownRun, layer: str, marks: Marks) -> "Heads | None":
        """The block of a layer; None where the network has no attention whose matrices are known."""
        network = None if run.experiment is None else run.experiment.network
        if not isinstance(network, Attention):
            return None
        digits = layer[len(layer.rstrip("0123456789")) :]
        dense = layer.startswith("dense")
        block = network.depth if dense else int(digits or 1)
        eigenvectors = {} if marks else _eigenvectors(run, network, block)
        heads = cls(run, network, block, marks or eigenvectors, "eigenvector" if eigenvectors else "predicted")
        return heads if heads.names else None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The matrices of the block that were kept."""
        return tuple(name for name in FACTORS if f"{name}{self.block}" in self.run.layers)

    @property
    def has_product(self) -> bool:
        """Whether query and key are known, so that there is their product, which the scores are made of."""
        return "query" in self.names and "key" in self.names

    def matrices(self, moment: Moment) -> dict[str, Float[np.ndarray, "heads rows columns"]]:
        """Each matrix, of all heads."""
        weights = {name: moment.parameters[f"{name}{self.block}.weight"] for name in self.names}
        heads = self.network.heads
        return {name: np.asarray(w, float).reshape(heads, -1, w.shape[-1]) for name, w in weights.items()}

    # -- singular values over the steps

    def spectra(self, moment: Moment) -> dict[str, Float[np.ndarray, "heads values"]]:
        """The largest singular values of each matrix, and of the product."""
        matrices = self.matrices(moment)
        found = {name: np.linalg.svd(each, compute_uv=False)[:, :TOP] for name, each in matrices.items()}
        if self.has_product:
            query, key = (np.linalg.qr(matrices[name].swapaxes(1, 2))[1] for name in ("query", "key"))
            found["product"] = np.linalg.svd(query @ key.swapaxes(1, 2), compute_uv=False)[:, :TOP]
        return found

    @cached_property
    def width(self) -> int:
        """How many singular values are drawn, of all matrices and heads."""
        return sum(values.size for values in self.spectra(self.run.first).values())

    def curve(self, moments: Iterable[Moment]) -> Float[np.ndarray, "moments values"]:
        """A row for each moment: the step, and the singular values in the order of ``describe``."""
        rows = [[m.step, *np.concatenate([s.ravel() for s in self.spectra(m).values()])] for m in moments]
        return np.array(rows, np.float32).reshape(len(rows), 1 + self.width)

    def whole_curve(self) -> Float[np.ndarray, "moments values"]:
        """The rows of all recorded moments, or of some, evenly chosen."""
        moments = self.run.recording.moments
        entries = sum(each.size for each in self.matrices(moments[0]).values())
        most = min(len(moments), int(np.clip(MOST_WORK // entries, *ROWS)))
        return self.curve(moments[k] for k in np.unique(np.linspace(0, len(moments) - 1, most).round().astype(int)))

    # -- messages

    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What the page has to know of the block before the first frame."""
        first = self.run.first
        counts = {name: values.shape[1] for name, values in self.spectra(first).items()}
        shapes = {name: each.shape[1:] for name, each in self.matrices(first).items()}
        header = {
            "block": self.block,
            "blocks": self.network.depth,
            "heads": self.network.heads,
            "drawn": len(_some(self.network.heads, MOST_HEADS)),
            "matrices": [{"name": name, "rows": rows, "columns": columns} for name, (rows, columns) in shapes.items()],
            "values": [{"name": name, "count": count} for name, count in counts.items()],
            "softmax": self.network.softmax,
            "factor": self.network.factor,
            "mark": self.mark,
            "levels": self.levels(),
        }
        arrays = {f"mark_{name}": vectors.astype(np.float32) for name, vectors in self.marks.items()}
        return header, arrays | {"spectra": self.whole_curve()}

    def levels(self) -> list[float]:
        """The levels at which the loss of regression in context stands still, the first loss left out.

        With key and query merged it falls once, to the last one; heads of less rank than there are eigenvalues learn as
        many as their rank.
        """
        experiment, network = self.run.experiment, self.network
        assert experiment is not None
        data, loss = experiment.data, experiment.loss
        if not isinstance(data, InContextRegression) or not _reads(network, data):
            return []
        if loss.name != "squared_error" or loss.reduction != "mean":
            return []
        known = context_losses(data.eigenvalues, data.context)[1:].tolist()
        return known[-1:] if network.merged else known[: network.heads * network.key_outputs]

    def drawn(self, moment: Moment) -> dict[str, np.ndarray]:
        """The matrices of a frame."""
        return {f"head_{name}": _thinned(each).astype(np.float32) for name, each in self.matrices(moment).items()}

    def measured(self, moment: Moment, model: Model | None) -> dict[str, np.ndarray]:
        """The slow part of a frame: top singular vectors, effective ranks, cosines with theory's, a pattern."""
        arrays: dict[str, np.ndarray] = {}
        for name, each in self.matrices(moment).items():
            marks = self.marks.get(name)
            tops = np.linalg.svd(each, full_matrices=False)[2][:, 0]
            if marks is not None:
                cosines = tops @ marks.T
                arrays[f"head_cos_{name}"] = np.abs(cosines).astype(np.float32)
                signed = cosines[np.arange(len(tops)), np.abs(cosines).argmax(axis=1)]
            else:
                signed = tops[np.arange(len(tops)), np.abs(tops).argmax(axis=1)]
            tops = np.where(signed < 0, -1, 1)[:, None] * tops
            arrays[f"head_top_{name}"] = _thinned(tops[:, None])[:, 0].astype(np.float32)
            arrays[f"head_rank_{name}"] = np.array([_rank(head) for head in each], np.float32)
        if model is not None and self.run.data is not None:
            pattern = np.asarray(_patterns(self.network)(model.parameters, self.run.data[0][:1])[self.block - 1])[0]
            arrays["head_pattern"] = pattern[:MOST_HEADS, -MOST_TOKENS:, -MOST_TOKENS:].astype(np.float32)
        return arrays


def _eigenvectors(run: ShownRun, network: Attention, block: int) -> Marks:
    """Of regression in context the eigenvectors of the inputs' covariance, to which keys and queries turn."""
    data = None if run.experiment is None else run.experiment.data
    if not isinstance(data, InContextRegression) or not _reads(network, data) or block > 1:
        return {}
    axes = data.axes(run.seed)[np.argsort(data.eigenvalues)[::-1]]
    return dict.fromkeys(("key_query",) if network.merged else ("query", "key"), axes)


def _reads(network: Attention, data: InContextRegression) -> bool:
    """Whether the network is that of theory: one block of linear heads, whose keys read inputs and values targets."""
    more = network.hidden or network.feed_forward or network.norm or network.residual or network.positions
    plain = not network.softmax and not network.fixed and network.depth == 1
    return plain and not more and network.key_inputs == data.dim


@lru_cache(maxsize=16)
def _patterns(network: Attention) -> Callable[..., Any]:
    return jax.jit(lambda parameters, x: network.assemble(parameters).patterns(x))


def _rank(matrix: np.ndarray) -> float:
    try:
        return effective_rank(matrix)
    except InputError:  # all weights are zero
        return 0.0


def _some(count: int, most: int) -> Sequence[int]:
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist()


def _thinned(each: Float[np.ndarray, "heads rows columns"]) -> np.ndarray:
    heads, rows, columns = each.shape
    return each[np.ix_(range(min(heads, MOST_HEADS)), _some(rows, MOST_SIDE), _some(columns, MOST_SIDE))]
