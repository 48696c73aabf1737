"""The phase diagrams of initial condensation and of three layers: theory against brute force, tables, real maps."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import brentq

from condensation.papers import judge
from condensation.papers.phases import Initial, ThreeLayer, initial, three_layer
from condensation.papers.phases.two_layer import edge
from condensation.sweeps import Local, SweepTable, run_sweep

pytestmark = pytest.mark.trials
PRIME = np.linspace(-0.8, 0.8, 9)


def made(sweep, columns):
    """A table with a row for each cell, seed and saved step; ``columns`` gives what was measured there."""
    rows, places = [], []
    for number, cell in enumerate(sweep.cells()):
        for k, seed in enumerate(sweep.seeds):
            for step in sweep.experiment.saved_steps():
                place = {"seed_data": seed.data, "seed_init": seed.init, "step": step}
                rows.append(cell.coordinates | place | columns(cell.coordinates, step))
                places.append((number, k))
    return SweepTable(sweep, pa.Table.from_pylist(rows), np.array(places), {})


def held(figure, table):
    """How many seeds each claim holds in, by its key."""
    observed = figure({figure.name: table})
    return {claim.key: sum(observed.measured(claim.key).holds(claim.rule)) for claim in figure.claims}


def with_widths(figure, widths, size=3, seeds=1):
    sweep = figure.sweep(size, seeds)
    return replace(sweep, axes=dict(sweep.axes) | {"m": widths})


class TestSweeps:
    def test_initial_has_the_stds_of_two_layers(self):
        cells = list(Initial.sweep(3).cells())
        assert len(cells) == 3 * 3 * 3
        for cell in cells:
            gamma, prime, m = (cell.coordinates[name] for name in ("gamma", "gamma_prime", "m"))
            hidden, output = cell.experiment.network.layers
            laws = cell.experiment.init.laws(cell.experiment.network)
            w, a = laws[0].std_of(hidden, hidden.weight[0]), laws[1].std_of(output, output.weight[1])
            assert hidden.weight[0] == m
            assert -np.log(a * w) / np.log(m) == pytest.approx(gamma)
            assert -np.log(a / w) / np.log(m) == pytest.approx(prime, abs=1e-12)

    def test_three_layers_have_the_stds_of_their_exponents(self):
        for cell in ThreeLayer.sweep(3).cells():
            gamma, prime, m = (cell.coordinates[name] for name in ("gamma", "gamma_prime", "m"))
            network = cell.experiment.network
            laws = zip(cell.experiment.init.laws(network), network.layers, strict=True)
            first, second, last = (law.std_of(layer, layer.weight[layer.name == "output"]) for law, layer in laws)
            assert network.hidden == (m, m)
            assert second == last
            assert -np.log(first * second * last) / np.log(m) == pytest.approx(gamma)
            assert -np.log(last / first) / np.log(m) == pytest.approx(prime, abs=1e-12)

    def test_a_step_of_three_layers_is_short_for_the_linearised_network(self):
        """A tenth of 1/max (e_i e_j)^2, e the layers' sizes."""
        for cell in ThreeLayer.sweep(3).cells():
            m, init = cell.coordinates["m"], cell.experiment.init
            sizes = np.sort([m ** (0.5 - law.gamma) for law in (*init.hidden, init.output)])
            assert cell.experiment.optimizer.time_step == pytest.approx(0.1 / (sizes[1] * sizes[2]) ** 2)

    @pytest.mark.parametrize(("figure", "last"), [(Initial, initial.LONG), (ThreeLayer, three_layer.LONG)])
    def test_the_untrained_networks_are_in_the_table(self, figure, last):
        sweep = figure.sweep()
        assert sweep.at == "saved"
        assert sweep.experiment.saved_steps() == [0, last]
        assert figure.experiments("paper")[figure.name].shape[:2] == (17, 17)


