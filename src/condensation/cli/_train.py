"""``condensation train``."""

import sys
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape

from .._functions import look_in
from .._plain import parse_toml
from .._writing import check_folder
from ..errors import InputError
from ._output import DIVERGED, limit, number, print_json, print_rows, training_progress


def load_experiment(path: Path) -> Any:
    """An experiment from a TOML file; activations of the user (``module:function``) lie beside the file."""
    from ..experiment import Experiment

    look_in(path.parent)
    return Experiment.load(path)


def change_fields(experiment: Any, changes: tuple[str, ...]) -> Any:
    """The experiment with fields changed, each as ``field=value`` with a dotted path and a value as TOML writes it."""
    from .._serialization import value_at

    values = {}
    for change in changes:
        path, equals, text = (part.strip() for part in change.partition("="))
        if not (path and equals and text):
            raise InputError(
                f"a change is written as field=value, such as optimizer.learning_rate=1e-4, not {change!r}"
            )
        if path in values:
            raise InputError(f"the field {path} is set twice")
        try:
            value = parse_toml(f"value = {text}")["value"]
        except InputError:
            value = text  # a word, without the quotation marks that a shell takes away
        values[path] = value_at(experiment, path, value)
    return experiment.replace(**values) if values else experiment


def read_seeds(text: str) -> Any:
    """How many seeds, or a list of them: ``10`` are the seeds 0 to 9, ``3,7`` are these two, ``7,`` is this one.

    >>> read_seeds("10"), read_seeds("3,7"), read_seeds("7,")
    (10, [3, 7], [7])
    """
    parts = text.split(",")
    try:
        numbers = [int(part) for part in parts if part.strip() or len(parts) == 1]
    except ValueError:
        numbers = []
    if not numbers:
        raise InputError(f"seeds are a number, such as 10, or a list of them, such as 3,7, not {text!r}")
    return numbers if len(parts) > 1 else numbers[0]


def continued_experiment(run: Path, steps: int | None, changes: tuple[str, ...], trust: bool) -> tuple[Any, list[Any]]:
    """The experiment that goes on from the end of a run, and the seeds that the run has finished.

    Without changes it is the same training, longer. With changes it is another one that starts from the run's weights.
    """
    from ..initialization import Given
    from ..networks import Weights
    from ..runs import Trajectory, load_run
    from ..saving import At

    if steps is None:
        raise InputError("--continue needs --steps, the number of steps to go on for")
    trajectory = load_run(run, trust=trust)
    if not isinstance(trajectory, Trajectory):
        raise InputError(f"{run} is a watched run: only the run of an experiment can be continued")
    done = trajectory.experiment
    if not changes:
        return done.extended(steps), list(trajectory.seeds)
    weights = Weights.of_run(run, done.steps)
    kept = {
        name: At(tuple(step for step in schedule.chosen if step <= steps))
        for name, schedule in (("save", done.save), ("record", done.record))
        if isinstance(schedule, At)
    }
    return change_fields(done.replace(init=Given(weights), steps=steps, **kept), changes), list(weights.seeds or ())


def train(
    experiment: Annotated[Path | None, tyro.conf.Positional] = None,
    /,
    seeds: str | None = None,
    changes: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name="set", metavar="FIELD=VALUE")
    ] = (),
    continued: Annotated[Path | None, tyro.conf.arg(name="continue", metavar="RUN")] = None,
    steps: int | None = None,
    out: Path | None = None,
    trust: bool = False,
    memory: str | None = None,
    json: bool = False,
) -> None:
    """Train an experiment for several seeds and save the run. Finished seeds are not trained again.

    Args:
        experiment: the TOML file of the experiment (see examples/).
        seeds: number of seeds, from 0 on, or a list of them (3,7); each draws its own data and initial weights. By
            default 10; with --continue those of the run.
        changes: change a field of the experiment, such as optimizer.learning_rate=1e-4; may be given several times.
        continued: go on from the end of a run, instead of an experiment file, for --steps more steps: the same
            training, or with --set another one that starts from its weights.
        steps: how many steps, instead of those of the experiment file.
        out: the folder of runs; the run's own folder is named by the experiment's fingerprint. By default runs, or the
            folder that the continued run is in.
        trust: with --continue, import the modules of functions that the run names.
        memory: the most memory that it may take, such as 4GiB; by default what is free.
        json: print the result as JSON.
    """
    import numpy as np

    from ..measure import count_lines
    from ..runs import run_folder
    from ..seeds import as_seeds
    from ..training import train as run

    limit(memory)
    wanted = as_seeds(read_seeds(seeds)) if seeds is not None else None
    if (experiment is None) == (continued is None):
        raise InputError("either an experiment file or --continue RUN is needed, and not both")
    if continued is not None:
        beside = (continued if continued.name else continued.absolute()).parent
        out, title = out or beside, continued.resolve().name
        if not changes and out.resolve() != continued.resolve().parent:
            raise InputError(f"the longer run is kept beside the one that goes on, not in {out}: leave --out out")
        chosen, own = continued_experiment(continued, steps, changes, trust)
        wanted = wanted or as_seeds(own)
    else:
        assert experiment is not None
        out, title, wanted = out or Path("runs"), experiment.stem, wanted or as_seeds(10)
        check_folder(out)
        longer = () if steps is None else (f"steps={steps}",)
        chosen = change_fields(load_experiment(experiment), (*changes, *longer))
    chosen.check_data()
    if not json:
        print_rows((), ((name, escape(phrase)) for name, phrase in chosen.describe().items()))
    with training_progress(title) as report:
        trajectory = run(chosen, wanted, out=out, progress=report)
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
