r"""Dense networks of any depth, an activation for each hidden layer, with or without residual connections.

$h_1 = \sigma_1(W_1 x + b_1)$, then $h_{l+1} = \sigma_{l+1}(W_{l+1} h_l + b_{l+1})$ (``+ h_l`` with residual
connections), and the output $A h_L$ (``+ b`` with an output bias). In a *concatenated* network each layer reads all
hidden layers before it, $(h_1, ..., h_l)$ in one column: what a residual network becomes once its layers differ in
width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from .._phrases import counted
from .._serialization import Count, Part
from ..activations import Activation, Function, describe_activations, get_activation
from ..errors import InputError
from ._arrangement import Columns, in_columns
from ._layer import Affine, LayerShape
from ._norm import NormShape


class DenseNetwork(eqx.Module):
    """One dense network: a value that can be called on samples."""

    layers: tuple[Affine, ...]
    activations: tuple[Function, ...] = eqx.field(static=True)
    residual: bool = eqx.field(static=True)
    dropout: float = eqx.field(static=True)
    concatenated: bool = eqx.field(static=True, default=False)

    def __call__(
        self, x: Float[Array | np.ndarray, "samples inputs"] | Columns, key: Any = None
    ) -> Float[Array, "samples outputs"]:
        """The outputs for a batch of samples (inside, a column is a sample: the faster layout).

        With a key, dropout is active; without one the network is as it is used after training.
        """
        return self.trace(x, key)[0]

    def trace(
        self, x: Float[Array | np.ndarray, "samples inputs"] | Columns, key: Any = None, shifts: Sequence[Any] = ()
    ) -> tuple[Float[Array, "samples outputs"], list[Any]]:
        """The outputs, and what each layer reads, inputs x samples; ``shifts`` are added to the hidden layers' outputs.

        The gradient by a shift is what the later layers pass back to that layer.
        """
        h, read = x.T, []
        for depth, (layer, activation) in enumerate(zip(self.layers[:-1], self.activations, strict=True)):
            read.append(h)
            new = drop(activation(layer(h)), self.dropout, key, depth)
            if shifts:
                new = new + shifts[depth]
            if depth > 0 and self.concatenated:
                new = jnp.concatenate([h, new])
            h = new + h if self.residual and depth > 0 else new
        return jnp.asarray(self.layers[-1](h).T), [*read, h]

    @staticmethod
    def of(
        layers: Sequence[LayerShape],
        parameters: dict[str, Any],
        activations: Sequence[Activation],
        residual: bool,
        dropout: float,
        concatenated: bool = False,
    ) -> DenseNetwork:
        """The network of some layers with the parameters of their names."""
        maps = tuple(Affine.of(layer, parameters) for layer in layers)
        return DenseNetwork(maps, tuple(map(get_activation, activations)), residual, dropout, concatenated)


def dense_layers(
    widths: tuple[int, ...], bias: bool, output_bias: bool, concatenated: bool = False
) -> tuple[LayerShape, ...]:
    """The layers dense1, dense2, ..., output between layers of the given widths."""
    names = [f"dense{k}" for k in range(1, len(widths) - 1)] + ["output"]
    read = [widths[0], *accumulate(widths[1:-1])] if concatenated else widths[:-1]
    pairs = zip(names, read, widths[1:], strict=True)
    return tuple(LayerShape(name, (out, into), output_bias if name == "output" else bias) for name, into, out in pairs)


def drop(h: Any, share: float, key: Any, depth: int) -> Any:
    """Set a share of the entries to zero and scale the others up, if there is a key and anything to drop."""
    if key is None or not share:
        return h
    kept = jax.random.bernoulli(jax.random.fold_in(key, depth), 1 - share, h.shape)
    return jnp.where(kept, h / (1 - share), 0)


def check_dropout(share: float, hidden: Sequence[int]) -> None:
    """Refuse a share that is not at least 0 and below 1, and dropout where there is no dense hidden layer."""
    if not 0 <= share < 1:
        raise InputError(f"dropout is a share of at least 0 and below 1, not {share!r}")
    if share and not hidden:
        raise InputError("dropout is for dense hidden layers, and this network has none")


def describe_head(
    hidden: Sequence[int], activations: Sequence[Activation], outputs: int, output_bias: bool, dropout: float
) -> str:
    """The dense layers behind convolutions in words.

    >>> describe_head((1024,), ("relu",), 10, False, 0.5)
    'dense 1024 (relu, dropout 0.5); 10 outputs, no output bias'
    """
    last = counted(outputs, "output") + ("" if output_bias else ", no output bias")
    if not hidden:
        return last
    dropped = f", dropout {dropout:g}" if dropout else ""
    return f"dense {'-'.join(map(str, hidden))} ({describe_activations(activations)}{dropped}); {last}"


@dataclass(frozen=True)
class Dense(Part, kind="dense"):
    """Describes a dense network: ``Dense((5, 50, 1), "tanh")`` is the 5-50-1 network with tanh.

    Args:
        widths: inputs, hidden layers, outputs.
        activation: a name or function for all hidden layers, or a tuple with one for each.
        residual: add each hidden layer's input to its output, from the second hidden layer on.
        concatenated: each layer reads all hidden layers before it, one below the other.
        bias: hidden layers have a bias (part of a neuron's input weight).
        output_bias: the output layer has a bias.
        dropout: share of the hidden neurons that a training step leaves out.
    """

    norms: ClassVar[tuple[NormShape, ...]] = ()
    fixed: ClassVar[tuple[str, ...]] = ()

    widths: tuple[Count, ...]
    activation: Activation | tuple[Activation, ...] = "tanh"
    residual: bool = False
    bias: bool = True
    output_bias: bool = False
    dropout: float = 0.0
    concatenated: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.widths) < 3:
            raise InputError(f"widths must name inputs, at least one hidden layer and outputs, not {self.widths}")
        if isinstance(self.activation, tuple) and len(self.activation) != len(self.hidden):
            raise InputError(
                f"{len(self.activation)} activations were given for {len(self.hidden)} hidden layers: "
                "give one name for all, or one for each hidden layer"
            )
        for activation in self.activations:
            get_activation(activation)
        check_dropout(self.dropout, self.hidden)
        if self.residual and self.concatenated:
            raise InputError("hidden layers are added (residual) or concatenated, not both")
        if self.residual and len(set(self.hidden)) > 1:
            raise InputError(f"residual connections need hidden layers of one width, not {self.hidden}")

    @property
    def inputs(self) -> int:
        """Number of inputs, the bias not counted."""
        return self.widths[0]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample: ``(inputs,)``."""
        return (self.inputs,)

    @property
    def passed_on(self) -> int:
        """Numbers that all layers together give for one sample."""
        return sum(layer.weight[0] for layer in self.layers)

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers, the first one first."""
        return self.widths[1:-1]

    @property
    def outputs(self) -> int:
        """Number of outputs: the last width."""
        return self.widths[-1]

    @property
    def activations(self) -> tuple[Activation, ...]:
        """The activation of each hidden layer."""
        single = not isinstance(self.activation, tuple)
        return (self.activation,) * len(self.hidden) if single else self.activation  # type: ignore[return-value]

    @property
    def layers(self) -> tuple[LayerShape, ...]:
        """Name and shape of each layer with weights: dense1, dense2, ..., output.

        >>> [(layer.name, layer.weight) for layer in Dense((5, 50, 1)).layers]
        [('dense1', (50, 5)), ('output', (1, 50))]
        """
        return dense_layers(self.widths, self.bias, self.output_bias, bool(self.concatenated))

    def arrange(self, x: Float[np.ndarray, "samples inputs"]) -> Any:
        """Samples of a whole training as the network reads them fastest on this device."""
        return in_columns(x)

    def describe(self) -> str:
        """The network in words; its layers have a bias where nothing is said.

        >>> Dense((5, 50, 1), "tanh").describe()
        '5-50-1, tanh, no output bias'
        """
        phrases = {
            "-".join(map(str, self.widths)): True,
            describe_activations(self.activations): True,
            "residual connections": self.residual,
            "concatenated hidden layers": self.concatenated,
            f"dropout {self.dropout:g}": self.dropout,
            "no bias": not self.bias and not self.output_bias,
            "no output bias": self.bias and not self.output_bias,
            "no hidden bias": not self.bias and self.output_bias,
        }
        return ", ".join(phrase for phrase, applies in phrases.items() if applies)

    def assemble(self, parameters: dict[str, Any]) -> DenseNetwork:
        """The network with the given parameters, by name (``dense1.weight``, ``dense1.bias``, ...)."""
        return DenseNetwork.of(
            self.layers, parameters, self.activations, self.residual, self.dropout, bool(self.concatenated)
        )
