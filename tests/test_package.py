"""What a user gets on import and on the command line."""

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from condensation.papers import FIGURES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "condensation"


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


def python(code: str) -> str:
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_light_and_measuring_needs_no_jax():
    code = (
        "import sys, condensation; assert 'jax' not in sys.modules and 'numpy' not in sys.modules;"
        "from condensation.measure import find_lines; import numpy as np; find_lines(np.eye(5));"
        "print([m for m in ('jax', 'torch', 'equinox', 'matplotlib') if m in sys.modules])"
    )
    assert python(code) == "[]"


def stubs() -> dict[str, list[str]]:
    """The public names that each package lists in its stub."""
    return {
        ".".join(path.parent.relative_to(PACKAGE.parent).parts): [
            alias.asname or alias.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        for path in sorted(PACKAGE.rglob("__init__.pyi"))
    }


def test_the_core_never_imports_an_extra():
    """Every name of every stub can be imported without the extras, but for the rooms that are of an extra."""
    rooms = {room: names for room, names in stubs().items() if not room.startswith("condensation.pytorch")}
    code = (
        "import sys, importlib\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'torch_pruning', 'lightning', 'transformers', 'hypothesis',\n"
        "                                  'pytest', 'beartype', 'sklearn', 'dask', 'distributed', 'ray',\n"
        "                                  'starlette', 'uvicorn', 'websockets'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        f"for room, names in {rooms}.items():\n"
        "    module = importlib.import_module(room)\n"
        "    assert [name for name in names if getattr(module, name) is None] == []\n"
        "import condensation.cli, condensation.papers\n"
        "print('fine')"
    )
    assert python(code) == "fine"


@pytest.mark.parametrize(("room", "names"), stubs().items())
def test_a_stub_lists_what_its_package_shows(room, names):
    module = importlib.import_module(room)
    assert sorted(names) == sorted(set(names)), "a name is listed twice"
    assert set(names) <= set(module.__all__) <= {*names, "__version__"}
    assert set(names) <= set(dir(module))
    with pytest.raises(AttributeError, match="attribute nothing"):
        module.nothing  # noqa: B018


def test_the_wheel_brings_stubs_templates_tables_and_the_type_marker():
    """Lazy imports read the stubs when a user's program runs."""
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert hatch["targets"]["wheel"] == {"packages": ["src/condensation"]}  # the whole folder, nothing left out
    tracked = run("git", "ls-files", "src/condensation").stdout.split()
    needed = [PACKAGE / "py.typed", *PACKAGE.rglob("__init__.pyi"), *PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.toml")]
    assert {str(path.relative_to(ROOT)) for path in needed} <= {*tracked}  # what git ignores, hatch leaves out
    lazy = [path for path in PACKAGE.rglob("__init__.py") if "attach_stub" in path.read_text(encoding="utf-8")]
    assert [path for path in lazy if not path.with_suffix(".pyi").exists()] == []


def test_the_command_line(tmp_path):
    bad = run(sys.executable, "-m", "condensation", "reproduce", "fc-fig33", "--out", str(tmp_path / "none"))
    assert bad.returncode == 2
    said = "condensation: unknown figure 'fc-fig33'; did you mean 'fc-fig3'? Known: "
    assert bad.stderr.strip() == said + ", ".join(FIGURES)
    assert not (tmp_path / "none").exists()


@pytest.mark.trials
def test_a_figure_by_the_command_line(tmp_path):
    done = run(
        sys.executable, "-m", "condensation", "reproduce", "fc-fig1", "--seeds", "1", "--out", str(tmp_path / "out")
    )
    assert done.returncode == 0, done.stderr
    assert "one direction" in done.stdout
    assert (tmp_path / "out" / "index.html").exists()
