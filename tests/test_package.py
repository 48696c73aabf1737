"""What a user gets on import, on the command line and in the README."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import condensation
from condensation.papers import FIGURES

ROOT = Path(__file__).parents[1]


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)


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


def test_the_core_never_imports_an_extra():
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'torch_pruning', 'lightning', 'transformers', 'hypothesis',\n"
        "                                  'pytest', 'beartype', 'sklearn'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "import condensation\n"
        "for name in condensation.__all__: getattr(condensation, name)\n"
        "import condensation.cli, condensation.papers\n"
        "print('fine')"
    )
    assert python(code) == "fine"


def test_all_public_names_are_there():
    for name in condensation.__all__:
        assert getattr(condensation, name) is not None
        assert name in dir(condensation)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        condensation.nothing  # noqa: B018


def test_the_readme_example_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in (block for block in blocks if "torch" not in block):  # with PyTorch: tests/pytorch/test_docs.py
        done = run(sys.executable, "-c", block, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 10
    assert (tmp_path / "tanh.pdf").exists()


def test_the_command_line(tmp_path):
    command = (sys.executable, "-m", "condensation", "reproduce")
    done = run(*command, "fc-fig1", "--seeds", "1", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "one direction" in done.stdout
    assert (tmp_path / "out" / "index.html").exists()
    bad = run(*command, "fc-fig33", "--out", str(tmp_path / "none"))
    assert bad.returncode == 2
    said = "condensation: unknown figure 'fc-fig33'; did you mean 'fc-fig3'? Known: "
    assert bad.stderr.strip() == said + ", ".join(FIGURES)
    assert not (tmp_path / "none").exists()
