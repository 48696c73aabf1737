"""Models of public packages are read as the page says, and their random controls as chance."""

import re
import subprocess
import sys
from pathlib import Path

import foreign  # noqa: F401  (the libraries of the formats are there)
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "wild.md"


@pytest.mark.download
@pytest.mark.parametrize("name", ["BeatNet", "facenet-pytorch", "basic-pitch"])
def test_a_public_model_is_read_as_the_page_says(name):
    line = [sys.executable, str(ROOT / "benchmarks" / "wild_models.py"), "--only", name]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode == 3:
        pytest.skip("its package index cannot be reached")
    assert done.returncode == 0, done.stderr
    [row] = [line for line in done.stdout.splitlines() if f"| {name} " in line]
    assert row in PAGE.read_text(encoding="utf-8")


def test_the_page_has_twenty_models_whose_controls_read_as_chance():
    page = PAGE.read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.fullmatch(r"\|.*\) \|", line)]
    assert len(rows) > 20
    *_, total = found = [[int(n) for n in re.findall(r"\| (\d+) \((\d+)\) \|", row)[0]] for row in rows]
    assert all(control <= own for own, control in found)  # controls keep the units without weights that a model has
    assert total[1] == page.count("reduce: they are constants and can go")
