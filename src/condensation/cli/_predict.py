"""``condensation predict``."""

import sys
from pathlib import Path
from typing import Any

from rich.table import Table

from ..errors import InputError
from ._output import Bars, File, in_words, print_json, print_table


def predict(
    experiment: File,
    /,
    seeds: int = 1,
    train: bool = True,
    step: int | None = None,
    out: Path = Path("runs"),
    json: bool = False,
) -> None:
    """Predict the lines of each layer before training, then train and tell how many neurons went where it said.

    Args:
        experiment: a TOML file with a dense network (see examples/).
        seeds: how many seeds of data and start, from 0 on.
        train: train the networks too, and compare.
        step: the saved step at which they are compared; the last one with the loss above 70% if not given.
        out: the folder of runs.
        json: print the rows as JSON.
    """
    from ..experiment import Experiment
    from ..optimizers import Adam, SignGD
    from ..prediction import predict as foresee
    from ..training import train as run

    sys.path.insert(0, str(experiment.parent.resolve()))  # activations of the user: module:function beside the file
    chosen = Experiment.load(experiment)
    predictions = [foresee(chosen, seed) for seed in range(seeds)]
    trajectory = None
    if train:
        with Bars() as reporter:
            trajectory = run(chosen, seeds, out=out, progress=reporter(experiment.stem))
    rows, notes = [], []
    signs = isinstance(chosen.optimizer, Adam | SignGD)
    for seed, layers in enumerate(predictions):
        for name, prediction in layers.items():
            cube = signs and not prediction.directions.oriented
            lines = prediction.on_the_cube() if cube else prediction.directions
            found, note = ({}, "") if trajectory is None else _found(trajectory, seed, name, prediction, lines, step)
            rows += _rows(seed, name, prediction, lines, found)
            ball = f"lines of {chosen.optimizer.kind} on the cube" if cube else "lines of gradient flow on the sphere"
            certified = "all certified" if lines.certified else "not certified"
            share = f"one field for all neurons to {prediction.field.share:.1%}"
            told = [f"{ball}, {certified}", share, prediction.note, lines.note, note]
            notes.append(f"seed {seed}, {name}: {'; '.join(part for part in told if part)}")
    if json:
        print_json({"lines": rows, "notes": notes})
        return
    names = list(rows[0]) if rows else []
    table = Table(*(name.replace("_", " ") for name in names), box=None)
    for row in rows:
        table.add_row(*(in_words(value) if value is not None else "-" for value in row.values()))
    print_table(table)
    for note in notes:
        print(f" {note}")


def _found(
    trajectory: Any, seed: int, name: str, prediction: Any, lines: Any, step: int | None
) -> tuple[dict[str, Any], str]:
    """Where the neurons are at a saved step, line by line, and a sentence."""
    import numpy as np

    from ..measure import nearest_lines
    from ..measure._lines import LEAST_COSINE
    from ..prediction import validity
    from ..theory import accuracy

    try:
        clock = validity(trajectory, seed, layer=name)
    except InputError as error:
        return {}, str(error)
    step = clock.loss_until() or int(trajectory.saved[0]) if step is None else step
    weights = trajectory.weights(name, step, seed)
    attracts = np.flatnonzero(lines.attracts_positive | lines.attracts_negative)
    counts = np.zeros(lines.count, int)
    if len(attracts):
        nearest, cosine = nearest_lines(weights, lines.directions[attracts])
        np.add.at(counts, attracts[nearest[cosine >= LEAST_COSINE]], 1)
    right = f" {counts.sum() / len(weights):.0%} of the neurons are on a predicted line;"
    if lines is prediction.directions and prediction.fates is not None and (prediction.fates.lines >= 0).any():
        shares = accuracy(prediction.fates, weights)
        right = f" {shares.lines:.0%} of the neurons are on their predicted line, {shares.nearest:.0%} on its side;"
    return {"step": step, "counts": counts}, f"at step {step}{right and ':'}{right} {clock}"


def _rows(seed: int, name: str, prediction: Any, lines: Any, found: dict[str, Any]) -> list[dict[str, Any]]:
    ends, rows = prediction.fates if lines is prediction.directions else None, []
    for k in range(lines.count):
        signs = ["a c > 0"] * bool(lines.attracts_positive[k]) + ["a c < 0"] * bool(lines.attracts_negative[k])
        entries = " ".join(f"{entry:.2f}" for entry in lines.directions[k][:6])
        rows.append(
            {
                "seed": seed,
                "layer": name,
                "line": k + 1,
                "value": float(lines.values[k]),
                "attracts": ", ".join(signs) or "no",
                "direction": entries + (" ..." if lines.directions.shape[1] > 6 else ""),
                "neurons_predicted": None if ends is None else int((ends.lines == k).sum()),
                "neurons_found": int(found["counts"][k]) if found else None,
            }
        )
    return rows
