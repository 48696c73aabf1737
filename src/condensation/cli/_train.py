"""``condensation train``."""

import sys
from pathlib import Path
from typing import Any

from rich.markup import escape

from .._functions import look_in
from .._writing import check_folder
from ..errors import InputError
from ._output import DIVERGED, File, limit, number, print_json, print_rows, training_progress


def load_experiment(path: Path) -> Any:
    """An experiment from a TOML file; activations of the user (``module:function``) lie beside the file."""
    from ..experiment import Experiment

    look_in(path.parent)
    return Experiment.load(path)


def train(
    experiment: File, /, seeds: int = 10, out: Path = Path("runs"), memory: str | None = None, json: bool = False
) -> None:
    """Train an experiment for several seeds and save the run. Finished seeds are not trained again.

    Args:
        experiment: the TOML file of the experiment (see examples/).
        seeds: number of seeds, from 0 on; each draws its own data and initial weights.
        out: the folder of runs; the run's own folder is named by the experiment's fingerprint.
        memory: the most memory that it may take, such as 4GiB; by default what is free.
        json: print the result as JSON.
    """
    import numpy as np

    from ..measure import count_lines
    from ..runs import run_folder
    from ..seeds import check_count
    from ..training import train as run

    limit(memory)
    check_count(seeds)
    check_folder(out)
    chosen = load_experiment(experiment)
    chosen.check_data()
    if not json:
        print_rows((), ((name, escape(phrase)) for name, phrase in chosen.describe().items()))
    with training_progress(experiment.stem) as report:
        trajectory = run(chosen, seeds, out=out, progress=report)
    folder = run_folder(out, chosen)
    layers = {}
    for layer in (name for name in trajectory.layers if name != "output"):
        try:
            history = count_lines(trajectory.history(layer)[:, -1:])
            counts = [None if np.isnan(count) else int(count) for count in history.lines[:, 0]]
            lines = [] if history.reason else counts
            layers[layer] = {"lines": lines, "condensed": int(history.condensed.sum()), "reason": history.reason}
        except InputError as error:
            layers[layer] = {"lines": [], "condensed": 0, "reason": str(error)}
    result = {
        "run": str(folder),
        "fingerprint": chosen.fingerprint(),
        "seeds": len(trajectory.seeds),
        "step": int(trajectory.recorded[-1]),
        "loss": [number(value) for value in trajectory.loss[:, -1]],
        "initial_stage_end": trajectory.initial_stage_end(),
        "diverged": {f"{seed.data}-{seed.init}": step for seed, step in trajectory.diverged.items()},
        "layers": layers,
        "seconds": trajectory.seconds,
    }
    if json:
        print_json(result)
    else:
        rows = []
        for layer, counts in layers.items():
            lines = " ".join("diverged" if count is None else str(count) for count in counts["lines"])
            lines = lines or counts["reason"]
            rows.append((layer, lines, f"{counts['condensed']}/{result['seeds']}"))
        print_rows(("layer", f"lines at step {result['step']}, by seed", "condensed"), rows)
        print(f"run: {result['run']}")
    if trajectory.diverged:
        sys.exit(DIVERGED)
