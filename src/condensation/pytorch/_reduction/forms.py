r"""What the channels of a set are made of, and by which rule they may be merged.

On its way to a reader a channel is, piece by piece, a *form*: a linear form in the inputs of the layers that make it
(batch norm folded in), plus a constant; behind an activation, a factor times what the activation gave. Wherever an
activation or a depthwise convolution ends a piece, the form's coefficients are a vector of the unit, its *stage*. Two
units are one exactly where the vectors of all stages point the same way: then a positively homogeneous activation
(relu) of degree p hands a factor s on as $s^p$, stage after stage, and the factor that arrives at a reader tells how
much its column counts. With one stage only, that is the rule of ``reduction.merge``, for every activation. Any other
set (two activations in turn, a product) merges only units that are equal in every stage, amplitudes included.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ...activations import Function
from ...measure._similarity import norms
from ...reduction._merge import MergeRule, merge_rule
from .channels import ChannelSet
from .matrix import array, bias_of, matrix_of, norm_factor, pads_zeros
from .trace import Op, Trace, activation

Vector = Float[np.ndarray, " units"]
FormKey = tuple[str, tuple[int, ...]]  # a module or an operation, and the linear maps that its output has passed since
Reading = tuple[Vector, Vector]  # what a reader sees of each unit: a factor of what the last stage gives, a constant
IDENTITY = MergeRule(False, 1, 0.0)


@dataclass(frozen=True)
class Knob:
    """A module whose bias moves the constant of a form, by so much for a unit of bias."""

    module: str
    factor: Vector
    rank: int  # a batch norm's shift before a layer's bias before a bias that is yet to be made


@dataclass(frozen=True)
class Form:
    """Coefficients of each unit by where they come from, the factor each layer's rows have got on the way.

    ``normed`` are the layers right behind which batch norm stands: its name, and what the form's constant owes to the
    layer's bias and the norm's mean.
    """

    parts: dict[FormKey, Float[np.ndarray, "units _"]]
    factors: dict[FormKey, Vector]
    constant: Vector
    knobs: tuple[Knob, ...] = ()
    normed: dict[FormKey, tuple[str, Vector]] = field(default_factory=dict)

    def scaled(self, factor: Vector) -> "Form":
        """The form of each unit times a factor."""
        return Form(
            {key: value * factor[:, None] for key, value in self.parts.items()},
            {key: value * factor for key, value in self.factors.items()},
            self.constant * factor,
            tuple(replace(knob, factor=knob.factor * factor) for knob in self.knobs),
            {key: (norm, value * factor) for key, (norm, value) in self.normed.items()},
        )

    def mapped(self, place: int) -> "Form":
        """The form behind a linear map of each channel: it is not to be added to what has not passed that."""
        parts, factors, normed = (
            {(name, (*way, place)): value for (name, way), value in part.items()}
            for part in (self.parts, self.factors, self.normed)
        )
        return Form(parts, factors, self.constant, self.knobs, normed)  # pyright: ignore[reportArgumentType]

    def rows(self, with_constant: bool) -> Float[np.ndarray, "units inputs"]:
        """All coefficients side by side; the constant is the last, where there is or can be one."""
        there = with_constant and (np.any(self.constant) or any(knob.rank < 2 for knob in self.knobs))
        return np.concatenate([*self.parts.values(), *([self.constant[:, None]] if there else [])], axis=1)

    @property
    def amplitude(self) -> Vector:
        """The number of each unit, of a form that is one number times one thing."""
        return next(iter(self.parts.values()))[:, 0]

    @property
    def alone(self) -> bool:
        """Whether it is one number, of no negative sign, times one thing."""
        only = len(self.parts) == 1 and not np.any(self.constant)
        return only and all(value.shape[1] == 1 and np.all(value >= 0) for value in self.parts.values())


@dataclass
class Forms:
    """The stages of a set and what its readers see, from the weights that a model has now.

    ``scaled`` hands amplitudes on from stage to stage; without, each stage gives its activation alone.
    """

    coupled: ChannelSet
    model: nn.Module
    trace: Trace
    scaled: bool = True

    def __post_init__(self) -> None:
        self.stages: list[np.ndarray] = []
        self.slopes: list[np.ndarray] = []
        self.first: Form | None = None  # the form of the first stage
        self.activations: list[Function] = []
        self.unknown = self.ordered = self.moves = self.raw = False
        self._values: dict[int, Form | None] = {}
        self._ended: dict[int, tuple[Form, Form]] = {}  # by the form's id
        self.pads = any(pads_zeros(self.model.get_submodule(name)) for name in self.coupled.columns)
        for name in self.coupled.columns:
            for place in self.trace.entries[name]:
                self._value(place)  # activations end their stages before readers do
        self.readings = {name: self._reading(name) for name in self.coupled.columns}

    def _reading(self, name: str) -> Reading:
        place = next((k for k in self.trace.entries[name] if self._value(k) is not None), -1)
        form = self._value(place)
        if form is None:  # Torch-Pruning sees a way that the trace does not
            self.unknown = True
            return np.ones(self.coupled.units), np.zeros(self.coupled.units)
        plain = all(name.startswith("op ") for name, _ in form.parts) and len(form.parts) == 1
        if plain and (not self.pads or not np.any(form.constant)):
            return form.amplitude, form.constant
        self.raw = True
        whole = self.pads or id(form) in self._ended  # its rows then have the constant
        ended = self._end(place, form, with_constant=whole)
        return ended.amplitude, np.zeros(self.coupled.units) if whole else form.constant

    def _value(self, place: int) -> Form | None:
        """The form at a place of the trace; nothing where no channel of the set arrives."""
        stack = [place] if place >= 0 else []
        while stack:
            top = stack[-1]
            missing = [k for k in self._inputs(top) if k not in self._values]
            if top in self._values or not missing:
                stack.pop()
                if top not in self._values:
                    self._values[top] = self._form(top, self.trace.ops[top])
            else:
                stack += missing
        return self._values.get(place)

    def _inputs(self, place: int) -> tuple[int, ...]:
        op = self.trace.ops[place]
        if op.kind != "module":
            return op.inputs
        through = op.name in self.coupled.channels and op.name not in self.coupled.producers
        return op.inputs if through or isinstance(self.model.get_submodule(op.name), nn.PReLU) else ()

    def _form(self, place: int, op: Op) -> Form | None:
        before = [(k, form) for k in self._inputs(place) if (form := self._values[k]) is not None]
        if op.kind == "module":
            return self._module(op.name, before)
        if not before:
            return None
        at, form = before[0]
        if op.kind == "same":
            return form
        if op.kind == "linear":
            return form.mapped(place)
        if op.kind == "scale":
            return form.scaled(np.full(self.coupled.units, op.numbers[0]))
        if op.kind == "add" and len(before) == len(op.inputs):
            signs = [np.full(self.coupled.units, sign) for sign in op.numbers]
            return self._sum([value.scaled(sign) for (_, value), sign in zip(before, signs, strict=True)])
        if op.kind == "cat" and len({id(value) for _, value in before}) == 1:
            return form
        if op.kind in ("pool", "moves"):
            self.ordered, self.moves = self.ordered or op.kind == "pool", self.moves or op.kind == "moves"
            linear = op.kind == "moves" and not np.any(form.constant)
            return (form if form.alone or linear else self._end(at, form)).mapped(place)
        if op.kind == "activation":
            function, amplitude = activation(op.name, op.numbers), self._end(at, form).amplitude
            self.activations.append(function)
            return self._atom(place, amplitude ** homogeneity(function) if self.scaled else amplitude)
        self.unknown = True
        for k, value in before:
            self._end(k, value)
        return self._atom(place, np.ones(self.coupled.units))

    def _module(self, name: str, before: list[tuple[int, Form]]) -> Form | None:
        module = self.model.get_submodule(name)
        where = self.coupled.channels.get(name)
        if name in self.coupled.producers and where is not None:
            rows, bias, ones = *_rows(module, where), np.ones(len(where))
            knob, key = Knob(name, ones, 2 if bias_of(module) is None else 1), (name, ())
            return Form({key: rows}, {key: ones}, bias, (knob,))
        if not before:
            return None
        at, form = before[0]
        if isinstance(module, nn.PReLU):
            self.activations.append(jax.nn.relu)  # homogeneous like it
            if where is not None:
                self.slopes.append(array(module.weight)[where][:, None])
            return self._atom(f"{at} of {name}", self._end(at, form).amplitude)
        if where is None:
            return None
        if isinstance(module, _BatchNorm):
            factor, shift = (value[where] for value in norm_factor(module))
            moved = form.scaled(factor)
            if not module.affine:
                return replace(moved, constant=moved.constant + shift)
            knobs = (Knob(name, np.ones(len(where)), 0), *moved.knobs)
            raw = moved.constant + shift - array(module.bias)[where]
            alone = len(form.factors) == len(form.parts) == 1 and not form.normed and bool(np.all(factor))
            normed = dict.fromkeys(form.parts, (name, raw)) if alone else moved.normed
            return replace(moved, constant=moved.constant + shift, knobs=knobs, normed=normed)
        amplitude = self._end(at, form).amplitude  # a depthwise convolution
        kernel, bias = _rows(module, where)
        return Form({(f"depthwise {name}", ()): kernel * amplitude[:, None]}, {}, bias)

    def _sum(self, forms: list[Form]) -> Form:
        parts: dict[FormKey, np.ndarray] = {}
        factors: dict[FormKey, np.ndarray] = {}
        normed: dict[FormKey, tuple[str, Vector]] = {}
        knobs: dict[str, Knob] = {}
        for form in forms:
            both = [key for key in form.normed if key in parts]  # through a norm and past it, or twice
            normed = {key: value for key, value in (normed | form.normed).items() if key not in both}
            for knob in form.knobs:
                known = knobs.get(knob.module)
                knobs[knob.module] = knob if known is None else replace(knob, factor=known.factor + knob.factor)
            for total, values in ((parts, form.parts), (factors, form.factors)):
                total |= {key: total[key] + value if key in total else value for key, value in values.items()}
        constant = np.sum([form.constant for form in forms], axis=0)
        names = [norm for norm, _ in normed.values()]
        normed = {key: value for key, value in normed.items() if names.count(value[0]) == 1}
        return Form(parts, factors, constant, tuple(knobs.values()), normed)

    def _end(self, place: int, form: Form, with_constant: bool = True) -> Form:
        """A stage ends here: its vector is kept, what goes on is its amplitude."""
        if form.alone and not form.factors:
            return form
        if id(form) not in self._ended:
            rows = form.rows(with_constant)
            if self.first is None:
                self.first = form
            self.stages.append(rows)
            self._ended[id(form)] = form, self._atom(place, norms(rows) if self.scaled else np.ones(len(rows)))
        return self._ended[id(form)][1]

    def _atom(self, place: int | str, factor: Vector) -> Form:
        return Form({(f"op {place}", ()): factor[:, None]}, {}, np.zeros(self.coupled.units))

    @property
    def rule(self) -> MergeRule | None:
        """The rule of a set of one stage; nothing for one of several or of operations that have none."""
        single = len(self.stages) == 1 and self.first is not None and bool(self.first.factors) and not self.unknown
        if not single or self.slopes or len(self.activations) > 1:
            return None
        rule = torch_rule(self.activations[0]) if self.activations else IDENTITY
        moved = self.moves and rule.constant != 0  # a constant is not what it was
        other = self.raw and (rule.power, rule.constant) != (1, 0)  # what has not passed the activation has its own
        if rule.power == 0 or moved or other:
            return None
        border = self.pads and rule.constant != 0  # where sigma(0) is not seen, the sign is not exact
        return replace(rule, oriented=rule.oriented or self.ordered or border)

    @property
    def homogeneous(self) -> bool:
        """Whether all activations hand positive factors on."""
        return not self.unknown and all(map(homogeneity, self.activations))


def _rows(module: nn.Module, where: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some rows of a layer, and their biases, which are zero where it has none."""
    bias = bias_of(module)
    rows = matrix_of(module)[where].reshape(len(where), -1)
    return rows, np.zeros(len(where)) if bias is None else bias[where]


