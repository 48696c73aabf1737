"""The messages that describe a run that was opened, and a layer with its prediction."""

from typing import Any

import numpy as np

from .._phrases import counted
from ..activations import label, multiplicity
from ..experiment import Experiment
from ..networks import Attention
from ..seeds import Seed
from ._export import as_program
from ._forecast import Forecast
from ._frame import MOST_FITS, Answer, FrameBuilder
from ._runs import ShownRun
from ._settings import Settings

PARTS = {
    "query": "queries W_Q", "key": "keys W_K", "key_query": "keys and queries, merged", "value": "values W_V",
    "dense": "dense layer", "up": "feed-forward, up", "down": "feed-forward, down",
}  # fmt: skip
CURVE_POINTS = 200  # of a curve that is computed at once


def describe_run(run: ShownRun, title: str, settings: Settings | None, builder: FrameBuilder) -> Answer:
    """The message for a run that was opened; ``settings`` is None if the controls cannot express it."""
    data, moments = run.data, run.recording.moments
    header = {
        "kind": "opened",
        "settings": None if settings is None else settings.to_text(),
        "title": title,
        "live": run.trains,
        "last": None if run.trains else run.end,
        "steps": None if run.trains else [moment.step for moment in moments],
        "inputs": None if data is None else int(np.prod(data[0].shape[1:])),
        "layers": [_layer(run, name) for name in run.layers],
        "first": run.shown_first,
        "attention": run.experiment is not None and isinstance(run.experiment.network, Attention),
        "loss": _loss(run),
        "dim": builder.dim,
        "classes": bool(data is not None and data[1].shape[1] > 1),
        "seeds": [],
        "seed": None,
        "fingerprint": None if run.experiment is None else run.experiment.fingerprint(),
    }
    arrays = {"curve": curve(builder)}
    if data is not None:
        arrays["y"] = data[1][: None if builder.dim else MOST_FITS].astype(np.float32)
    if data is not None and data[0].ndim == 2:
        arrays["x"] = data[0].astype(np.float32)
    if builder.grid is not None:
        arrays["grid"] = builder.grid.astype(np.float32)
    return header, arrays


def describe_layer(builder: FrameBuilder) -> Answer:
    """The message for the layer that frames show, with its prediction."""
    run, name, forecast, shown = builder.run, builder.layer, builder.forecast, builder.chosen
    layer, image = run.layer(name), None
    if layer is not None and layer.is_convolution:
        image = [layer.weight[1] if builder.view == "filter" else 1, layer.weight[-1]]  # channels and side
        image += [1] * (len(layer.weight) == 3)  # the height, where kernels are not squares
    units, inputs = run.weights(run.first, name, builder.view).shape
    header = {
        "kind": "layer",
        "prediction": builder.number,
        "name": name,
        "view": builder.view,
        "label": _label(run, name),
        "units": units,
        "inputs": inputs,
        "p": None if builder.activation is None else multiplicity(builder.activation),
        "forecast": forecast.kind,
        "count": forecast.count,
        "orientations": forecast.orientations,
        "why": forecast.why,
        "colouring": "fate" if len(forecast.fate) else "nearest",
        "plane": {"exact": inputs == 2, "labels": _axes(run, name, forecast)},
        "image": image,
    }
    header["attention"], attention = (None, {}) if builder.heads is None else builder.heads.describe()
    arrays = {
        **{name: getattr(forecast, name).astype(np.float32) for name in ("lines", "arrows", "basis")},
        "line_xy": (forecast.lines @ forecast.basis.T).astype(np.float32),
        "attracts": forecast.attracts.astype(np.uint8),
        "fate": _of_units(forecast.fate, shown).astype(np.int16),
        "fate_sign": _of_units(forecast.sign, shown).astype(np.int8),
        "confidence": _of_units(forecast.confidence, shown).astype(np.float32),
        "curve": curve(builder),
        **attention,
    }
    return header, arrays


