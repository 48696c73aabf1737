"""``condensation predict``."""

from pathlib import Path
from typing import Any

from .._writing import check_folder
from ..errors import InputError
from ._output import File, Maybe, cell_text, limit, print_json, print_rows, training_progress
from ._train import load_experiment


def predict(
    experiment: File,
    /,
    seeds: int = 1,
    train: bool = True,
    step: Maybe[int] = None,
    out: Path = Path("runs"),
    memory: Maybe[str] = None,
    json: bool = False,
) -> None:
    """Predict the lines of each layer before training, then train and count the neurons on them.

    Args:
        experiment: the TOML file of an experiment with a dense network, one convolution layer, or one head of
            attention (see examples/).
        seeds: number of seeds, from 0 on; each draws its own data and initial weights.
        train: train the networks and compare them with the prediction.
        step: the saved step of the comparison; by default the last one with a loss above 70% of the first.
        out: the folder of runs.
        memory: the most memory that it may take, such as 4GiB; by default what is free.
        json: print the rows as JSON.
    """
    from ..prediction import predict as predict_lines
    from ..seeds import check_count
    from ..training import train as run

    limit(memory)
    check_count(seeds)
    chosen = load_experiment(experiment)
    chosen.check_data()
    if train:
        check_folder(out)
        _check_comparison(chosen, step)
    elif step is not None:
        raise InputError("--step is of the comparison with trained networks, and --no-train leaves that out")
    predictions = [predict_lines(chosen, seed) for seed in range(seeds)]
    trajectory = None
    if train:
        with training_progress(experiment.stem) as report:
            trajectory = run(chosen, seeds, out=out, progress=report)
    rows, notes = [], []
    for seed, layers in enumerate(predictions):
        for name, prediction in layers.items():
            lines, counts, comparison = prediction.directions, None, ""
            if trajectory is not None:
                counts, comparison = _compare(trajectory, seed, name, prediction, step)
            rows += _rows(seed, name, prediction, counts)
            cube = prediction.surface == "cube"
            surface = f"{chosen.optimizer.kind} on the cube" if cube else "gradient flow on the sphere"
            certified = "all certified" if lines.certified else "not certified"
            spaces = [f"a space of {space.basis.shape[1]} dimensions attracts" for space in lines.spaces]
            parts = [f"lines of {surface}, {certified}", *spaces, prediction.note, lines.note, comparison]
            notes.append(f"seed {seed}, {name}: {'; '.join(part for part in parts if part)}")
    if json:
        print_json({"lines": rows, "notes": notes})
        return
    headings = [name.replace("_", " ") for name in (rows[0] if rows else ())]
    print_rows(headings, (["-" if value is None else cell_text(value) for value in row.values()] for row in rows))
    for note in notes:
        print(f" {note}")


def _check_comparison(experiment: Any, step: int | None) -> None:
    """Refuse a step that will not be saved, and layers that will not be kept, before anything is trained."""
    from ..runs._run import listed

    saved = experiment.saved_steps()
    if step is not None and step not in saved:
        raise InputError(f"step {step} is not among the steps that are saved: {listed(saved)}")
    for layer in experiment.network.layers[:-1]:
        if not experiment.keeps(f"{layer.name}.weight"):
            raise InputError(
                f"the layer {layer.name} is predicted and not kept (kept_layers), so that it could not be compared: "
                "keep it, or say --no-train"
            )


def _compare(trajectory: Any, seed: int, name: str, prediction: Any, step: int | None) -> tuple[Any, str]:
    """The number of neurons on each line at a saved step, and a sentence; None if they cannot be compared."""
    import numpy as np

    from ..measure import nearest_lines
    from ..measure._lines import LEAST_COSINE
    from ..networks._model import find_layer
    from ..prediction import validity
    from ..theory import compare_fates

    filters = find_layer(trajectory.experiment.network, name).is_convolution
    try:
        clock = "" if prediction.field is None else f"; {validity(trajectory, seed, layer=name)}"
    except InputError as error:  # relu has no leading order, and so no clock
        return None, str(error)
    if step is None:
        end = trajectory.initial_stage_end()[seed]
        step = int(trajectory.saved[-1] if end is None else trajectory.saved[trajectory.saved < end].max(initial=0))
    weights = trajectory.weights(name, step, seed, view="filter" if filters else None)
    lines, units = prediction.directions, "filters" if filters else "neurons"
    attracts = np.flatnonzero(lines.attracts)
    counts = np.zeros(lines.count, int)
    if len(attracts):
        nearest, cosine = nearest_lines(weights, lines.directions[attracts])
        np.add.at(counts, attracts[nearest[cosine >= LEAST_COSINE]], 1)
    result = f"{counts.sum() / len(weights):.0%} of the {units} are on a predicted line"
    if prediction.fates is not None and (prediction.fates.lines >= 0).any():
        shares = compare_fates(prediction.fates, weights)
        result = f"{shares.lines:.0%} of the {units} are on their predicted line, {shares.nearest:.0%} on its side"
    return counts, f"at step {step}: {result}{clock}"


def _rows(seed: int, name: str, prediction: Any, counts: Any) -> list[dict[str, Any]]:
    lines, fates, rows = prediction.directions, prediction.fates, []
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
                "neurons_predicted": None if fates is None else int((fates.lines == k).sum()),
                "neurons_found": None if counts is None else int(counts[k]),
            }
        )
    return rows
