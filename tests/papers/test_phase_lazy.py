"""Lazy against condensed: the kernel's movement beside one by hand, and the rules on tables made by hand."""

import numpy as np
import pyarrow as pa
import pytest

from condensation import GD, At, train
from condensation.papers.phases import Lazy
from condensation.papers.phases.lazy import WIDTHS, kernel
from condensation.papers.phases.two_layer import edge
from condensation.sweeps import Local, SweepTable, run_sweep


def by_hand(model, x):
    """The tangent kernel of one hidden layer of relu with a bias: by the output weights and by the input weights."""
    inputs = np.c_[x, np.ones(len(x))]
    z, a = inputs @ model.weights(1).T, model.parameters["output.weight"][0]
    back = (z > 0) * a
    return np.maximum(z, 0) @ np.maximum(z, 0).T + (back @ back.T) * (inputs @ inputs.T)


def test_the_kernel_moves_as_far_as_by_hand():
    sweep = Lazy.sweep(2, 1)
    first_cell = next(iter(sweep.cells())).experiment
    experiment = first_cell.replace(optimizer=GD(0.1), steps=3, save=At((0, 3)), record=At((0, 3)))
    run = train(experiment, 1, progress=False)
    x, _ = run.data(0)
    first, last = (by_hand(run.model(step, 0), x) for step in (0, 3))
    expected = np.linalg.norm(last - first) / np.linalg.norm(first)
    assert expected > 1e-4
    assert kernel(run, 3)["kernel"] == pytest.approx(expected, rel=1e-9)
    assert kernel(run, 0)["kernel"] == 0


def made(movement, kept, size=9):
    """A table in which the kernel's movement and the share of k_eff that is left are functions of the cell."""
    sweep, rows, places = Lazy.sweep(size, 2), [], []
    for number, cell in enumerate(sweep.cells()):
        gamma, prime, m = (float(cell.coordinates[name]) for name in ("gamma", "gamma_prime", "m"))
        for k, seed in enumerate(sweep.seeds):
            for step in sweep.experiment.saved_steps():
                found = (movement(gamma, prime, m), 80 * kept(gamma, prime)) if step else (0.0, 80.0)
                place = {"seed_data": seed.data, "seed_init": seed.init, "step": step, "loss_first": 1.0}
                rows.append(cell.coordinates | place | dict(zip(("kernel", "dense1.k_eff"), found, strict=True)))
                places.append((number, k))
    return SweepTable(sweep, pa.Table.from_pylist(rows), np.array(places), {})


def holds(table):
    figure = Lazy({Lazy.name: table})
    return {claim.key: set(figure.measured(claim.key).holds(claim.rule)) for claim in Lazy.claims}


def test_a_map_that_changes_at_the_edge_fulfils_all_but_what_says_the_opposite():
    def beyond(gamma, prime):
        return gamma - 1 - max(prime, 0.0)

    table = made(
        lambda gamma, prime, m: 0.3 * m ** beyond(gamma, prime),
        lambda gamma, prime: 1 / (1 + np.exp(np.clip(60 * beyond(gamma, prime), -50, 50))),
    )
    found = holds(table)
    assert found.pop("moving") == {False}
    assert found.pop("same") == {True}
    assert set.union(*found.values()) == {True}
    figure = Lazy({Lazy.name: table})
    np.testing.assert_allclose(figure.kernel_edge, np.tile(edge(figure.exponents[1])[:, None], 2), atol=1e-9)
    assert figure.draw().data["kernel"].shape == (9 * 9 * len(WIDTHS) * 2,)
    assert all(claim.why(figure) for claim in Lazy.claims)


def test_a_map_that_changes_elsewhere_fails_and_an_untrained_one_decides_nothing():
    table = made(lambda gamma, prime, m: 0.3 * m ** (gamma - 1.3), lambda gamma, prime: 1.0 if gamma < 0.7 else 0.2)
    found = holds(table)
    assert found["left"] == found["right"] == found["same"] == found["condensed"] == {False}
    untrained = holds(table.untrained())
    assert untrained.pop("lazy") == {None}
    assert set.union(*untrained.values()) == {False}


@pytest.mark.trials
def test_neurons_condense_beyond_the_edge_and_lazy_ones_do_not(tmp_path):
    table = run_sweep(Lazy.sweep(), tmp_path, Local(1))
    found = holds(table)
    assert found["condensed"] == found["lazy"] == found["moving"] == {True}
    assert found["left"] == {False}
