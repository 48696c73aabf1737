"""A default reduction of models that others trained keeps its promise on new samples."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALL = ("PNet", "RNet", "Silero VAD")


@pytest.mark.download
def test_small_public_models_keep_their_answers():
    line = [sys.executable, str(BENCHMARKS / "public_models.py"), "--only", *SMALL]
    done = subprocess.run(line, capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode == 3:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in done.stdout.splitlines() if row[:2] == "| "]
    first = {row[0]: row for row in rows if len(row) == 13}
    assert {*first} == {"model", "---", *SMALL}
    for name in SMALL:
        stated, unseen = (float(first[name][place]) for place in (5, 6))
        assert stated <= 0.02, first[name]
        assert unseen <= stated, first[name]
    checked = next(row for row in rows if row[0] == "Silero VAD" and len(row) == 6)[4]
    assert float(checked) < 1e-4


def test_the_page_has_no_broken_promise():
    text = (BENCHMARKS / "PUBLIC_MODELS.md").read_text(encoding="utf-8")
    found = re.search(r"(\d+) public models; on unseen samples (\d+) change .* (\d+) beyond it", text)
    assert found is not None
    assert int(found[1]) == int(found[2]) >= 10
    assert int(found[3]) == 0
    assert text.count("| yes |") + text.count("| within the margin |") + text.count("| not reduced: ") == int(found[1])


def test_every_file_that_is_used_has_a_digest():
    listed = tomllib.loads((BENCHMARKS / "public_models.toml").read_text(encoding="utf-8"))["package"]
    digests = [digest for package in listed for digest in package["files"].values()]
    assert len(listed) >= 15
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
