"""A download that is killed at random moments: no half set is believed, and the next one brings it whole."""

import os
import shutil

import numpy as np
import processes
import pytest
import tiny

from condensation import InputError
from condensation.data import _cache
from condensation.data._sources import load


@pytest.mark.kill
def test_a_killed_download_is_made_again(monkeypatch, cache):
    one, splits = tiny.make(monkeypatch)
    files = tiny.idx_files(splits, zipped=True)

    def check():
        for split, wanted in splits.items():
            for found, expected in zip(load("tiny").splits[split], wanted, strict=True):
                np.testing.assert_array_equal(found, expected)

    def ready(process):
        if _cache.holds(one):  # killed when all was there
            check()
            shutil.rmtree(cache / "tiny")
        before = len(asked)
        processes.wait_until(lambda: len(asked) > before or process.poll() is not None)

    def ended(process):
        code, said = processes.ended(process)
        assert code == 0, said
        check()
        shutil.rmtree(cache / "tiny")

    with processes.slow_host(files, 0.2) as (address, asked):
        command = lambda: processes.fetching(address)  # noqa: E731
        processes.kill_again_and_again("download", command, ready, ended, longest=1.2, env={**os.environ})
    assert not _cache.holds(one)
    monkeypatch.setenv("CONDENSATION_DATA", str(cache))
    with pytest.raises(InputError, match="cannot be had"):  # nothing of it is taken for the set's files
        load("tiny")
