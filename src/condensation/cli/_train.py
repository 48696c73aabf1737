"""``condensation train``."""

import sys
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from ..errors import InputError
from ._output import DIVERGED, Bars, File, number, print_json, print_table


def train(experiment: File, /, seeds: int = 10, out: Path = Path("runs"), json: bool = False) -> None:
    """Train an experiment for all seeds and keep the run; what is finished is not trained again.

    Args:
        experiment: a TOML file (see examples/).
        seeds: how many seeds of data and start, from 0 on.
        out: the folder of runs; the run is kept there under the experiment's fingerprint.
        json: print the result as JSON.
    """
    from ..experiment import Experiment
    from ..measure import count_lines
    from ..runs import run_folder
    from ..training import train as run

    sys.path.insert(0, str(experiment.parent.resolve()))  # activations of the user: module:function beside the file
    chosen = Experiment.load(experiment)
    if not json:
        settings = Table(show_header=False, box=None)
        for name, phrase in chosen.describe().items():
            settings.add_row(name, escape(phrase))
        print_table(settings)
    with Bars() as reporter:
        trajectory = run(chosen, seeds, out=out, progress=reporter(experiment.stem))
    folder = run_folder(out, chosen)
    last = trajectory.recorded[-1]
    layers = {}
    for layer in (name for name in trajectory.layers if name != "output"):
        try:
            history = count_lines(trajectory.history(layer)[:, -1:])
            layers[layer] = {"lines": history.lines[:, 0].tolist(), "condensed": int(history.condensed.sum())}
        except InputError as error:
            layers[layer] = {"lines": [], "condensed": 0, "reason": str(error)}
    result = {
        "run": str(folder),
        "fingerprint": chosen.fingerprint(),
        "seeds": len(trajectory.seeds),
        "step": int(last),
        "loss": [number(value) for value in trajectory.loss[:, -1]],
        "initial_stage_end": trajectory.initial_stage_end(),
        "diverged": {f"{seed.data}-{seed.init}": step for seed, step in trajectory.diverged.items()},
        "layers": layers,
        "seconds": trajectory.seconds,
    }
    if json:
        print_json(result)
    else:
        table = Table("layer", f"lines at step {last}, by seed", "condensed", box=None)
        for layer, found in layers.items():
            counts = " ".join(map(str, found["lines"])) or found["reason"]
            table.add_row(layer, counts, f"{found['condensed']}/{len(trajectory.seeds)}")
        print_table(table)
        print(f"run: {folder}")
    if trajectory.diverged:
        sys.exit(DIVERGED)
