"""A longer training goes on from a shorter one's end: the same bits as if it had never ended, nothing trained twice."""

import numpy as np
import pytest

import condensation as c
from condensation.runs import run_folder
from condensation.saving import Continued
from condensation.training._chunks import Chunks

BASE = c.Experiment(c.Dense((1, 4, 1)), c.Init(c.Normal(0.3)), c.two_waves(n=10), c.GD(0.1), 20)
KINDS = {
    "descent": BASE,
    "saved evenly": BASE.replace(save=c.Evenly(5), record=c.Evenly(7)),
    "listed steps": BASE.replace(save=c.At((3,))),
    "adam in batches, float32": BASE.replace(optimizer=c.Adam(1e-2), batch_size=4, dtype="float32"),
    "dropout": BASE.replace(network=c.Dense((1, 4, 1), dropout=0.3)),
    "flow": BASE.replace(optimizer=c.GradientFlow(0.1), save=c.Every(10), record=c.Every(5)),
}


def trained(experiment, seeds, out=None):
    """The trajectory, and how many steps all seeds together took for it."""
    taken, took = [], Chunks.took
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chunks, "took", lambda self, seconds, steps: (taken.append(steps), took(self, seconds, steps)))
        return c.train(experiment, seeds, out=out), sum(taken)


def assert_same(one, other):
    for mine, theirs in ((one.parameters, other.parameters), (one.curves, other.curves)):
        assert mine.keys() == theirs.keys()
        for name, values in mine.items():
            np.testing.assert_array_equal(values, theirs[name], err_msg=name)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [1, 13])
def test_the_numbers_are_those_of_a_training_that_never_ended(kind, more, tmp_path):
    short = KINDS[kind]
    c.train(short, 2, out=tmp_path)
    longer = short.extended(more)
    assert [step for step in longer.saved_steps() if step <= short.steps] == short.saved_steps()
    continued, taken = trained(longer, 2, tmp_path)
    assert taken <= 2 * (more + 1)  # one more is taken at the end to record there
    assert_same(continued, c.train(longer, 2))
    assert_same(c.load_run(run_folder(tmp_path, longer)), continued)


def test_networks_with_convolutions_go_on_too(tmp_path):
    data = c.Arrays(np.random.default_rng(0).normal(size=(6, 1, 5, 5)), np.ones(6))
    short = c.Experiment(c.Conv((1, 5, 5), (2,), 3, 1), c.Init(c.Normal(0.3)), data, c.Adam(0.01), 3)
    c.train(short, 1, out=tmp_path)
    continued, taken = trained(short.extended(2), 1, tmp_path)
    assert taken <= 3
    assert_same(continued, c.train(short.extended(2), 1))


def test_more_seeds_and_again_longer(tmp_path):
    c.train(BASE, 1, out=tmp_path)
    longer = BASE.extended(5)
    assert_same(c.train(longer, 2, out=tmp_path), c.train(longer, 2))  # one seed goes on, one begins
    again = longer.extended(30)
    continued, taken = trained(again, 1, tmp_path)
    assert taken <= 31  # the longest one counts
    assert_same(continued, c.train(again, 1))


def test_other_trainings_do_not_go_on(tmp_path):
    short = BASE.replace(save=c.Every(20), record=c.Every(20))
    c.train(short, 1, out=tmp_path)
    for other in (
        short.replace(**{"optimizer.learning_rate": 0.2, "steps": 40}),
        short.replace(steps=30, save=c.Evenly(7)),  # rows that the short one did not keep: 5, 10, 15
        short.replace(steps=10),
    ):
        continued, taken = trained(other, 1, tmp_path)
        assert taken > other.steps
        assert_same(continued, c.train(other, 1))


def test_a_seed_that_diverged_stays_so(tmp_path):
    wild = BASE.replace(
        network=c.Dense((1, 4, 1), "x2_tanh"), optimizer=c.GD(1e4), init=c.Init(c.Normal(3.0)), save=c.Every(1)
    )
    with pytest.warns(c.training.Diverged):
        short = c.train(wild, 2, out=tmp_path)
    with pytest.warns(c.training.Diverged):
        longer = c.train(wild.extended(10), 2, out=tmp_path)
    with pytest.warns(c.training.Diverged):
        assert_same(longer, c.train(wild.extended(10), 2))
    assert longer.diverged == short.diverged


def test_a_divergence_is_told_at_the_first_recorded_step_that_sees_it(tmp_path):
    wild = BASE.replace(
        network=c.Dense((1, 4, 1), "x2_tanh"), optimizer=c.GD(1e4), init=c.Init(c.Normal(3.0)), save=c.Every(1)
    )
    sparse = wild.replace(steps=40, save=c.Every(20), record=c.Every(20))
    with pytest.warns(c.training.Diverged):
        c.train(wild, 2, out=tmp_path)
    with pytest.warns(c.training.Diverged):
        longer = c.train(sparse, 2, out=tmp_path)
    with pytest.warns(c.training.Diverged):
        alone = c.train(sparse, 2)
    assert longer.diverged == alone.diverged != {}
    assert_same(longer, alone)


def test_a_damaged_or_missing_shorter_run_is_left_alone(tmp_path):
    c.train(BASE, 1, out=tmp_path)
    (file,) = run_folder(tmp_path, BASE).glob("data*.safetensors")
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(bytes(content))
    assert_same(c.train(BASE.extended(5), 1, out=tmp_path), c.train(BASE.extended(5), 1))


def test_the_schedule_of_a_training_that_went_on():
    schedule = Continued(c.At((2, 5)), until=10, then=c.Evenly(3))
    assert schedule.steps(20) == [0, 2, 5, 10, 15, 20]
    assert len(schedule.steps(20)) <= schedule.most(20)
    with pytest.raises(c.InputError, match="goes on after step 10 ends later, not at step 10"):
        schedule.steps(10)
    experiment = BASE.replace(steps=20, save=schedule)
    assert c.Experiment.from_toml(experiment.to_toml()) == experiment
    with pytest.raises(c.InputError, match="steps must be a whole number of at least 1, not 0"):
        BASE.extended(0)
