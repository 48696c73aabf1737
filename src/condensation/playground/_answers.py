"""The messages that describe a run that was opened, and a layer with its prediction."""

from typing import Any

import numpy as np

from ..activations import label, multiplicity
from ..experiment import Experiment
from ..seeds import Seed
from ._export import as_program
from ._forecast import Forecast
from ._frame import Answer, FrameBuilder
from ._runs import ShownRun
from ._settings import Settings

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
        "dim": builder.dim,
        "classes": bool(data is not None and data[1].shape[1] > 1),
        "seeds": [],
        "seed": None,
        "fingerprint": None if run.experiment is None else run.experiment.fingerprint(),
    }
    arrays = {"curve": curve(builder)}
    if data is not None:
        arrays["y"] = data[1].astype(np.float32)
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
    arrays = {
        **{name: getattr(forecast, name).astype(np.float32) for name in ("lines", "arrows", "basis")},
        "line_xy": (forecast.lines @ forecast.basis.T).astype(np.float32),
        "attracts": forecast.attracts.astype(np.uint8),
        "fate": _of_units(forecast.fate, shown).astype(np.int16),
        "fate_sign": _of_units(forecast.sign, shown).astype(np.int8),
        "confidence": _of_units(forecast.confidence, shown).astype(np.float32),
        "curve": curve(builder),
    }
    return header, arrays


def curve(builder: FrameBuilder) -> np.ndarray:
    """Rows of the curve at recorded moments, evenly chosen, with the first and the last among them."""
    moments = builder.run.recording.moments
    chosen = np.unique(np.linspace(0, len(moments) - 1, min(len(moments), CURVE_POINTS)).round().astype(int))
    return np.array([builder.curve_row(moments[k]) for k in chosen], float)


def settings_title(settings: Settings) -> str:
    """The settings in one line."""
    orders = {name: multiplicity(name) for name in settings.layers}
    activations = [label(name) + (f" (p = {p})" if p else "") for name, p in orders.items()]
    data = {"formula": settings.formula, "points": f"{len(settings.points)} points", "digits": "digits"}[settings.data]
    size = f"{len(settings.layers)} layers of {settings.width}" if len(settings.layers) > 1 else str(settings.width)
    units = "kernels" if settings.data == "digits" else "neurons"
    return f"{size} {units} of {', '.join(activations)} on {data}"


def describe_experiment(experiment: Experiment, seed: Seed, layer: str) -> dict[str, str]:
    """An experiment with a seed as ``toml`` and as a ``python`` program."""
    return {
        "toml": f"# seed {seed_name(seed)}\n{experiment.to_toml()}",
        "python": as_program(experiment, seed, layer),
    }


def seed_name(seed: Seed) -> str:
    """A seed as the page shows it: one number, or data/initialization if they differ."""
    return str(seed.data) if seed.data == seed.init else f"{seed.data}/{seed.init}"


def _layer(run: ShownRun, name: str) -> dict[str, Any]:
    units, inputs = run.weights(run.first, name, None).shape
    layer = run.layer(name)
    views = ["kernel", "filter"] if layer is not None and layer.is_convolution else []
    return {"name": name, "label": _label(run, name), "units": units, "inputs": inputs, "views": views}


def _label(run: ShownRun, name: str) -> str:
    activation = run.activation(name)
    if run.experiment is None or activation is None:
        return name
    return f"layer {[layer.name for layer in run.experiment.network.layers].index(name) + 1}, {label(activation)}"


def _of_units(values: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """The values of the units shown; empty if there are no values."""
    return values[shown] if len(values) else values


def _axes(run: ShownRun, name: str, forecast: Forecast) -> list[str]:
    """Labels of the two axes of the plane."""
    if forecast.basis.shape[1] != 2:
        return ["along the first predicted line", "across it"] if forecast.count else ["widest spread", "second widest"]
    layer = run.layer(name)
    return ["weight w", "bias b"] if layer is not None and layer.has_bias else ["weight w₁", "weight w₂"]
