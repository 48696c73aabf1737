"""``condensation reproduce``."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from .._writing import check_folder
from ._output import FAILED, Maybe, figure_progress, limit, print_json, print_rows

COLOURS = {"reproduced": "green", "partly": "yellow", "not reproduced": "red", "not decided": "blue", "not run": "dim"}


def reproduce(
    names: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[NAME ...]", help_behavior_hint="")
    ] = (),
    /,
    scale: Maybe[Literal["quick", "paper"]] = None,
    seeds: Maybe[int] = None,
    out: Path = Path("out"),
    force: bool = False,
    n_jobs: Maybe[int] = None,
    optimizer: Maybe[Literal["adam", "gradient_flow", "normalised_gd", "gd"]] = None,
    learning_rate: Maybe[float] = None,
    eps: Maybe[float] = None,
    threshold: Maybe[float] = None,
    init_scale: Maybe[float] = None,
    output_scale: Maybe[float] = None,
    dtype: Maybe[Literal["float64", "float32", "tf32"]] = None,
    rotated: bool = False,
    memory: Maybe[str] = None,
    json: bool = False,
) -> None:
    """Make the papers' figures and a report on their claims.

    What is finished is not made again, and the report holds all that is finished in its folder. The options from
    --optimizer on make a variant, a section of its own in the report.

    Args:
        names: figures to make, such as fc-fig3; by default all of them (listed above) but those on request.
        scale: paper for the captioned settings, quick for what two cores can do; on a CPU quick by default.
        seeds: number of seeds of data and initialization; by default 10, and 3 for convolutional networks and ResNets
            (5 and 1 at the paper's scale).
        out: the folder for figures, data, runs, claims.json and index.html.
        force: train and make also what is finished.
        n_jobs: number of processes that train; by default one for each core, at most four, and one on a GPU.
        optimizer: the optimizer in place of the captioned Adam.
        learning_rate: the learning rate of the optimizer.
        eps: the eps of Adam.
        threshold: the cosine that decides which units are of one line.
        init_scale: a factor for the standard deviations of all initial weights.
        output_scale: a factor for the standard deviation of the output layer alone.
        dtype: the precision.
        rotated: rotate the inputs of synthetic data at random.
        memory: the most memory that it may take, such as 4GiB; by default what is free.
        json: print the claims as JSON.
    """
    from ..papers import Variant
    from ..papers import reproduce as run

    limit(memory)
    check_folder(out)
    variant = Variant(optimizer, learning_rate, eps, threshold, init_scale, output_scale, dtype, rotated or None)
    with figure_progress() as progress:
        sections = run(
            names,
            scale=scale,
            seeds=seeds,
            variant=variant,
            out=out,
            force=force,
            n_jobs=n_jobs,
            progress=progress,
        )
    claims = [claim for section in sections for claim in section.claims]
    if json:
        print_json(claims)
    else:
        print_rows(("claim", "expected", "median", "holds", "verdict"), map(row_of, claims))
        for section in sections:
            if section.status != "done":
                print(f"{section.name} {'failed' if section.status == 'failed' else 'was not run'}: {section.reason}")
        print(f"report: {out / 'index.html'}")
    if any(section.status == "failed" for section in sections):
        sys.exit(FAILED)


def list_figures() -> None:
    """Put the names and titles of all figures into the help text; they are imported for nothing else."""
    from ..papers import FIGURES

    width = max(map(len, FIGURES))
    rows = "\n    ".join(
        f"- {name:{width}}  {figure.title}{' (on request)' if figure.on_request else ''}"
        for name, figure in FIGURES.items()
    )
    assert reproduce.__doc__ is not None
    reproduce.__doc__ = reproduce.__doc__.replace("    Args:\n", f"    {rows}\n\n    Args:\n", 1)


def row_of(claim: dict[str, Any]) -> tuple[str, ...]:
    """A claim as a row of the table."""
    from ..papers._report import share

    median, verdict = claim["measured"]["median"], claim["verdict"]
    middle = "-" if median is None else f"{median:.3g}"
    return claim["statement"], claim["expected"], middle, share(claim["holds"]), f"[{COLOURS[verdict]}]{verdict}[/]"
