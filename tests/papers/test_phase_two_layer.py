"""The phase diagram of two-layer networks: its start, its edge, and the whole map."""

import numpy as np
import pytest

from condensation.papers import Variant
from condensation.papers.phases import two_layer
from condensation.seeds import Seed
from condensation.sweeps import Local, run_sweep


def test_the_start_has_the_exponents():
    sweep = two_layer.sweeps(3, 1)[two_layer.NAME]
    for cell in sweep.cells():
        m, init = int(cell.coordinates["m"]), cell.experiment.init
        assert cell.experiment.network.widths == (1, m, 1)
        drawn = init.draw(cell.experiment.network, Seed(0, 0).init_stream())
        w, a = np.sqrt(np.mean(drawn["dense1.weight"] ** 2)), np.sqrt(np.mean(drawn["output.weight"] ** 2))
        gamma, prime = -np.log(a * w) / np.log(m), -np.log(a / w) / np.log(m)
        assert abs(gamma - cell.coordinates["gamma"]) < 0.1  # by the m numbers that are drawn
        assert abs(prime - cell.coordinates["gamma_prime"]) < 0.1
        half = m // 2
        assert np.array_equal(drawn["output.weight"][:, half:], -drawn["output.weight"][:, :half])


def test_zeros_by_a_straight_line():
    gamma = np.array([0.5, 1.0, 1.5, 2.0])
    slope = np.stack([gamma - 1.2, -(gamma - 1.2), np.array([-1.0, 1.0, -1.0, 1.0])], axis=1)
    found = two_layer.zeros(gamma, slope)
    assert abs(found[0] - 1.2) < 1e-12
    assert np.isnan(found[1:]).all()  # it falls; it changes its sign more than once


def test_the_exponents_meet_at_their_borders():
    prime = np.array([-0.6, -0.2, 0.0])
    both = two_layer.exponent(1 - prime, prime), (1 - prime - prime - 1) / 2
    assert np.allclose(both, -prime)  # gamma - 1, and (gamma - prime - 1)/2
    found = two_layer.exponent(np.array([0.5, 1.0, 1.2, 1.4, 2.0]), np.array([0.3, 0.4, 0.4, 0.4, 0.4]))
    assert np.allclose(found, [-1.1, -0.8, -0.4, 0.0, 0.3])


@pytest.mark.trials
def test_the_zero_of_the_slope_is_where_theory_puts_the_edge(tmp_path):
    sweep = two_layer.sweeps()[two_layer.NAME]
    assert (min(sweep.axes["m"]), max(sweep.axes["m"])) == (100, 3000)
    table = run_sweep(sweep, tmp_path, Local(1))
    assert table.complete
    gamma, prime = (np.array(table.sweep.axes[name]) for name in ("gamma", "gamma_prime"))
    slope = two_layer.slopes(table)
    off = np.abs(two_layer.zeros(gamma, np.median(slope, axis=-1)) - two_layer.edge(prime))
    assert (prime < 0).sum() >= 4
    assert (prime > 0).sum() >= 4
    assert (off <= 0.1).all(), off
    ends = table.column("step") > 0
    assert (table.column("loss")[ends] <= 1.001 * two_layer.STOP * table.column("loss_first")[ends]).all()
    untrained = two_layer.measure({two_layer.NAME: table.untrained()}, Variant())
    assert not any(rule.holds(value) for rule, value in _held(untrained))


def _held(found):
    rules = {statement.id: statement.expected for statement in two_layer.STATEMENTS}
    return [(rules[key], value) for key, seeds in found.items() for value in seeds.values]
