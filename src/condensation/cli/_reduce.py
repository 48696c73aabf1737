"""``condensation reduce``."""

from pathlib import Path

from .._functions import look_in
from .._writing import check_folder, make_folder
from ..errors import InputError, check_whole
from ._output import File, Maybe, Several, cell_text, limit, number, print_json, print_rows

ERRORS = ("centred_error", "untrained_error", "pruned_error")


def reduce(
    run: File,
    /,
    step: Maybe[int] = None,
    threshold: Maybe[float] = None,
    units: Maybe[int] = None,
    error: Maybe[float] = None,
    layers: Several[str] = (),
    out: Maybe[Path] = None,
    trust: bool = False,
    memory: Maybe[str] = None,
    json: bool = False,
) -> None:
    """Reduce a run's networks: the units of one line become one unit.

    The centred error of each reduced network stands beside those of the untrained network reduced to the same sizes
    and of magnitude pruning to the same sizes.

    Args:
        run: the folder of a run.
        step: a saved step; the last one if not given.
        threshold: the cosine that decides which units are of one line (0.95 if nothing is chosen).
        units: instead, the number of units left in each layer.
        error: instead, the largest centred error of the output that is allowed.
        layers: the layers to reduce; all hidden ones if not given.
        out: a folder for the reduced networks, one .safetensors file for each seed.
        trust: import the functions that the run names, from the current folder too.
        memory: the most memory that it may take, such as 4GiB; by default what is free.
        json: print the rows as JSON.
    """
    from ..reduction import reduce as shrink
    from ..reduction._reduce import check_choice
    from ..runs import open_run
    from ..runs._run import listed

    limit(memory)
    check_choice(threshold, units, error)
    if units is not None:
        check_whole("units", units)
    if out is not None:
        check_folder(out)
        if (out / "run.json").exists():
            raise InputError(f"{out} is the folder of a run, whose files the reduced networks would overwrite")
    if trust:
        look_in(Path())
    if run.exists() and not (run / "run.json").exists():
        raise InputError(
            f"{run} is not the folder of a run, which is what this command reduces; a PyTorch model is made smaller in "
            "Python, by condensation.pytorch.reduce_model(model, data)"
        )
    stored = open_run(run, trust)
    if stored.kind == "watched":
        raise InputError(f"{run} was watched: its units were kept, and no model that could be reduced")
    if step is not None and step not in (saved := stored.source.saved_steps()):
        raise InputError(f"step {step} was not saved; saved are {listed(saved)}")
    trajectory = stored.load()
    chosen = int(trajectory.saved[-1]) if step is None else step
    rows, reasons = [], []
    for seed in trajectory.seeds:
        try:
            reduction = shrink(
                trajectory.model(chosen, seed),
                trajectory.data(seed)[0],
                threshold=threshold,
                units=units,
                error=error,
                layers=layers or None,
                untrained=trajectory.model(0, seed) if 0 in trajectory.saved else None,
            )
        except InputError as problem:
            reasons.append(f"{seed.data}-{seed.init}: {problem}")
            continue
        if out is not None:
            make_folder(out)
            reduction.model.save(out / f"data{seed.data}-init{seed.init}.safetensors")
        sizes = {name: list(pair) for name, pair in reduction.sizes.items()}
        errors = {name: number(getattr(reduction, name)) for name in ERRORS}
        rows.append({"seed": f"{seed.data}-{seed.init}", "step": chosen, "sizes": sizes} | errors)
    if not rows:
        raise InputError(reasons[0])
    if json:
        print_json(rows)
        return
    cells = []
    for row in rows:
        sizes = [f"{before} -> {after}" for before, after in row["sizes"].values()]
        errors = ["-" if row[name] is None else cell_text(row[name]) for name in ERRORS]
        cells.append([row["seed"], str(chosen), *sizes, *errors])
    print_rows(["seed", "step", *rows[0]["sizes"], *(name.replace("_", " ") for name in ERRORS)], cells)
    for reason in reasons:
        print(f" seed {reason}")
