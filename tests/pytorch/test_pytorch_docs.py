"""The programs with PyTorch in the docs run as they stand, the examples on less data."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from condensation import load_run

pytestmark = pytest.mark.pytorch
ROOT = Path(__file__).parents[2]
TEXTS = [(ROOT / name).read_text() for name in ("docs/pytorch.md", "docs/first-steps.md")]
FOUND = [
    block for text in TEXTS for block in re.findall(r"(?<!<!-- not run -->\n)```python\n(.*?)```", text, re.DOTALL)
]
SNIPPETS = [block for block in FOUND if "torch" in block]


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_a_snippet_runs(number, tmp_path):
    command = [sys.executable, "-W", "error", "-c", SNIPPETS[number]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_mnist_on_digits(tmp_path):
    main = runpy.run_path(str(ROOT / "examples" / "pytorch_mnist.py"))["main"]
    sizes = {"epochs": 30, "width": 60, "channels": 6, "conv_images": 1000, "conv_epochs": 4, "asked": 0.95}
    found = main(tmp_path / "out", name="digits", samples=1000, conv_samples=500, **sizes)
    for start, numbers in found.items():
        assert 0 < numbers["units"] < 60
        assert numbers["merged, agreement"] >= numbers["pruned, agreement"]
        name = start.replace(" ", "-")
        small = load_file(tmp_path / "out" / f"{name}.safetensors")
        assert len(small["1.weight"]) == numbers["units"]
        run = load_run(tmp_path / "out" / name)
        assert run.recorded[0] == 0
        assert np.isfinite(run.curves["k_eff/1.weight"]).all()
    assert (tmp_path / "out" / "mnist.png").stat().st_size > 10_000


def test_a_small_gpt(tmp_path):
    main = runpy.run_path(str(ROOT / "examples" / "pytorch_gpt.py"))["main"]
    watchers = main(tmp_path / "out", steps=40, width=16, layers=1)
    for name, watcher in watchers.items():
        assert {row.layer.rsplit("[")[-1] for row in watcher.rows if "c_attn" in row.layer} == {"q]", "k]", "v]"}, name
        assert watcher.rows[-1].step == 40
    assert (tmp_path / "out" / "gpt.png").stat().st_size > 10_000