class TestInitialTheory:
    SAMPLES = Initial.sweep().experiment.data

    @pytest.fixture(scope="class")
    @classmethod
    def samples(cls):
        x, y = cls.SAMPLES.draw(Initial.sweep().seeds[0])
        return np.c_[x, np.ones(len(x))], y[:, 0]

    def test_inputs_and_bias_are_uncorrelated(self, samples):
        inputs, _ = samples
        assert inputs.T @ inputs / len(inputs) == pytest.approx(np.eye(5), abs=1e-12)

    def test_what_is_needed_leaves_the_stated_loss(self):
        stream = np.random.default_rng(0)
        x = stream.standard_normal((20, 3))
        y = x @ stream.standard_normal(3) + 0.3
        inputs = np.c_[x, np.ones(20)]
        z = inputs.T @ y
        enough, count = initial.needed(x, y)
        left = lambda size: np.sum((y - size * inputs @ z / np.linalg.norm(z)) ** 2) / (y @ y)  # noqa: E731
        assert left(enough) == pytest.approx(initial.INITIAL_STAGE)
        assert left(enough / 2) > initial.INITIAL_STAGE
        assert count == 4

    @pytest.mark.parametrize(("gamma", "prime"), [(0.8, -0.5), (1.2, -0.6), (1.5, 0.0), (1.4, 0.5), (1.9, 0.4)])
    def test_the_share_is_that_of_many_linear_neurons(self, samples, gamma, prime):
        """Leading order by hand: many random neurons, moved until their output leaves 70% of the loss."""
        inputs, y = samples
        m, stream = 1000.0, np.random.default_rng(1)
        draws = 200_000
        w = m ** (-(gamma - prime) / 2) * stream.standard_normal((draws, 5))
        a = m ** (-(gamma + prime) / 2) * stream.standard_normal(draws)
        z = inputs.T @ y / len(y)
        unit = z / np.linalg.norm(z)
        v = w @ unit
        v, a = np.r_[v, v], np.r_[a, -a]  # antisymmetric

        def after(time):
            c, s = np.cosh(time), np.sinh(time)
            return v * c + a * s, a * c + v * s

        def left(time):
            new_v, new_a = after(time)
            return (
                np.mean((y - inputs @ unit * m * np.mean(new_v * new_a)) ** 2) / np.mean(y**2) - initial.INITIAL_STAGE
            )

        time = brentq(left, 1e-9, next(t for t in np.geomspace(1e-6, 20, 200) if left(t) < 0))
        square, rest = np.mean(after(time)[0] ** 2), np.mean(w**2) * 4
        found = initial.predicted(*initial.needed(inputs[:, :4], y), gamma, prime, m)
        assert found == pytest.approx(np.sqrt(square / (square + rest)), abs=0.005)

    def test_the_contour_is_where_the_share_is_half_way(self, samples):
        inputs, y = samples
        enough, count = initial.needed(inputs[:, :4], y)
        for m in (100.0, 1e4):
            gamma = initial.contour(enough, count, PRIME, m)
            assert initial.predicted(enough, count, gamma, PRIME, m) == pytest.approx(np.full(9, initial.level(count)))

    def test_the_edge_is_the_limit(self, samples):
        inputs, y = samples
        enough, count = initial.needed(inputs[:, :4], y)
        m = 1e60
        assert initial.contour(enough, count, PRIME, m) == pytest.approx(edge(PRIME), abs=0.02)
        below = initial.predicted(enough, count, edge(PRIME) - 0.1, PRIME, m)
        above = initial.predicted(enough, count, edge(PRIME) + 0.1, PRIME, m)
        assert below == pytest.approx(np.full(9, count**-0.5), abs=1e-3)
        assert above == pytest.approx(np.ones(9), abs=1e-3)

    def test_limits_of_straight_lines(self):
        m = np.array([100.0, 1000.0, 10000.0])
        found = np.array([1.0, 1.4])[:, None] + np.array([0.8, -0.3])[:, None] / np.log(m)
        assert initial.limits(found, m) == pytest.approx([1.0, 1.4])


