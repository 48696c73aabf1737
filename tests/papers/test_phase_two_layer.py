"""The phase diagram of two-layer networks: its initialization, its edge, and the whole map."""

import numpy as np
import pytest

from condensation.measure._crossing import zeros
from condensation.papers.phases import TwoLayer, two_layer
from condensation.seeds import Seed
from condensation.sweeps import Local, run_sweep


def test_the_initialization_has_the_exponents():
    sweep = TwoLayer.sweep(3, 1)
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
    found = zeros(gamma, slope)
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
    sweep = TwoLayer.sweep()
    assert (min(sweep.axes["m"]), max(sweep.axes["m"])) == (100, 3000)
    table = run_sweep(sweep, tmp_path, Local(1))
    assert table.complete
    gamma, prime = (np.array(table.sweep.axes[name]) for name in ("gamma", "gamma_prime"))
    slope = TwoLayer({TwoLayer.name: table}).slopes
    off = np.abs(zeros(gamma, np.median(slope, axis=-1)) - two_layer.edge(prime))
    assert (prime < 0).sum() >= 4
    assert (prime > 0).sum() >= 4
    assert (off <= 0.1).all(), off
    ends = table.column("step") > 0
    assert (table.column("loss")[ends] <= 1.001 * two_layer.STOP * table.column("loss_first")[ends]).all()
    untrained = TwoLayer({TwoLayer.name: table.untrained()})
    assert not any(any(untrained.measured(claim.key).holds(claim.rule)) for claim in TwoLayer.claims)
