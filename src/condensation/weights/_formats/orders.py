"""The orders of axes that TensorFlow, Keras and JAX use, in which units stand last, turned to units first.

Kernels are (inputs, units), of convolutions (height, width, channels, filters). Which layer a kernel belongs to is told
by its graph or configuration where there is one, else by its name.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from ..._files import Stored
from .._layout import Shape, UnitLayout
from .._roles import DEPTHWISE, RECURRENT
from .opened import Opened, turned

_GATES = {3: ("update", "reset", "new"), 4: ("input", "forget", "cell", "output")}  # in the order of Keras
_BESIDE = re.compile(
    r"OPTIMIZER_SLOT|(^|[./_])(adam\w*|rmsprop|sgd|adagrad|adadelta|nadam|momentum|optimizer\w*)([./_\d]|$)"
    r"|global_step|save_counter|CHECKPOINTABLE_OBJECT_GRAPH|ExponentialMovingAverage|seed_generator",
    re.IGNORECASE,
)
_HEADS = re.compile(r"(?:^|[./])(?:(query|key|value|attention_output)|_?(query|key|value|output)_dense)[./]\w+$")
_LAST = re.compile(r"(?:^|[./])(?:\w*kernel|w|coefs_\.\d+)(?::\d+)?$")  # names of weights whose units may stand last
_BIAS = re.compile(r"(kernel|weights?|w|filters?|depthwise_kernel|pointwise_kernel|depthwise_weights)(:\d+)?$")


def kind_of(name: str, shape: tuple[int, ...]) -> str:
    """The kind of layer that a kernel of TensorFlow belongs to, told by its name and number of axes.

    >>> kind_of("conv2d_1.kernel", (3, 3, 4, 8)), kind_of("block.depthwise_kernel", (3, 3, 8, 1)), kind_of("a", (5, 6))
    ('conv', 'depthwise', 'dense')
    """
    own = re.split(r"[./]", name)[-1].lower()
    if "embedding" in own or (len(shape) == 2 and "embedding" in name.lower() and "kernel" not in own):
        return "embedding"
    if len(shape) == 3 and (part := part_of_heads(name)):
        return "output heads" if part.endswith("output") else "heads"
    if len(shape) >= 3:
        if "depthwise" in own or ("depthwise" in name.lower() and "pointwise" not in own and shape[-1] < 4):
            return "depthwise"
        return "transposed" if re.search(r"transpose|deconv", name, re.IGNORECASE) else "conv"
    return "recurrent" if re.search(r"lstm|gru|rnn", name, re.IGNORECASE) else "dense"


def part_of_heads(name: str) -> str:
    """Which part of an attention with heads a variable belongs to; empty where it is none.

    >>> [part_of_heads(f"{layer}.kernel") for layer in ("grouped_query_attention.key", "mha.output_dense", "output")]
    ['key', 'output', '']
    """
    found = _HEADS.search(name)
    return (found[1] or found[2]) if found else ""


def beside_weights(name: str) -> bool:
    """Whether an array of a checkpoint is an optimizer's or a counter.

    >>> beside_weights("dense.kernel"), beside_weights("training.Adam.dense.kernel.m")
    (False, True)
    """
    return bool(_BESIDE.search(name))


def units_first(
    arrays: Mapping[str, Stored], kinds: Mapping[str, str] | None = None, biases: Mapping[str, str] | None = None
) -> Opened:
    """Arrays of TensorFlow with their units first, and what that tells of them.

    Args:
        arrays: by name, as they are stored.
        kinds: of the layers that some belong to, where that is known; see ``kind_of``.
        biases: the name of the bias of some, where that is known.
    """
    found: dict[str, Stored] = {}
    layouts: dict[str, UnitLayout | str] = {}
    taken: set[str] = set()
    for name, stored in arrays.items():
        shape = stored.shape
        if len(shape) < 2 or name in taken or stored.reason:
            found.setdefault(name, stored)
            continue
        kind = (kinds or {}).get(name) or _recurrent(name, arrays) or kind_of(name, shape)
        bias = (biases or {}).get(name) or bias_beside(name, arrays)
        own, layout = _turned(name, stored, kind, arrays)
        found[name] = own
        fits = bias is not None and bias not in taken and arrays[bias].size == own.shape[0]
        if bias is not None and fits and isinstance(layout, UnitLayout):
            if len(arrays[bias].shape) > 1:
                found[bias] = turned(arrays[bias], tuple(range(len(arrays[bias].shape))), (own.shape[0],))
            layout = replace(layout, bias=(bias, 0))
            taken.add(bias)
        layouts[name] = layout
    for name in arrays:
        if name in taken and len(arrays[name].shape) > 1:
            layouts.pop(name, None)
    ordered = {name: found[name] for name in arrays}
    return Opened(ordered, {name: layout for name, layout in layouts.items() if name in ordered})


def told_by_names(opened: Opened) -> Opened:
    """Arrays of a file that says nothing of their order, with units first where names or biases say they are last.

    JAX has them there: Flax calls weights ``kernel``, Haiku ``w``; so have the networks of scikit-learn, ``coefs_``.

    >>> arrays = {"fc.kernel": Stored((5, 50), "float32", lambda: np.ones((5, 50)))}
    >>> told_by_names(Opened(arrays)).arrays["fc.kernel"].shape
    (50, 5)
    """
    arrays = opened.arrays
    if not opened.layouts and (numbered := _numbered(arrays)):
        found = units_first(numbered)
        return replace(opened, arrays={**arrays, **found.arrays}, layouts=found.layouts)
    matrices = {name: own.shape for name, own in arrays.items() if len(own.shape) > 1}
    biases = {name: bias_beside(name, arrays) for name in matrices if _LAST.search(name)}
    paired = {name: arrays[bias].shape for name, bias in biases.items() if bias}
    fits = all(_is_last(name, matrices[name], bias) for name, bias in paired.items())
    by_bias = any(matrices[name][:1] != bias for name, bias in paired.items())
    by_name = any(re.search(r"kernel|coefs_", name) for name in biases)
    by_name = by_name and not any(name.endswith("weight") for name in matrices)
    if opened.layouts or not fits or not (by_bias or by_name):
        return opened
    own = {name: stored for name, stored in arrays.items() if name in biases or name in biases.values()}
    kinds = {name: _kind_in_jax(name, matrices, arrays.get(bias or "")) for name, bias in biases.items()}
    found = units_first(own, kinds)
    return replace(opened, arrays={**arrays, **found.arrays}, layouts=found.layouts)


def _numbered(arrays: Mapping[str, Stored]) -> dict[str, Stored]:
    """Weights of a list, as ``get_weights`` of Keras gives it, if the vectors behind them fit their last axes alone.

    What such a vector is (a bias, or a scale of a norm) a list does not tell.
    """
    found = [re.fullmatch(r"(.*?)(\d{1,6})", name) for name in arrays]
    places = {int(match[2]): match[0] for match in found if match}
    if len(places) < len(arrays) or len({match[1] for match in found if match}) != 1:
        return {}
    behind = {name: arrays[places[k + 1]].shape for k, name in places.items() if k + 1 in places}
    paired = {name: shape for name, shape in behind.items() if len(arrays[name].shape) > 1 and len(shape) == 1}
    shapes = {name: arrays[name].shape for name in paired}
    fits = all(shapes[name][-1:] == vector for name, vector in paired.items())
    told = any(shapes[name][:1] != vector for name, vector in paired.items())
    return {name: arrays[name] for name in paired} if fits and told else {}


def _kind_in_jax(name: str, matrices: Mapping[str, Shape], bias: Stored | None) -> str:
    """The kind of a kernel where JAX has another one than its name tells; else nothing."""
    shape = matrices[name]
    query = re.sub(r"(^|[./])out([./]\w+)$", r"\1query\2", name)
    if len(shape) == 3 and query != name and query in matrices:
        return "output heads"
    in_keras = bias is not None and bias.shape == shape[-2:-1] != shape[-1:]  # which has these filters before the last
    return "conv" if kind_of(name, shape) == "transposed" and not in_keras else ""


def _is_last(name: str, shape: tuple[int, ...], bias: tuple[int, ...]) -> bool:
    """Whether a bias fits the last axes of a weight, or the filters where such a layer of Keras has them."""
    before = kind_of(name, shape) in ("transposed", "depthwise") and bias == shape[-2:-1]
    return before or (0 < len(bias) < len(shape) and bias == shape[len(shape) - len(bias) :])


def bias_beside(name: str, arrays: Mapping[str, Stored]) -> str | None:
    """The bias that stands beside a kernel by its name."""
    for bias in (*(_BIAS.sub(other, name) for other in ("bias", "biases", "b")), name.replace("coefs_", "intercepts_")):
        if bias != name and bias in arrays:
            return bias
    return None


def _state(name: str) -> str:
    """The name that the kernel for the state has in a layer with a kernel of this name."""
    return re.sub(r"(^|\.)(recurrent_)?kernel$", r"\1recurrent_kernel", name)


def _recurrent(name: str, arrays: Mapping[str, Stored]) -> str:
    """The kind of a kernel that has one for the state beside it, or is one."""
    state = _state(name)
    return "recurrent" if state.endswith("recurrent_kernel") and state in arrays else ""


def _turned(name: str, stored: Stored, kind: str, arrays: Mapping[str, Stored]) -> tuple[Stored, UnitLayout | str]:
    shape, axes = stored.shape, len(stored.shape)
    if kind == "turned":
        return stored, UnitLayout()
    if kind == "embedding":
        return stored, UnitLayout("embedding")
    if kind == "depthwise" and axes >= 3:
        order = (axes - 2, axes - 1, *range(axes - 2))
        return turned(stored, order, (shape[-2] * shape[-1], 1, *shape[:-2])), UnitLayout(DEPTHWISE)
    if kind == "transposed" and axes >= 3:
        return turned(stored, (axes - 2, axes - 1, *range(axes - 2))), UnitLayout("filter")
    if kind == "heads" and axes == 3:
        return turned(stored, (1, 2, 0), (shape[1] * shape[2], shape[0])), UnitLayout(
            part_of_heads(name), head=shape[2]
        )
    if kind == "output heads" and axes == 3:
        return turned(stored, (2, 0, 1), (shape[2], shape[0] * shape[1])), UnitLayout(
            "attention output", head=shape[1], head_inputs=True
        )
    if axes >= 3:
        return turned(stored, (axes - 1, axes - 2, *range(axes - 2))), UnitLayout("filter")
    if re.split(r"[./]", name)[-1].startswith("bias"):
        return stored, "biases of a recurrent layer: one number a unit is no direction"
    if kind == "recurrent":
        states = arrays.get(_state(name))
        size = states.shape[0] if states is not None and states.shape else 0
        gates = _GATES.get(shape[1] // size, ()) if size and shape[1] % size == 0 else ()
        return turned(stored, (1, 0)), UnitLayout(RECURRENT, parts=tuple((gate, size) for gate in gates))
    return turned(stored, (1, 0)), UnitLayout()