class TestInitialOnTables:
    @staticmethod
    @cache
    def table(shift=0.0):
        sweep = Initial.sweep(9, 1)
        x, y = sweep.experiment.data.draw(sweep.seeds[0])
        enough, count = initial.needed(x, y[:, 0])

        def columns(at, step):
            share = initial.predicted(enough, count, at["gamma"] - shift, at["gamma_prime"], at["m"])
            return {"loss": 0.7 if step else 1.0, "dense1.share": float(share) if step else count**-0.5}

        return made(sweep, columns)

    def test_theory_holds_where_it_was_put_in(self):
        assert set(held(Initial, self.table()).values()) == {1}

    def test_what_is_shown(self):
        shown = Initial({Initial.name: self.table()}).draw()
        assert set(shown.pictures) == {""}
        assert {len(column) for column in shown.data.values()} == {9 * 9 * 3}
        assert len(shown.tables[0].rows) == 9

    def test_another_edge_is_seen(self):
        found = held(Initial, self.table(shift=-0.2))
        assert found["edge"] == found["dynamics"] == 0
        assert found["sharpens"] == 1

    def test_untrained_networks_fail_all(self):
        assert not any(held(Initial, self.table().untrained()).values())


class TestThreeLayerTheory:
    def test_exponents_are_those_of_three_numbers(self):
        """Three positive numbers of equal differences of squares, moved until their product has gained 1."""
        stream = np.random.default_rng(0)
        for gamma, prime in stream.uniform((1.0, -1.0), (4.5, 1.0), (300, 2)):
            sizes = 0.5 - np.array([(gamma - 2 * prime) / 3, (gamma + prime) / 3, (gamma + prime) / 3])
            changes = []
            for decades in (30.0, 40.0):
                e = 10 ** (decades * sizes)
                gain = lambda s, e=e: np.log1p(10**s / e**2).sum() / 2 - np.log1p(1 / e.prod())  # noqa: E731
                s = 10 ** brentq(gain, -150, 20, xtol=1e-12)
                changes.append(np.log10(np.expm1(np.log1p(s / e**2) / 2)))
            slope = (changes[1] - changes[0]) / 10
            expected = three_layer.exponents(gamma, prime)
            assert [slope[0], slope[1] - 0.5] == pytest.approx(expected, abs=0.05)  # less near where laws change

    def test_they_vanish_at_the_edges_and_rise_there(self):
        prime = np.linspace(-1, 1, 41)
        for layer in range(2):
            at = three_layer.edges(prime)[layer]
            assert three_layer.exponents(at, prime)[layer] == pytest.approx(np.zeros(41), abs=1e-12)
            assert (three_layer.exponents(at + 0.05, prime)[layer] > 0.01).all()
            assert (three_layer.exponents(at - 0.05, prime)[layer] < -0.01).all()

    def test_they_have_no_jumps(self):
        gamma, prime = np.meshgrid(np.linspace(1, 4.5, 701), np.linspace(-1, 1, 401), indexing="ij")
        found = three_layer.exponents(gamma, prime)
        assert np.abs(np.diff(found, axis=1)).max() < 0.02
        assert np.abs(np.diff(found, axis=2)).max() < 0.03

    def test_equal_layers(self):
        """Worked out by hand: gamma - 3/2 and gamma/3 - 1/2 of W1, gamma - 2 and gamma/3 - 1 of W2."""
        gamma, zero = np.array([1.2, 2.4, 3.6]), np.zeros(3)
        assert three_layer.exponents(gamma, zero) == pytest.approx(np.array([[-0.3, 0.3, 0.7], [-0.8, -0.2, 0.2]]))