@lru_cache(maxsize=256)
def homogeneity(function: Function) -> float:
    """The degree p of f(s x) = s^p f(x) for positive s; 0 where that does not hold."""
    power = merge_rule(function).power
    with jax.enable_x64(True):
        z = jnp.array([1e-2, 1.0, 30.0, -1e-2, -1.0, -30.0])
        once, twice = np.asarray(function(z)), np.asarray(function(2 * z))
    return power if power > 0 and np.allclose(twice, 2**power * once, rtol=1e-9, atol=0) else 0


@lru_cache(maxsize=256)
def torch_rule(function: Callable[..., object]) -> MergeRule:
    """The rule of an activation; by lines only where the sign is exact, at any amplitude.

    A network of any initialization may stand here: gelu(-z) is -gelu(z) for small z alone, while its units of one
    orientation still merge well at large amplitudes, where it is relu.
    """
    rule = merge_rule(function)
    if rule.oriented:
        return rule
    with jax.enable_x64(True):
        z = jnp.array([1e-2, 0.3, 1.0, 3.0])
        there, back = (np.asarray(function(s * z)) - rule.constant for s in (1, -1))
    return replace(rule, oriented=not np.allclose(back, (-1) ** int(rule.power) * there, rtol=1e-6, atol=1e-12))
