"""The description of a network of attention: a frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from jaxtyping import Float

from .._phrases import counted, listed
from .._serialization import Count, Part, Positive
from ..activations import Activation, describe_activations, get_activation
from ..errors import InputError, one_of, unknown_name
from ._arrangement import Moments
from ._attention import AttentionNetwork, default_factor
from ._dense import dense_layers
from ._layer import LayerShape
from ._norm import NormShape

ATTENTIONS = ("softmax", "linear")
NORMS = ("pre", "post")


@dataclass(frozen=True)
class Attention(Part, kind="attention"):
    r"""Describes a network of attention that is read at the last token of a sequence.

    ``Attention(length=8, width=16, outputs=1, projection=False, hidden=(16,))`` is
    $\tanh(\mathrm{softmax}(X W_Q W_K^T X^T / \sqrt d)\, X W_V W_1)\, W_2$ of sequences of 8 tokens with 16 coordinates;
    ``Attention(10, 64, 201, vocabulary=201, positions=True, feed_forward=128, residual=True)`` is a transformer of
    one block on the numbers of 201 tokens. No layer has a bias.

    Args:
        length: tokens in a sequence.
        width: coordinates of a token, after the embedding where there is one.
        outputs: number of outputs.
        vocabulary: samples are then the numbers 0 to vocabulary - 1 of the tokens (samples x length), and the layer
            ``embedding`` has a row for each; without it samples are the tokens themselves, samples x length x width.
        positions: the layer ``positions`` adds a vector of its own to each place of the sequence.
        depth: number of blocks.
        heads: in each block.
        head_width: rows of a head's query and key (the rank of their product); width / heads, rounded down, if not
            given.
        value_width: rows of a head's value; as head_width if not given.
        attention: ``"softmax"`` or ``"linear"``.
        merged: a head has one matrix ``key_query`` in the place of the product of query and key.
        values: heads have a value matrix; without one they pass on what they read.
        projection: a matrix of the block reads its heads' outputs, which else stand one below the other.
        key_inputs: queries and keys read so many coordinates of a token, from the first on, and values the others;
            both read all of them if not given.
        scale: the factor c of the scores; if not given 1/sqrt(head_width) with softmax (merged: one over the root of
            the number of coordinates that keys read), 1/length without.
        causal: a token reads itself and those before it; the last one, which is read, sees all of them in any case.
        feed_forward: width of the feed-forward part of each block, two matrices ``up`` and ``down``; none if not given.
        residual: heads and feed-forward part add to what they read.
        norm: a layer norm without weights of its own, ``"pre"`` (before the heads, before the feed-forward part and
            before the readout) or ``"post"`` (behind heads and feed-forward part).
        hidden: widths of dense hidden layers between the last block and the output.
        activation: of the feed-forward part and of the dense hidden layers.
        fixed: names of layers that are not trained: ``("embedding", "output")``.
    """

    norms: ClassVar[tuple[NormShape, ...]] = ()
    dropout: ClassVar[float] = 0.0

    length: Count
    width: Count
    outputs: Count
    vocabulary: Count | None = None
    positions: bool = False
    depth: Count = 1
    heads: Count = 1
    head_width: Count | None = None
    value_width: Count | None = None
    attention: Annotated[str, one_of("attention", ATTENTIONS)] = "softmax"
    merged: bool = False
    values: bool = True
    projection: bool = True
    key_inputs: Count | None = None
    scale: Positive | None = None
    causal: bool = False
    feed_forward: Count | None = None
    residual: bool = False
    norm: Annotated[str, one_of("norm", NORMS)] | None = None
    hidden: tuple[Count, ...] = ()
    activation: Activation = "tanh"
    fixed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        get_activation(self.activation)
        derived = not self.merged or (self.values and self.value_width is None)
        if self.head_width is None and self.heads > self.width and derived:
            own = "value_width" if self.merged else "head_width"
            raise InputError(f"{self.heads} heads of tokens of width {self.width} need a {own}")
        if self.key_inputs is not None and self.key_inputs >= self.width:
            raise InputError(
                f"key_inputs = {self.key_inputs} leaves nothing of a token of width {self.width} for the values: fewer "
                "would do"
            )
        if self.merged and self.head_width is not None:
            raise InputError("a head with key and query merged has no head_width; value_width tells that of its values")
        if not self.values and self.value_width is not None:
            raise InputError(f"value_width = {self.value_width} is for heads with a value matrix, and values is False")
        if (self.residual or self.depth > 1) and self._passed != self.width:
            raise InputError(
                f"{'residual connections' if self.residual else 'several blocks'} need heads that give tokens of width "
                f"{self.width}, not {self._passed}: a projection would do"
            )
        known = [layer.name for layer in self.layers]
        for name in self.fixed:
            if name not in known:
                raise unknown_name("fixed layer", name, known)
        if len(set(self.fixed)) < len(self.fixed):
            raise InputError(f"each fixed layer may stand once, not {listed(self.fixed)}")
        if len(set(self.fixed)) == len(known):
            raise InputError("every layer is fixed: at least one must be left to train")

    @property
    def softmax(self) -> bool:
        """Whether the scores go through a softmax."""
        return self.attention == "softmax"

    @property
    def key_width(self) -> int:
        """Coordinates of a token that queries and keys read."""
        return self.key_inputs or self.width

    @property
    def value_from(self) -> int:
        """The first coordinate of a token that values read."""
        return self.key_inputs or 0

    @property
    def key_outputs(self) -> int:
        """Rows of a head's query and key."""
        return self.head_width or self.width // self.heads

    @property
    def value_outputs(self) -> int:
        """What a head gives a token."""
        return (self.value_width or self.key_outputs) if self.values else self.width - self.value_from

    @property
    def _passed(self) -> int:
        """Width of a token after a block."""
        return self.width if self.projection else self.heads * self.value_outputs

    @property
    def factor(self) -> float:
        """The factor of the scores."""
        return default_factor(self) if self.scale is None else self.scale

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample: ``(length, width)``, with a vocabulary ``(length,)``."""
        return (self.length,) if self.vocabulary is not None else (self.length, self.width)

    @property
    def activations(self) -> tuple[Activation, ...]:
        """The activation of each dense hidden layer."""
        return (self.activation,) * len(self.hidden)

    @property
    def layers(self) -> tuple[LayerShape, ...]:
        """Name and shape of each layer with weights.

        >>> network = Attention(10, 64, 201, vocabulary=201, feed_forward=128)
        >>> [layer.name for layer in network.layers]
        ['embedding', 'query1', 'key1', 'value1', 'projection1', 'up1', 'down1', 'output']
        """
        listed: list[tuple[str, int, int, str]] = []
        if self.vocabulary is not None:
            listed.append(("embedding", self.vocabulary, self.width, "embedding"))
        if self.positions:
            listed.append(("positions", self.length, self.width, "embedding"))
        heads, passed = self.heads, self._passed
        for block in range(1, self.depth + 1):
            if self.merged:
                listed.append((f"key_query{block}", heads * self.key_width, self.key_width, "query_key"))
            else:
                listed += [
                    (f"{n}{block}", heads * self.key_outputs, self.key_width, "query_key") for n in ("query", "key")
                ]
            if self.values:
                listed.append((f"value{block}", heads * self.value_outputs, self.width - self.value_from, "value"))
            if self.projection:
                listed.append((f"projection{block}", self.width, heads * self.value_outputs, "value"))
            if self.feed_forward is not None:
                listed.append((f"up{block}", self.feed_forward, passed, "hidden"))
                listed.append((f"down{block}", passed, self.feed_forward, "hidden"))
        own = (LayerShape(name, (rows, columns), False, role) for name, rows, columns, role in listed)
        return (*own, *dense_layers((passed, *self.hidden, self.outputs), False, False))

    @property
    def passed_on(self) -> int:
        """Numbers that all layers together give for one sample; those of the last block are of one token alone.

        >>> Attention(10, 64, 201).passed_on, Attention(10, 64, 201, depth=2).passed_on
        (1939, 5239)
        """
        read = sum(self.hidden) + self.outputs
        rows = sum(layer.weight[0] for layer in self.layers if layer.role != "embedding")
        block = (rows - read) // self.depth + self.heads * self.value_outputs
        earlier = (self.depth - 1) * (block + self.heads * self.length)
        last = block + self.heads * (self.length + 2 * self.width)
        return self.length * (earlier + 2 * self.width) + last + read

    def check_samples(self, x: np.ndarray) -> None:
        """Refuse numbers that are no tokens of the vocabulary."""
        if self.vocabulary is None:
            return
        wrong = ~((x >= 0) & (x < self.vocabulary) & (x == np.floor(x)))
        if wrong.any():
            sample = int(wrong.reshape(len(x), -1).any(axis=1).argmax())
            raise InputError(
                f"tokens are whole numbers from 0 to {self.vocabulary - 1}, but sample {sample} has "
                f"{x[sample][wrong[sample]][0]:g}"
            )

    def arrange(self, x: Float[np.ndarray, "samples length *width"]) -> Any:
        """Sequences of a whole training as the network reads them fastest."""
        given = self.vocabulary is not None or self.positions or self.residual or self.norm is not None
        products = self.key_width * (self.width - self.value_from)
        if self.softmax or self.depth > 1 or self.projection or given or products > (self.length - 1) * self.width:
            return x
        return Moments.of(x, self.key_width, self.value_from)

    def describe(self) -> str:
        """The network in words; it has no biases.

        >>> Attention(8, 16, 1, projection=False, hidden=(16,)).describe()
        'one block of softmax attention on 8 tokens of width 16, one head, no projection; dense 16 (tanh); one output'
        >>> Attention(32, 5, 1, heads=2, attention="linear", merged=True, feed_forward=9).describe().split("; ")[0]
        'one block of linear attention on 32 tokens of width 5, 2 heads, key and query merged, feed-forward 9 (tanh)'
        """
        tokens = counted(self.length, "token") + ("" if self.vocabulary is None else f" of {self.vocabulary}")
        width = "" if self.merged or self.head_width is None else f" of width {self.head_width}"
        phrases = {
            f"{counted(self.depth, 'block')} of {self.attention} attention on {tokens} of width {self.width}": True,
            "positions": self.positions,
            f"{counted(self.heads, 'head')}{width}": True,
            f"values of width {self.value_width}": self.value_width is not None,
            "key and query merged": self.merged,
            f"keys read {self.key_inputs} coordinates and values the others": self.key_inputs is not None,
            "no values": not self.values,
            "no projection": not self.projection,
            f"scores times {self.factor:g}": self.scale is not None,
            "causal": self.causal,
            f"feed-forward {self.feed_forward} ({describe_activations([self.activation])})": self.feed_forward
            is not None,
            "residual connections": self.residual,
            f"{self.norm} layer norm": self.norm is not None,
        }
        block = ", ".join(phrase for phrase, applies in phrases.items() if applies)
        fixed = f"; {', '.join(self.fixed)} fixed" if self.fixed else ""
        dense = "-".join(map(str, self.hidden))
        head = f"dense {dense} ({describe_activations(self.activations)}); " if self.hidden else ""
        return f"{block}; {head}{counted(self.outputs, 'output')}{fixed}"

    def assemble(self, parameters: dict[str, Any]) -> AttentionNetwork:
        """The network with the given parameters, by name (``query1.weight``, ...)."""
        return AttentionNetwork(parameters, self)
