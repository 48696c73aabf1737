"""The built package, tried in a clean environment away from this tree: what a user gets from a package index.

Needs a package index, for the package's dependencies: ``make test-release``.
"""

import json
import os
import signal
import subprocess
import tarfile
import urllib.request
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from test_package import stubs

from condensation import __version__

pytestmark = pytest.mark.release
ROOT = Path(__file__).parents[1]
MIB = 2**20


def surroundings() -> dict[str, str]:
    """The environment without what would lead Python back to this tree."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return kept | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "JAX_PLATFORMS": "cpu"}


def run(*words, cwd: Path) -> str:
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, cwd=cwd, env=surroundings(), timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(folder: Path, *packages: str) -> Path:
    """A fresh environment with some packages; the folder of its commands."""
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages, cwd=folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it: those in the folder CONDENSATION_DIST, or new ones."""
    dist = Path(os.environ.get("CONDENSATION_DIST") or tmp_path_factory.mktemp("dist"))
    if not [*dist.iterdir()]:
        folder = tmp_path_factory.mktemp("build")
        run(environment(folder, "build") / "python", "-m", "build", "--outdir", dist, ROOT, cwd=folder)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def clean(built, tmp_path_factory) -> Path:
    """The commands of an environment with the wheel and the extra [play], and nothing else."""
    return environment(tmp_path_factory.mktemp("clean"), f"{built[1]}[play]")


def tracked(*under: str) -> set[str]:
    return {*run("git", "ls-files", *under, cwd=ROOT).splitlines()}


def test_the_sdist_is_the_repository_without_what_only_its_host_needs(built):
    with tarfile.open(built[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()} - {"PKG-INFO"}
    hosts = tracked(".ci", ".github", ".pre-commit-config.yaml")
    assert names == tracked() - hosts, "something is missing, or a file is not under version control"
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "constraints.txt", "tests/test_wheel.py"} <= names
    assert built[0].stat().st_size < 20 * MIB


def test_the_wheel_is_the_package_with_its_tables_pages_and_stubs(built):
    with zipfile.ZipFile(built[1]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        licenses = [name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
    package = {name.removeprefix("src/") for name in tracked("src/condensation")}
    assert names == package, "something is missing, or a file is not under version control"
    needed = ("py.typed", "__init__.pyi", "data/catalog.toml", "papers/report/index.html", "playground/page/index.html")
    assert {f"condensation/{name}" for name in needed} <= names
    assert len(licenses) == 1
    assert built[1].stat().st_size < 4 * MIB


def test_what_a_package_index_is_told(built):
    with zipfile.ZipFile(built[1]) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        told = message_from_string(archive.read(name).decode())
    assert (told["Name"], told["Version"], told["Author"]) == (
        "condensation",
        __version__,
        "The condensation developers",
    )
    assert (told["License-Expression"], told["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    pythons = {kind.rsplit(" ", 1)[1] for kind in told.get_all("Classifier", ()) if "Python :: 3." in kind}
    assert pythons == {"3.11", "3.12", "3.13"}
    assert told.get_payload() == (ROOT / "docs" / "package.md").read_text(encoding="utf-8")


def test_the_environment_is_clean_and_every_public_name_is_there(clean, tmp_path):
    run(clean / "python", "-m", "pip", "check", cwd=tmp_path)
    rooms = {room: names for room, names in stubs().items() if not room.startswith("condensation.pytorch")}
    program = (
        "import importlib, importlib.util, condensation\n"
        f"for room, names in {rooms}.items():\n"
        "    module = importlib.import_module(room)\n"
        "    assert [name for name in names if getattr(module, name) is None] == []\n"
        "print([name for name in ('torch', 'pytest', 'ray') if importlib.util.find_spec(name)])\n"
        "print(condensation.__file__)"
    )
    others, place = run(clean / "python", "-c", program, cwd=tmp_path).splitlines()
    assert others == "[]"
    assert Path(place).is_relative_to(clean.parent)
    assert run(clean / "condensation", "--version", cwd=tmp_path) == f"condensation {__version__}\n"


def test_a_figure_of_a_paper_is_reproduced(clean, tmp_path):
    said = run(clean / "condensation", "reproduce", "fc-fig3", "--seeds", "1", cwd=tmp_path)
    assert "reproduced" in said
    assert "fc-fig3" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_weights_in_a_file_are_measured(clean, tmp_path):
    """60 neurons on three lines of a space with 20 dimensions."""
    rng = np.random.default_rng(0)
    lines = np.linalg.qr(rng.normal(size=(20, 3)))[0].T
    weights = np.repeat(lines, 20, axis=0) * rng.choice([-1, 1], size=(60, 1)) * rng.uniform(1, 2, size=(60, 1))
    save_file({"layer.weight": weights.astype(np.float32)}, tmp_path / "weights.safetensors")
    (row,) = json.loads(run(clean / "condensation", "measure", "weights.safetensors", "--json", cwd=tmp_path))
    assert (row["layer"], row["units"], row["lines"]) == ("layer.weight", 60, 3)


def test_the_playground_answers_and_ends(clean, tmp_path):
    """The page and its modules by HTTP, a websocket that says hello, and Ctrl-C."""
    command = [clean / "condensation", "play", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=surroundings()) as server:
        try:
            assert server.stdout
            address = server.stdout.readline().split()[4]
            page, module = (
                urllib.request.urlopen(address + name, timeout=60).read() for name in ("", "views/index.js")
            )
            hello = (
                "from websockets.sync.client import connect\n"
                f"with connect('ws' + {address!r}[4:] + 'live', origin={address!r}.rstrip('/')) as page:\n"
                "    print(page.recv(timeout=60))"
            )
            said = run(clean / "python", "-c", hello, cwd=tmp_path)
            server.send_signal(signal.SIGINT)
            code = server.wait(timeout=60)
        finally:
            server.kill()
    assert b"<title>condensation playground</title>" in page
    assert b"export" in module
    assert "hello" in said
    assert code == 130