class TestThreeLayerOnTables:
    @staticmethod
    @cache
    def table(shift=0.0, lost=(), size=9):
        def columns(at, step):
            power = three_layer.exponents(at["gamma"] - shift, at["gamma_prime"])
            change = 3 * at["m"] ** power * (step > 0)
            gone = step > 0 and (at["gamma"], at["m"]) in lost
            return {f"dense{k + 1}.change": np.nan if gone else float(change[k]) for k in range(2)}

        return made(ThreeLayer.sweep(size, 1), columns)

    def test_slopes_are_the_powers(self):
        table = self.table(size=3)
        observed = ThreeLayer({ThreeLayer.name: table})
        gamma, prime, _ = observed.exponents
        found = observed.slopes[..., 0]
        assert found == pytest.approx(three_layer.exponents(gamma[:, None], prime))
        slopes = lambda *lost: ThreeLayer({ThreeLayer.name: self.table(size=3, lost=lost)}).slopes[..., 0]  # noqa: E731
        assert slopes((2.6, 140)) == pytest.approx(found)
        two_lost = slopes((2.6, 140), (2.6, 50))
        assert np.isnan(two_lost).all(axis=(0, 2)).tolist() == [False, True, False]

    def test_what_is_shown(self):
        observed = ThreeLayer({ThreeLayer.name: self.table(size=3)})
        shown = observed.draw()
        assert set(shown.pictures) == {""}
        assert {len(column) for column in shown.data.values()} == {2 * 3 * 3}
        assert "median error is 0.00" in observed.scatter()

    def test_theory_holds_where_it_was_put_in(self):
        assert set(held(ThreeLayer, self.table()).values()) == {1}

    def test_other_edges_are_seen(self):
        assert not any(held(ThreeLayer, self.table(shift=0.6)).values())

    def test_untrained_networks_fail_all(self):
        assert not any(held(ThreeLayer, self.table().untrained()).values())


def test_a_small_map_of_initial_condensation(tmp_path):
    table = run_sweep(with_widths(Initial, (1000,)), tmp_path, Local(1))
    gamma, prime, _ = Initial({Initial.name: table}).exponents
    found = table.array("dense1.share")[:, :, 0, 0, -1]
    beyond = gamma[:, None] - edge(prime)
    assert (found[beyond >= 0.5] > 0.9).all()
    assert (found[beyond <= -0.2] < 0.55).all()
    x, y = table.sweep.experiment.data.draw(table.seeds[0])
    assert found == pytest.approx(
        initial.predicted(*initial.needed(x, y[:, 0]), gamma[:, None], prime, 1000.0), abs=0.05
    )


def test_a_small_map_of_three_layers(tmp_path):
    """At one width there is no slope; RD's powers of it are what theory says up to a factor of three."""
    table = run_sweep(with_widths(ThreeLayer, (100,)), tmp_path, Local(1))
    gamma, prime, _ = ThreeLayer({ThreeLayer.name: table}).exponents
    left = (table.array("loss") / table.array("loss_first"))[:, :, 0, 0, -1]
    ended = np.isfinite(left)  # a loose flow's stop is not always found
    assert ended.sum() >= 8
    assert left[ended] == pytest.approx(np.full(ended.sum(), three_layer.STOP))
    found = np.stack([table.array(f"{layer}.change")[:, :, 0, 0, -1] for layer in three_layer.LAYERS])
    off = np.log(found) - np.log(100) * three_layer.exponents(gamma[:, None], prime)
    assert np.abs(off[:, ended]).max() < np.log(3)


@pytest.mark.trials
@pytest.mark.parametrize(("figure", "may_fail"), [(Initial, set()), (ThreeLayer, {"exponents"})])
@pytest.mark.filterwarnings("ignore::condensation.sweeps.SweepWarning")  # a network may diverge
def test_the_whole_map(figure, may_fail, tmp_path):
    """Each claim holds at the quick scale (but the one that is told to fail), and of no untrained network."""
    table = run_sweep(figure.experiments("quick")[figure.name], tmp_path, Local(1))
    observed, control = figure({figure.name: table}), figure({figure.name: table.untrained()})
    for claim in figure.claims:
        measured = observed.measured(claim.key)
        if claim.key not in may_fail:
            assert judge(measured.holds(claim.rule)) == "reproduced", (claim.key, measured)
        assert not any(control.measured(claim.key).holds(claim.rule)), claim.key
    assert observed.draw().pictures
    assert not table.failed
