"""The two phase diagrams of our own: theory against brute force, rules on tables made by hand, real maps."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad

from condensation.measure._crossing import crossing, factor
from condensation.optimizers import Adam
from condensation.papers import judge
from condensation.papers.fc.experiments import fig3
from condensation.papers.phases import Eps, LinesDiagram, lines
from condensation.seeds import as_seeds
from condensation.sweeps import Local, SweepTable, run_sweep
from condensation.theory import _adam_growth as growing
from condensation.theory import coefficient, stationary_directions

pytestmark = pytest.mark.trials
RATE = 1e-3
DATA = fig3("tanh").data


@lru_cache
def scales_of(seed, activation):
    return growing.scales(*samples(seed), activation)


def samples(seed=0):
    return growing.with_bias(*DATA.draw(as_seeds([seed])[0]))


def measured(figure, table):
    """What each claim measures, by its key."""
    observed = figure({figure.name: table})
    return {claim.key: np.asarray(observed.measured(claim.key).values, float) for claim in figure.claims}


def fails_untrained(figure, table):
    observed = figure({figure.name: table.untrained()})
    return not any(any(observed.measured(claim.key).holds(claim.rule)) for claim in figure.claims)


def made(sweep, columns):
    """A table with a row for each cell, seed and saved step; ``columns`` gives what was measured there."""
    rows, places = [], []
    for number, cell in enumerate(sweep.cells()):
        for k, seed in enumerate(sweep.seeds):
            found = columns(cell.coordinates, seed)
            for step in sweep.experiment.saved_steps():
                place = {"seed_data": seed.data, "seed_init": seed.init, "step": step, "loss_first": 1.0}
                rows.append(cell.coordinates | place | found(step))
                places.append((number, k))
    return SweepTable(sweep, pa.Table.from_pylist(rows), np.array(places), {})


class TestCrossing:
    def test_is_where_the_straight_lines_pass(self):
        x = np.array([1.0, 2.0, 4.0, 7.0])
        y = np.random.default_rng(0).standard_normal((200, 4))
        fine = np.linspace(1, 7, 60_001)
        for falling in (False, True):
            for row, found in zip(y, crossing(x, y, 0.3, falling=falling), strict=True):
                there = np.interp(fine, x, row) <= 0.3 if falling else np.interp(fine, x, row) >= 0.3
                if there[0] or not there.any():
                    assert np.isnan(found)
                else:
                    assert found == pytest.approx(fine[there.argmax()], abs=2e-4)

    def test_beside_what_is_no_number_there_is_none(self):
        y = np.array([[0.0, np.nan, 2.0], [0.0, 1.0, np.nan], [np.nan, 0.0, 2.0]])
        assert np.isnan(crossing(np.arange(3.0), y, 1.0)).tolist() == [True, False, True]
        assert np.isnan(factor(np.array([0.0 / 1, -1.0, np.nan]), np.ones(3))[1:]).all()


class TestGrowing:
    def test_outweighed_starts_have_half_of_their_pairs_on_a_line(self):
        stream = np.random.default_rng(0)
        for inputs, cosine in ((6, 0.95), (20, 0.9)):
            moved = growing.outweighed(inputs, cosine)
            w = stream.standard_normal((2000, inputs)) + moved * stream.choice([-1, 1], inputs)
            u = w / np.linalg.norm(w, axis=1, keepdims=True)
            assert np.median((u @ u.T)[np.triu_indices(2000, 1)]) == pytest.approx(cosine, abs=0.01)

    def test_learnt_is_where_sign_descent_has_the_least_loss(self):
        inputs, y = samples()
        signs = np.sign(inputs.T @ y)
        losses = [np.mean((y - 50 * (RATE * t) ** 2 * inputs @ signs) ** 2) for t in range(300)]
        assert growing.learnt(inputs, y, 50, RATE) == pytest.approx(np.argmin(losses), abs=1)

    @pytest.mark.parametrize("p", [1, 2, 3, 4])
    def test_path_is_the_integral(self, p):
        low, high = np.array([0.01, 0.1]), np.array([0.3, 0.2])
        brute = [quad(lambda w: w**-p, a, b)[0] for a, b in zip(low, high, strict=True)]
        assert growing.path(low, high, p) == pytest.approx(brute, rel=1e-8)

    def test_the_gradient_of_a_normal_start(self):
        """Means of products of normal numbers: E|a| |z_k| for p = 1, E|a| E|2 (T w)_k| for p = 2."""
        inputs, y = samples()
        matrix = (inputs * y[:, None]).T @ inputs / len(y)
        one = np.sqrt(2 / np.pi) * np.abs(growing.pull(inputs, y)).mean()
        two = 2 / np.pi * 2 * np.linalg.norm(matrix, axis=1).mean()
        for activation, expected in (("tanh", one), ("x_tanh", two)):
            assert growing.scales(inputs, y, activation).gradient == pytest.approx(expected, rel=0.05)

    def test_the_gradient_is_a_small_networks(self):
        """The whole gradient of a network of many neurons x² tanh x, not its leading order."""
        std, stream, (inputs, y) = 1e-3, np.random.default_rng(1), samples()
        w, a = std * stream.standard_normal((5000, 6)), std * stream.standard_normal(5000)
        h = w @ inputs.T
        slope = 2 * h * np.tanh(h) + (h / np.cosh(h)) ** 2
        gradient = a[:, None] * (slope * (a @ (h**2 * np.tanh(h)) - y)) @ inputs / len(y)
        found = growing.scales(inputs, y, "x2_tanh")
        assert found.gradient * std**found.p == pytest.approx(np.abs(gradient).mean(), rel=0.1)

    @pytest.mark.parametrize("activation", ["tanh", "x_tanh", "x2_tanh"])
    def test_neurons_on_the_fastest_line_take_twice_as_long(self, activation):
        """Neurons of one size, moved by rate g/(g + eps): the law but for the finite steps."""
        inputs, y = samples()
        (p, c), found = coefficient(activation), growing.scales(inputs, y, activation)
        fastest = stationary_directions(inputs, y, p)
        along = np.mean(y * (inputs @ fastest.directions[0]) ** p)

        def grows(size, std, eps):
            w, a, steps = np.sqrt(p) * std, std, 0
            while a < size:
                g = c * abs(along) * w**p / p  # of a; w's is p^(1/2) of it while |w|^2 = p a^2
                w, a = w + RATE * c * abs(along) * a * w ** (p - 1) / (g + eps), a + RATE * g / (g + eps)
                steps += 1
            return steps

        for std in (1e-5, 1e-3):
            own = grows(std + 0.05, std, 0.0)
            eps_two = growing.doubling(np.array([std]), own, found, RATE)[0]
            assert grows(std + 0.05, std, eps_two) == pytest.approx(2 * own, rel=0.15)


class TestSweeps:
    def test_lines_has_a_start_and_its_steps_for_each_activation(self):
        sweep = LinesDiagram.sweep(9)
        cells = list(sweep.cells())
        assert len(cells) == 6 * 9
        assert sweep.experiment.saved_steps() == [0, 2, 4, 9, 21, 45, 97, 211, 460, 1000]
        assert {cell.experiment.network.activation for cell in cells} == set(lines.ACTIVATIONS)
        for cell in cells:
            laws = cell.experiment.init.laws(cell.experiment.network)
            assert {law.std for law in laws} == {cell.coordinates["init.hidden.std"]}

    def test_eps_has_eps_and_start(self):
        sweep = Eps.sweep(9)
        cells = list(sweep.cells())
        assert len(cells) == 3 * 9 * 9
        for cell in cells:
            assert isinstance(cell.experiment.optimizer, Adam)
            assert cell.experiment.optimizer.eps == cell.coordinates["optimizer.eps"]
            assert cell.experiment.dtype == "float64"
        assert sweep.experiment.saved_steps()[:2] == [0, 1]

    @pytest.mark.parametrize("figure", [LinesDiagram, Eps])
    def test_claims_are_additional_questions(self, figure):
        assert all(claim.ours for claim in figure.claims)
        assert figure.sweep(17).shape[-1] == 17


class TestLinesOnTables:
    """A map that does what theory says, and ones that do not."""

    @staticmethod
    @lru_cache
    def table(late=1.0, stays=False):
        def columns(at, seed):
            onset = late * growing.outweighed(6) * at["init.hidden.std"] / RATE
            last = late * growing.learnt(*samples(seed.data), 50, RATE)

            def found(step):
                k_eff = float(np.clip(2 * (onset / max(min(step, last), 1e-9)) ** 2, 1, 45))
                k_eff = k_eff if step < 300 or stays else max(k_eff, 9.0)
                told = {"k_eff": k_eff, "lines": 1.0, "orientations": 2.0, "cover": 1.0, "condensed": float(k_eff < 2)}
                return {"loss": 1.0 if step < 300 else 0.5} | {f"dense1.{name}": value for name, value in told.items()}

            return found

        return made(LinesDiagram.sweep(9, 1), columns)

    def test_theory_holds_where_it_was_put_in(self):
        found = measured(LinesDiagram, self.table())
        assert (found["onset"] < 1.3).all()  # 9 cells are far apart
        assert (found["edge"] < 1.3).all()
        assert (found["small"] <= 1.5).all()
        assert (found["transient"] == 9).all()
        assert (found["inside"] == 1).all()
        assert (found["ordinary"] == 45).all()

    def test_a_late_onset_and_lines_that_stay_are_seen(self):
        assert measured(LinesDiagram, self.table(late=3.0))["onset"] == pytest.approx([3], rel=0.3)
        stays = measured(LinesDiagram, self.table(stays=True))
        assert (stays["transient"] == 1).all()
        assert (stays["inside"] < 0.9).all()

    def test_untrained_networks_fail_all(self):
        assert fails_untrained(LinesDiagram, self.table())


class TestEpsOnTables:
    @staticmethod
    @lru_cache
    def table(slower=1.0, same_line=False, own=40.0):
        def columns(at, seed):
            std, value = np.array([at["init.hidden.std"]]), at["optimizer.eps"]
            scale = scales_of(seed.data, at["network.activation"])
            delay = slower * own * value / growing.doubling(std, own, scale, RATE)[0]
            outgrown = growing.outgrowing(std, 2048, scale, 6, RATE)[0] > value
            g = scale.gradient * std[0] ** scale.p
            on_z = value > RATE * own * np.linalg.norm(growing.pull(*samples(seed.data))) / 2 and not same_line

            def found(step):
                begun = own + delay <= step
                told = {"k_eff": 1.0 if step and outgrown else 43.0, "lines": 1.0, "condensed": 1.0}
                told |= {"participation": 2.0 if delay > own else 49.0}
                return {f"dense1.{name}": number for name, number in told.items()} | {
                    "loss": 0.9 if begun else 1.0,
                    "begun": own + delay if begun else np.nan,
                    "moved": RATE * g / (g + value) if step else 0.0,
                    "on_z": (1.0 if on_z else 0.9) if step else 0.3,
                    "on_signs": (0.9 if on_z else 1.0) if step else 0.3,
                }

            return found

        return made(Eps.sweep(9, 1), columns)

    def test_theory_holds_where_it_was_put_in(self):
        found = measured(Eps, self.table())
        assert found["delay"] == pytest.approx([1], rel=0.01)
        assert (found["doubled"] < 1.4).all()  # 9 cells are far apart
        assert (found["first"] < 1.5).all()
        for key in ("same", "side", "line"):
            assert (found[f"{key}"] == 1).all(), key
        assert (found["few"] == 2).all()

    def test_another_delay_and_another_line_are_seen(self):
        assert measured(Eps, self.table(slower=0.25))["delay"] == pytest.approx([4], rel=0.01)
        assert (measured(Eps, self.table(same_line=True))["line"] < 0.9).all()

    def test_untrained_networks_fail_all(self):
        assert fails_untrained(Eps, self.table())


def small_sweep(figure):
    sweep = figure.sweep(3, 1)
    return replace(sweep, axes=dict(sweep.axes) | {"network.activation": ("tanh",)})


def test_a_small_map_of_lines(tmp_path):
    table = run_sweep(small_sweep(LinesDiagram), tmp_path, Local(1))
    found = measured(LinesDiagram, table)
    assert (found["small"] <= 1.5).all()
    assert (found["ordinary"] >= 25).all()
    assert (found["transient"] >= 2).all()
    shown = LinesDiagram({LinesDiagram.name: table}).draw()
    assert set(shown.pictures) == {"", "count"}
    assert {len(column) for column in shown.data.values()} == {3 * 4}


def test_a_small_map_of_eps(tmp_path):
    table = run_sweep(small_sweep(Eps), tmp_path, Local(1))
    found = Eps({Eps.name: table}).map
    assert (found.k_eff[0, :2, :, :2] <= 1.5).all()  # small starts, eps up to 1e-5
    assert (found.k_eff[0, :2, :, 2] > 25).all()  # eps 10: nothing moves
    assert (measured(Eps, table)["side"] >= 0.9).all()
    ratio = found.gradient / found.eps
    first = np.moveaxis(table.array("moved")[..., 1], 1, -1) / RATE
    assert first == pytest.approx(ratio / (1 + ratio), abs=0.15)  # a step is g/(g + eps) of the rate


@pytest.mark.trials
@pytest.mark.parametrize(("figure", "may_fail"), [(LinesDiagram, {"inside"}), (Eps, {"doubled"})])
@pytest.mark.filterwarnings("ignore::condensation.sweeps.SweepWarning")  # a network may diverge
def test_the_whole_map(figure, may_fail, tmp_path):
    """Each claim holds at the quick scale (but those that hold in some seeds), and of no untrained network."""
    table = run_sweep(figure.experiments("quick")[figure.name], tmp_path, Local(1))
    observed, control = figure({figure.name: table}), figure({figure.name: table.untrained()})
    for claim in figure.claims:
        values = observed.measured(claim.key)
        if claim.key not in may_fail:
            assert judge(values.holds(claim.rule)) == "reproduced", (claim.key, values)
        assert not any(control.measured(claim.key).holds(claim.rule)), claim.key
    shown = observed.draw()
    assert not table.failed
    assert shown.pictures
    assert shown.tables