def curve(builder: FrameBuilder) -> np.ndarray:
    """Rows of the curve at recorded moments, evenly chosen, with the first and the last among them."""
    moments = builder.run.recording.moments
    chosen = np.unique(np.linspace(0, len(moments) - 1, min(len(moments), CURVE_POINTS)).round().astype(int))
    return np.array([builder.curve_row(moments[k]) for k in chosen], float)


def settings_title(settings: Settings) -> str:
    """The settings in one line."""
    if settings.of_tokens:
        return _title_of_attention(settings)
    orders = {name: multiplicity(name) for name in settings.layers}
    activations = [label(name) + (f" (p = {p})" if p else "") for name, p in orders.items()]
    data = {"formula": settings.formula, "points": f"{len(settings.points)} points", "digits": "digits"}[settings.data]
    size = f"{len(settings.layers)} layers of {settings.width}" if len(settings.layers) > 1 else str(settings.width)
    units = "kernels" if settings.data == "digits" else "neurons"
    return f"{size} {units} of {', '.join(activations)} on {data}"


def _title_of_attention(settings: Settings) -> str:
    heads = counted(settings.heads, "head")
    if settings.data == "sequences":
        tokens = f"{settings.n} random sequences of {settings.tokens} tokens of width {settings.width}"
        return f"softmax attention, {heads}, {label(settings.layers[0])}, on {tokens}"
    kind = "key and query merged" if settings.merged else f"of rank {settings.rank}"
    return f"linear attention, {heads}, {kind}, on regression in context with {settings.tokens} pairs"


def describe_experiment(experiment: Experiment, seed: Seed, layer: str) -> dict[str, str]:
    """An experiment with a seed as ``toml`` and as a ``python`` program."""
    return {
        "toml": f"# seed {seed_name(seed)}\n{experiment.to_toml()}",
        "python": as_program(experiment, seed, layer),
    }


def seed_name(seed: Seed) -> str:
    """A seed as the page shows it: one number, or data/initialization if they differ."""
    return str(seed.data) if seed.data == seed.init else f"{seed.data}/{seed.init}"


def _loss(run: ShownRun) -> str | None:
    """The loss by its name; None for one that is a function, or not known."""
    name = None if run.experiment is None else run.experiment.loss.name
    return name if isinstance(name, str) else None


def _layer(run: ShownRun, name: str) -> dict[str, Any]:
    units, inputs = run.weights(run.first, name, None).shape
    layer = run.layer(name)
    views = ["kernel", "filter"] if layer is not None and layer.is_convolution else []
    return {"name": name, "label": _label(run, name), "units": units, "inputs": inputs, "views": views}


def _label(run: ShownRun, name: str) -> str:
    activation = run.activation(name)
    if run.experiment is not None and isinstance(run.experiment.network, Attention):
        return _label_of_attention(run.experiment.network, name) + (f", {label(activation)}" if activation else "")
    if run.experiment is None or activation is None:
        return name
    return f"layer {[layer.name for layer in run.experiment.network.layers].index(name) + 1}, {label(activation)}"


def _label_of_attention(network: Attention, name: str) -> str:
    """A layer of attention in words, with its block where there are several."""
    kind = name.rstrip("0123456789")
    number = name[len(kind) :]
    told = PARTS.get(kind, kind)
    return f"{told}, block {number}" if number and network.depth > 1 and kind != "dense" else told


def _of_units(values: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """The values of the units shown; empty if there are no values."""
    return values[shown] if len(values) else values


def _axes(run: ShownRun, name: str, forecast: Forecast) -> list[str]:
    """Labels of the two axes of the plane."""
    if forecast.basis.shape[1] != 2:
        return ["along the first predicted line", "across it"] if forecast.count else ["widest spread", "second widest"]
    layer = run.layer(name)
    return ["weight w", "bias b"] if layer is not None and layer.has_bias else ["weight w₁", "weight w₂"]
