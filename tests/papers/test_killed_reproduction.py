"""A reproduction that is killed at random moments ends with the same claims and the same numbers."""

import shutil

import processes
import pytest

from condensation.papers import reproduce

NAME, SEEDS = "fc-fig5", 2


def left(out):
    """Claims and numbers, byte for byte."""
    return [(out / part).read_bytes() for part in ("claims.json", f"data/{NAME}.parquet")]


@pytest.mark.kill
def test_a_killed_reproduction_goes_on(tmp_path):
    reproduce([NAME], seeds=SEEDS, out=tmp_path / "expected", n_jobs=2)
    expected, out = left(tmp_path / "expected"), tmp_path / "out"

    def ready(process):
        runs = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*")}
        new = lambda: {path: path.stat().st_mtime_ns for path in out.glob("runs/*/[a-z]*")}  # noqa: E731
        processes.wait_until(lambda: new().items() - runs.items() or process.poll() is not None)

    def ended(process):
        code, said = processes.ended(process)
        assert code == 0, said
        assert left(out) == expected
        assert not [*out.glob("runs/*/.*")]
        shutil.rmtree(out)

    command = lambda: (*processes.COMMAND, "reproduce", NAME, "--seeds", SEEDS, "--out", out, "--n-jobs", 2)  # noqa: E731
    processes.kill_again_and_again("reproduce", command, ready, ended, longest=3.0)
