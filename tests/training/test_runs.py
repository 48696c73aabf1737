"""What the runs of both kinds have in common, and the initial stage."""

from dataclasses import replace

import numpy as np
import pytest

from condensation import GD, Dense, Every, Experiment, Init, InputError, Normal, Seed, load_run, sine_sum, train
from condensation.drawing import draw_loss
from condensation.measure import measure_units
from condensation.runs import (
    INITIAL_STAGE,
    Run,
    Trajectory,
    Watched,
    WatchedLayer,
    WatchedRow,
    WatchedRun,
    WatchWriter,
    in_initial_stage,
    open_run,
    run_folder,
)

DATA = sine_sum(1, 2, 0.5, dim=2, n=16, low=-1, high=1)
EXPERIMENT = Experiment(Dense((2, 6, 1)), Init(Normal(0.5)), DATA, GD(0.5), 40, save=Every(10), record=Every(5))


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Run]:
    """A run of each kind, as it is loaded from its folder."""
    out = tmp_path_factory.mktemp("runs")
    train(EXPERIMENT, 2, out=out)
    writer = WatchWriter(
        Watched("Net", (WatchedLayer("a", "neuron", 9, 3),), Every(1), keep=("a",)), out / "watched", resume=False
    )
    for step in range(4):
        weights = np.random.default_rng(0).normal(size=(9, 3)) + step
        row = measure_units("a", weights, "neuron")
        writer.add([WatchedRow(**vars(row), step=step, loss=0.5**step if step else np.nan)], {"a": weights})
    writer.begin(lambda _: True)
    writer.write(3, finished=True)
    return {"trained": load_run(run_folder(out, EXPERIMENT)), "watched": load_run(out / "watched")}


@pytest.mark.parametrize("kind", ["trained", "watched"])
def test_both_kinds_are_runs(runs, kind):
    run = runs[kind]
    assert isinstance(run, Run)
    assert isinstance(run, Trajectory if kind == "trained" else WatchedRun)
    assert run.origin == (EXPERIMENT if kind == "trained" else None)
    shape = len(run.seeds), len(run.saved)
    for values in run.parameters.values():
        assert values.shape[:2] == shape
    for curve in run.curves.values():
        assert curve.shape == (len(run.seeds), len(run.recorded))
    for layer in run.layers:
        history = run.history(layer)
        assert history.shape[:2] == shape
        np.testing.assert_array_equal(run.weights(layer, int(run.saved[-1])), history[:, -1])
    assert not run.diverged
    assert draw_loss(run).get_ylabel() == "loss / first loss"


def test_the_initial_stage_of_a_watched_run_begins_with_its_first_known_loss(runs):
    assert runs["watched"].initial_stage_end() == (2,)  # the loss 0.5 is told with step 1
    assert runs["watched"].initial_stage_end(0.3) == (3,)
    assert runs["watched"].initial_stage_end(0.1) == (None,)


def test_the_initial_stage_ends_below_its_share():
    loss = np.array([[1.0, INITIAL_STAGE, 0.69, 0.8], [2.0, 1.5, np.nan, np.nan]])
    assert in_initial_stage(loss).tolist() == [[True, True, False, True], [True] * 4]
    trajectory = train(EXPERIMENT, 2)
    curves = trajectory.curves | {"loss": np.repeat([[4.0, 2.0], [4.0, 3.0]], [1, len(trajectory.recorded) - 1], 1)}
    assert replace(trajectory, curves=curves).initial_stage_end() == (5, None)


def test_a_run_is_found_under_its_fingerprint(tmp_path):
    folder = run_folder(tmp_path, EXPERIMENT)
    assert folder == tmp_path / EXPERIMENT.fingerprint()[:16]
    train(EXPERIMENT, 1, out=tmp_path)
    assert open_run(folder).title("0123456789") == "2-6-1, tanh, GD (012345)"
    assert [*open_run(folder).checkpoints()] == [Seed(0, 0)]
    with pytest.raises(InputError, match="holds the run of an experiment; a watched run needs one of its own"):
        WatchWriter(Watched("Net", (), Every(1)), folder, resume=True)
