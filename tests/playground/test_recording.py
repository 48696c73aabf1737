"""Moments that can be gone back to, in bounded memory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from condensation.playground._recording import Recording
from condensation.training import Moment


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(4, 30))
def test_the_first_and_the_last_stay_and_the_rest_is_thinned(gaps, most):
    recording, steps = Recording(most_moments=most), np.cumsum([0, *gaps]).tolist()
    for step in steps:
        recording.add(Moment(step, {"w": np.zeros(3)}, {"loss": 1.0}))
        assert len(recording) <= most
        kept = [one.step for one in recording.moments]
        assert (kept[0], kept[-1]) == (0, step)
        assert kept == sorted(set(kept))
    for asked in (0, steps[-1] // 2, steps[-1], steps[-1] + 9):
        assert recording.at(asked).step == max(step for step in kept if step <= asked)
        assert abs(recording.nearest(asked).step - asked) == min(abs(step - asked) for step in kept)
        after = recording.after(asked)
        assert (after and after.step) == next((step for step in kept if step > asked), None)


def test_bytes_are_bounded():
    recording = Recording(most_bytes=100_000)
    for step in range(500):
        recording.add(Moment(step, {"w": np.zeros(1000)}, {"loss": 1.0}))
    assert sum(one.parameters["w"].nbytes for one in recording.moments) <= 100_000
