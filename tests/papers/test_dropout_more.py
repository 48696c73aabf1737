"""Maps, three layers, samples, kinks and images: small cases by hand, and that untrained networks fulfil nothing."""

import numpy as np
import pytest
import small_figure as small

from condensation import At, train
from condensation.papers import FIGURES
from condensation.papers._figure import Available
from condensation.papers._trainings import untrained
from condensation.papers._variant import NotRun
from condensation.papers.dropout import Deep, Kinks, Map, images
from condensation.papers.dropout.kinks import merged, sign_changes
from condensation.papers.dropout.map import KINDS
from condensation.sweeps import Local, run_sweep


@pytest.mark.parametrize("name", ["dropout-samples", "dropout-kinks", "dropout-deep"])
@pytest.mark.trials
def test_a_network_that_hardly_moved_fulfils_nothing(name):
    figure, control = small.observed(name, steps=6, seeds=2)
    small.judged(figure)
    assert not any(any(holds) for holds in small.judged(control).values())
    assert figure.draw().pictures


def test_numbers_of_mnist_are_not_asked_of_digits():
    figure, control = small.observed("dropout-mnist", steps=4, seeds=1)
    for key in ("none", "dropout", "penalty"):
        with pytest.raises(NotRun, match="paper's scale"):
            figure.measured(key)
    for key in ("dropout-gain", "penalty-gain", "ratio", "ratio-penalty"):
        assert not any(control.measured(key).holds(control.claim(key).rule))
    paper = FIGURES["dropout-mnist"].experiments("paper")["penalty"]
    assert (paper.network.widths, paper.data.n, paper.optimizer.learning_rate) == ((784, 1000, 10), 1000, 5e-3)


class TestKinks:
    def test_near_ones_are_one_and_their_slopes_add_up(self):
        places, jumps = merged(np.array([0.3, -0.2, 0.31, 0.8]), np.array([1.0, 2.0, -1.0, 3.0]), 0.05)
        np.testing.assert_allclose(places, [-0.2, 0.3, 0.8])
        np.testing.assert_allclose(jumps, [2, 0, 3], atol=1e-12)
        assert len(merged(np.array([]), np.array([]), 0.1)[0]) == 0

    def test_signs(self):
        assert [sign_changes(np.array(each)) for each in ([1.0], [1.0, -1.0], [1.0, 2.0, -1.0, -3.0, 2.0])] == [0, 1, 2]

    def test_kinks_are_where_the_slope_of_the_output_changes(self):
        figure, _ = small.observed("dropout-kinks", steps=30, seeds=1, only=("none",))
        run, (places, jumps) = figure.runs["none"], figure.kinks("none", 0)
        grid = np.linspace(-1, 1, 20_001)
        slopes = np.gradient(run.output(grid[:, None], int(run.saved[-1]), 0)[:, 0], grid)
        for place, jump in zip(places, jumps, strict=True):
            near = np.abs(places - place) < 0.03
            if near.sum() == 1 and abs(place) < 0.95:
                before, after = (slopes[np.abs(grid - place - shift).argmin()] for shift in (-0.012, 0.012))
                assert after - before == pytest.approx(jump, abs=0.021)  # kinks too small to count are in between
        assert len(places) > 3


@pytest.mark.trials
def test_untrained_networks_fulfil_nothing_of_the_map(tmp_path):
    sweeps = Map.experiments("quick")
    tables = {}
    for name, sweep in sweeps.items():
        short = sweep.experiment.replace(steps=5, save=At((0, 5)), record=At((0, 5)))
        tables[name] = run_sweep(
            type(sweep)(short, sweep.axes, sweep.fields, 2, sweep.measure, at="saved"), tmp_path / name, Local(1)
        )
    figure = Map(tables)
    assert figure.k_eff["dropout-map"].shape == (3, 3, 2, 2)
    assert figure.k_eff["dropout-map-r1"].shape == (2, 3, 2, 2)
    assert figure.draw().pictures
    control = Map({name: table.untrained() for name, table in tables.items()})
    assert not any(any(control.measured(claim.key).holds(claim.rule)) for claim in Map.claims)
    ends = figure.k_eff["dropout-map"][2, 1, :, -1]  # a half left out, gamma = 1/2
    np.testing.assert_array_equal(figure.ends("dropout-map", 0.5, 0.5).values, ends)
    assert set(KINDS) == set(tables)


@pytest.mark.trials
def test_the_late_switch_goes_on_from_the_weights_of_each_seed():
    class AllFitted(Deep):
        def fitted(self, name, share=1.0):
            return np.ones(2, bool)

    runs = {}
    for name, experiment in Deep.experiments("quick").items():
        runs[name] = train(experiment.replace(steps=8), 2, progress=False)
    figure = AllFitted(Available(runs))
    for run in figure.late.values():
        for name, values in runs["none"].parameters.items():
            np.testing.assert_allclose(run.parameters[name][:, 0], values[:, -1])
    assert figure.late["late penalty"].experiment.dropout_penalty == 0.1
    assert figure.late["late dropout"].experiment.network.dropout == 0.1
    assert not np.array_equal(
        figure.late["late penalty"].parameters["dense1.weight"][:, -1], runs["none"].parameters["dense1.weight"][:, -1]
    )
    control = Deep(Available({name: untrained(run) for name, run in runs.items()}))
    assert not control.late  # not fitted: nothing goes on
    assert np.isnan(control.after("late penalty").values).all()


def test_kinks_hold_where_training_made_one_in_each_interval():
    class Made(Kinks):
        crowded = Available({"penalty": np.array([1.0, 2.0])})

        def fitted(self, name):
            return np.array([True, True])

    assert Made(Available({})).measured("one").holds(Made.claim("one").rule) == (True, False)


def test_a_gain_is_not_decided_by_seeds_that_have_not_fitted():
    plain = images.MnistImages.experiments("quick")["none"]
    run = train(plain.replace(**{"steps": 2, "network.widths": (64, 3, 10)}), 2)
    figure = images.MnistImages(dict.fromkeys(images.KINDS, run))
    for key in ("dropout-gain", "penalty-gain"):
        assert figure.measured(key).holds(figure.claim(key).rule) == (None, None)
