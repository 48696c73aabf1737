"""A report of real size: the claims and pictures that results/ keeps, with what each figure trains."""

import json
import shutil
from pathlib import Path

from condensation.papers import FIGURES, Finding, Section, Variant
from condensation.papers._rerun import command, write_experiments
from condensation.papers._variant import NotRun

RESULTS = Path(__file__).parents[2] / "results"


def fill(folder, names=()):
    """The sections of all figures, or of some, with their files in a folder."""
    (folder / "sections").mkdir(parents=True)
    shutil.copytree(RESULTS / "figures", folder / "figures")
    for picture in folder.glob("figures/*.png"):
        picture.with_suffix(".pdf").touch()
    claims = json.loads((RESULTS / "claims.json").read_text())
    (folder / "claims.json").write_text(json.dumps(claims))
    runs = {run["name"]: run for run in json.loads((RESULTS / "runs.json").read_text())}
    sections = [_section(name, claims, runs.get(name), folder) for name in names or FIGURES]
    for section in sections:
        section.write(folder / "sections")
    return sections


def _section(name, claims, run, folder):
    figure = FIGURES[name]
    try:
        experiments = write_experiments(figure, name, folder, "paper", None, Variant())
    except NotRun:  # its settings come from images that cannot be had here
        experiments = []
    about = {"command": command(name, "paper"), "experiments": experiments, "scale": "paper"}
    if run is None:
        own = [Finding(figure, claim, "paper", Variant(), why="not kept").to_plain() for claim in figure.claims]
        return Section(name, figure.title, "key", "not run", "not kept", claims=own, **about)
    longer = [other for other in FIGURES if other.startswith(f"{name}-")]
    pictures = sorted(path.stem for path in folder.glob(f"figures/{name}*.png"))
    pictures = [each for each in pictures if each == name or each.startswith(f"{name}-")]
    return Section(
        name, figure.title, "key", "done", seeds=tuple(run["seeds"]), seconds=run["seconds"], device=run["device"],
        claims=[claim for claim in claims if claim["figure"] == name], versions=run["versions"],
        pictures=[each for each in pictures if not any(each.startswith(other) for other in longer)], **about,
    )  # fmt: skip
