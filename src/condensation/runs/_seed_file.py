"""What a file of seeds must hold to be one, and the seeds that a run.json lists."""

from pathlib import Path
from typing import Any

import numpy as np

from .._files import read_sealed_json
from ..errors import InputError, brief
from ..experiment import Experiment
from ..seeds import Seed, as_seed
from ._run import Record


def listed_seeds(path: Path) -> dict[Seed, dict[str, Any]]:
    """The finished seeds that a run.json lists, and what it says of each."""
    entries = read_sealed_json(path).get("seeds", [])
    try:
        return {as_seed(Seed(entry.pop("data"), entry.pop("init"))): entry for entry in entries}
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not the description of a run: its seeds are {brief(entries)}") from error


def check_record(path: Path, experiment: Experiment, record: Record) -> None:
    """Refuse arrays that training this experiment cannot have left."""
    saved, recorded = len(experiment.saved_steps()), len(experiment.recorded_steps())
    shapes = {
        name: (saved, *shape)
        for layer in experiment.network.layers
        for name, shape in layer.parameters.items()
        if experiment.keeps(name)
    }
    shapes |= {name: (saved, *array.shape[1:]) for name, array in record.weights.items() if name not in shapes}
    _check_arrays(path, record.weights, shapes)
    _check_arrays(path, record.curves, dict.fromkeys(["loss", *record.curves], (recorded,)))


def _check_arrays(path: Path, arrays: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]) -> None:
    for name, shape in shapes.items():
        if name not in arrays:
            raise InputError(f"{path} is not the file of a seed: it lacks {name}")
        array = arrays[name]
        if array.shape != shape or array.dtype.kind != "f":
            raise InputError(
                f"{path} is not the file of a seed: {brief(name)} is of {array.dtype} and shape {array.shape}, not of "
                f"floating-point numbers and shape {shape}"
            )
