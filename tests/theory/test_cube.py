"""What each optimizer condenses on: brute force on the cube, its symmetries, and trained networks."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from condensation import (
    Adam,
    Arrays,
    At,
    Dense,
    Experiment,
    GradientFlow,
    Images,
    Init,
    InputError,
    Loss,
    Muon,
    Normal,
    NormalisedGD,
    Seed,
    SignGD,
    train,
)
from condensation.data._sampling import rotation
from condensation.theory import cube_directions, residual_at_zero, stationary_directions
from condensation.theory._tensor import unit

ACTIVATIONS = {1: "tanh", 2: "x_tanh", 3: "x2_tanh"}
few = settings(max_examples=15)
seeds = st.integers(0, 10**6)


def data(dim, seed, samples=40):
    stream = np.random.default_rng(seed)
    return stream.normal(size=(samples, dim)) + stream.normal(size=dim) / 2, stream.normal(size=samples)


def field(w, x, r, p):
    return ((w @ x.T) ** (p - 1) * r) @ x / len(x)


def rows(points):
    """A set of points as sorted rows, to compare sets."""
    return points[np.lexsort(np.round(points, 6).T)]


def test_multiplicity_one_is_the_sign_of_the_mean_field():
    x, r = data(5, 0)
    x[:, 3] = 0
    found = cube_directions(x, r, 1)
    np.testing.assert_array_equal(found.directions, np.sign(x.T @ r)[None])
    assert (found.method, found.certified, found.free.tolist()) == ("closed form", True, [0])
    assert found.values[0] == pytest.approx(np.abs(x.T @ r / 40).sum())
    np.testing.assert_array_equal(found.orientations(-1), -found.orientations(1))


@few
@given(st.integers(1, 6), st.integers(1, 4), seeds)
def test_vertices_are_those_of_brute_force(dim, p, seed):
    x, r = data(dim, seed)
    found = cube_directions(x, r, p)
    vertices = np.array(list(product([-1.0, 1.0], repeat=dim)))
    outwards = field(vertices, x, r, p) * vertices
    assert found.certified == (found.note == "")
    for sign in (1, -1):
        predicted = found.orientations(sign)
        mine = predicted[(np.abs(predicted) == 1).all(axis=1)]
        np.testing.assert_array_equal(rows(mine), rows(vertices[(sign * outwards > 0).all(axis=1)]))


@few
@given(st.integers(1, 5), seeds)
def test_multiplicity_two_is_every_face_solved(dim, seed):
    x, r = data(dim, seed)
    matrix = (x.T * r) @ x / len(x)
    found = cube_directions(x, r, 2)
    assert found.certified
    for sign in (1, -1):
        expected = []
        for face in product([-1.0, 0.0, 1.0], repeat=dim):
            w, free = np.array(face), np.array(face) == 0
            block = sign * matrix[np.ix_(free, free)]
            if free.all() or (free.any() and np.linalg.eigvalsh(block).max() >= 0):
                continue
            w[free] = np.linalg.solve(block, -sign * matrix[np.ix_(free, ~free)] @ w[~free])
            if (np.abs(w[free]) < 1).all() and (sign * (matrix @ w) * w > 0)[~free].all():
                expected.append(w)
        np.testing.assert_allclose(rows(found.orientations(sign)), rows(np.array(expected).reshape(-1, dim)), atol=1e-8)


@few
@given(st.integers(2, 7), seeds)
def test_in_the_plane_maxima_are_those_of_a_fine_walk_around_the_square(p, seed):
    x, r = data(2, seed)
    found = cube_directions(x, r, p)
    assert found.certified
    side = np.linspace(-1, 1, 5001)[:-1]
    one = np.ones(len(side))
    walk = np.concatenate([np.stack(pair, 1) for pair in ((side, -one), (one, side), (-side, one), (-one, -side))])
    for sign in (1, -1):
        value = sign * (walk @ x.T) ** p @ r
        top = (value > np.roll(value, 1)) & (value > np.roll(value, -1)) & (value > 0)
        predicted = found.orientations(sign)
        assert top.sum() == len(predicted)
        for one in predicted:
            assert np.abs(walk[top] - one).max(axis=1).min() < 1e-3


@few
@given(st.integers(2, 5), st.integers(3, 4), seeds)
def test_every_point_is_a_strict_maximum_and_ascents_end_nowhere_else(dim, p, seed):
    x, r = data(dim, seed)
    found = cube_directions(x, r, p)
    assume(found.certified)
    assert np.abs(found.directions).max(axis=1) == pytest.approx(1)
    np.testing.assert_allclose(found.values, (found.directions @ x.T) ** p @ r / len(x), rtol=1e-9)
    steps = 1e-3 * np.random.default_rng(0).normal(size=(200, 1, dim))
    near = np.clip(found.directions + steps, -1, 1)
    around = (near @ x.T) ** p @ r / len(x)
    assert (np.sign(found.values) * (found.values - around) > -1e-14 * np.abs(found.values)).all()
    searched = cube_directions(x, r, p, most_boxes=0, starts=100)
    assert (searched.method, searched.certified) == ("ascent", False)
    assert searched.note
    away = np.abs(searched.directions[:, None] - found.directions).max(axis=2).min(axis=1)
    assert (away < 1e-8).all()
    assert searched.count >= 0.6 * found.count


@few
@given(st.integers(2, 5), st.integers(1, 3), seeds, st.floats(1e-6, 1e6))
def test_the_cubes_own_symmetries_turn_the_directions_along(dim, p, seed, scale):
    x, r = data(dim, seed)
    stream = np.random.default_rng(seed)
    order, flips = stream.permutation(dim), stream.choice([-1.0, 1.0], dim)
    found, moved = cube_directions(x, r, p), cube_directions(scale * x[:, order] * flips, r, p)
    assert found.certified == moved.certified
    for sign in (1, -1):
        turned = found.orientations(sign)[:, order] * flips
        np.testing.assert_allclose(rows(moved.orientations(sign)), rows(turned), atol=1e-8)
    np.testing.assert_allclose(np.sort(moved.values), np.sort(found.values) * scale**p, rtol=1e-9)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_rotation_turns_the_spheres_lines_but_not_the_cubes(p):
    x, r = data(5, 1)
    q = rotation(5, seed=0)

    def back(predict):
        before, after = predict(x, r, p), predict(x @ q.T, r, p)
        lines = [unit(np.concatenate([found.orientations(1), found.orientations(-1)])) for found in (before, after)]
        return (lines[0] @ q.T @ lines[1].T).max(axis=1)

    assert back(stationary_directions).min() > 1 - 1e-12
    assert back(cube_directions).max() < 0.97


def test_a_rotation_is_orthogonal_and_of_its_seed():
    q = rotation(4, seed=3)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-14)
    assert not np.allclose(q, rotation(4, seed=4))


def test_what_is_no_strict_maximum_is_not_certified():
    """F = w_1^3 + 2 w_2^3: at (1, 0) the gradient and the curvature along w_2 are zero."""
    found = cube_directions(np.eye(2), [2.0, 4.0], 3)
    np.testing.assert_array_equal(found.directions, [[1, 1]])
    assert (found.certified, found.method) == (False, "ascent")
    assert "most_boxes = 100000" in found.note


@pytest.mark.parametrize("dim", [40, 700])
def test_many_inputs_are_searched(dim):
    x, r = data(dim, 0)
    found = cube_directions(x, r, 2, starts=3)
    assert not found.certified
    g = np.sign(found.values)[:, None] * field(found.directions, x, r, 2)
    inside = np.abs(found.directions) < 1
    assert np.abs(g[inside]).max(initial=0) < 1e-9
    assert (g * found.directions)[~inside].min() > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((np.ones((4, 2)), np.ones((4, 3, 1)), 1), "one number or a row of outputs each, not an array of shape"),
        ((np.ones((4, 2)), np.ones(4), 0), "the multiplicity p must be a whole number of at least 1, not 0"),
        ((np.ones((4, 2)), np.array([1.0, -1, 1, -1]), 2), "the leading-order field .* is zero for every w"),
    ],
)
def test_what_cannot_be_predicted_is_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        cube_directions(*arguments)


def several(dim, outputs, seed, samples=40):
    x, _ = data(dim, seed, samples)
    return x, np.random.default_rng(seed + 1).normal(size=(samples, outputs))


def fields(w, x, r, p):
    """The field of each output, points x outputs x inputs."""
    return np.einsum("li,ik,id->lkd", (w @ x.T) ** (p - 1), r, x) / len(x)


def vertex_pairs(x, r, p):
    """The (w, v) of all vertices w that are maxima with v = sign(T_k w^p), one row each."""
    w = np.array(list(product([-1.0, 1.0], repeat=x.shape[1])))
    each = fields(w, x, r, p)
    v = np.sign(np.einsum("lkd,ld->lk", each, w))
    strict = (np.einsum("lk,lkd->ld", v, each) * w > 0).all(axis=1)
    return np.concatenate([w, v], axis=1)[strict]


def both_sides(found):
    """The (w, v) that serve c > 0, as rows."""
    w, v = found.directions, found.outputs
    return np.concatenate([np.concatenate([w, v], axis=1), np.concatenate([-w, v * (-1) ** found.p], axis=1)])


@few
@given(st.integers(1, 7), st.integers(2, 6), seeds)
def test_pairs_of_signs_are_those_of_brute_force(dim, outputs, seed):
    x, r = several(dim, outputs, seed)
    found = cube_directions(x, r, 1)
    assert (found.certified, found.method, found.note) == (True, "enumeration", "")
    np.testing.assert_array_equal(rows(both_sides(found)), rows(vertex_pairs(x, r, 1)))
    np.testing.assert_allclose(found.values, np.abs(found.directions @ x.T @ r).sum(axis=1) / len(x))
    for sign in (1, -1):
        np.testing.assert_array_equal(found.orientations(sign), np.concatenate([found.directions, -found.directions]))


def test_many_outputs_are_searched_without_a_certificate():
    x, r = several(14, 13, 0)
    found = cube_directions(x, r, 1, starts=2000)
    assert (found.certified, found.method) == (False, "ascent")
    assert "may be missing" in found.note
    expected = {tuple(row) for row in vertex_pairs(x, r, 1)}
    listed = {tuple(row) for row in both_sides(found)}
    assert listed <= expected
    assert len(listed) > 0.9 * len(expected)


@few
@given(st.integers(1, 5), st.integers(2, 4), st.integers(2, 4), seeds)
def test_lines_of_several_outputs_are_strict_maxima_over_both_cubes(dim, outputs, p, seed):
    x, r = several(dim, outputs, seed)
    found = cube_directions(x, r, p, starts=50)
    assert not found.certified
    assert found.note
    w, v = found.directions, found.outputs
    listed = both_sides(found)[(np.abs(both_sides(found)) == 1).all(axis=1)]
    np.testing.assert_array_equal(rows(listed), rows(vertex_pairs(x, r, p)))
    steps = 1e-3 * np.random.default_rng(0).normal(size=(200, 1, dim + outputs))
    near_w, near_v = np.clip(w + steps[..., :dim], -1, 1), np.clip(v + steps[..., dim:], -1, 1)
    around = np.einsum("slk,slk->sl", near_v, (near_w @ x.T) ** p @ r / len(x))
    np.testing.assert_allclose(found.values, np.einsum("lk,lk->l", v, (w @ x.T) ** p @ r / len(x)))
    assert (around <= found.values * (1 + 1e-14)).all()


@pytest.mark.parametrize("p", [1, 2, 3])
def test_outputs_without_a_field_stay_and_equal_outputs_share_their_lines(p):
    x, r = data(4, 0)
    single = cube_directions(x, r, p)
    order = np.argsort(-np.abs(single.values), kind="stable")
    dead = cube_directions(x, np.stack([0 * r, r], axis=1), p)
    assert dead.certified == single.certified
    assert dead.values == pytest.approx(np.abs(single.values[order]))
    twice = cube_directions(x, np.stack([r, -3 * r], axis=1), p)
    assert twice.values == pytest.approx(4 * dead.values)
    for found in (dead, twice):
        cosines = np.abs(unit(found.directions) @ unit(single.directions).T)
        assert cosines.max(axis=1) == pytest.approx(1)
        assert found.attracts_positive.all()
        assert found.attracts_negative.all()
    np.testing.assert_array_equal(dead.outputs[:, 0], 0)
    np.testing.assert_array_equal(twice.outputs[:, 0], -twice.outputs[:, 1])
    np.testing.assert_array_equal(np.sign((dead.directions @ x.T) ** p @ r), dead.outputs[:, 1])


def test_a_residual_that_adds_up_to_zero_is_certified_and_a_plateau_is_not():
    x, r = several(5, 4, 3)
    assert cube_directions(x, r - r.mean(axis=1, keepdims=True), 1).certified
    for weak, lines in ((0.5, [[1, 0]]), (1.0, np.zeros((0, 2)))):  # v = (1, 1): w_2 has no gradient
        plateau = cube_directions(np.eye(2), [[1.0, 1.0], [weak, -weak]], 1)
        assert not plateau.certified
        np.testing.assert_array_equal(plateau.directions, lines)
        assert "some weight has no gradient, and any value of it is as good" in plateau.note


def runs(optimizer, datasets, p, steps):
    """A trajectory for each dataset, of 50 neurons from 5e-6 that do not leave the first plateau."""
    network = Dense((datasets[0][0].shape[1], 50, 1), ACTIVATIONS[p], bias=False)
    saved = {"save": At((0, steps)), "record": At((0, steps)), "dtype": "float64"}
    found = train(
        [Experiment(network, Init(Normal(5e-6)), Arrays(*one), optimizer, steps, **saved) for one in datasets]
    )
    assert all(run.loss[0, -1] > 0.99 * run.loss[0, 0] for run in found)
    return found


def neurons(run, step):
    """Input and output weights."""
    return run.weights(1, step, 0), run.parameters_at(step, 0)["output.weight"][0]


def trained(optimizer, datasets, p, steps):
    return [neurons(run, steps) for run in runs(optimizer, datasets, p, steps)]


def share(w, a, predicted, cosine=0.98):
    """The share of neurons on a direction that serves the sign of their output weight (c > 0 in all of these)."""
    cosines = {sign: unit(w) @ unit(predicted.orientations(sign)).T for sign in (1, -1)}
    best = [cosines[int(sign)][j].max(initial=-1) for j, sign in enumerate(np.sign(a))]
    return np.mean(np.array(best) > cosine)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.trials
def test_trained_neurons_are_on_the_lines_of_their_optimizers_ball(p):
    """Share of 50 neurons in 8 data sets with a bias that have a cosine of at least .98; random ones: below .02."""
    datasets = [biased(5, seed) for seed in range(8)]
    cube = [cube_directions(*one, p) for one in datasets]
    sphere = [stationary_directions(*one, p) for one in datasets]
    assert all(one.certified for one in cube)
    assert p == 1 or any(one.free.any() for one in cube)
    random = np.random.default_rng(0).normal(size=(500, 5))
    for own, other, optimizer, steps, least in [
        (cube, sphere, SignGD(2e-7), 3000, 0.95),
        (cube, sphere, Adam(2e-7, eps=1e-30), 3000, 0.97),
        (sphere, cube, NormalisedGD(2e-7 if p == 1 else 1e-6), 6000, 0.7),  # the rest turns on, in log t
    ]:
        ends = trained(optimizer, datasets, p, steps)
        assert np.mean([share(w, a, lines) for (w, a), lines in zip(ends, own, strict=True)]) > least
        assert np.mean([share(w, a, lines) for (w, a), lines in zip(ends, other, strict=True)]) < 0.3
        assert np.mean([share(random, np.ones(500), lines) for lines in own]) < 0.02


def biased(dim, seed):
    x, r = data(dim, seed)
    x[:, -1] = 1
    return x, r


def angles(optimizer, steps, datasets, q):
    """In degrees, between the network's line before and after a rotation of the data, turned back."""
    before = trained(optimizer, datasets, 1, steps)
    after = trained(optimizer, [(x @ q.T, r) for x, r in datasets], 1, steps)
    lines = [[np.linalg.svd(unit(w))[2][0] for w, _ in ends] for ends in (before, after)]
    return np.degrees([np.arccos(min(1, abs(u @ (v @ q)))) for u, v in zip(*lines, strict=True)])


@pytest.mark.trials
def test_adams_line_does_not_turn_with_the_data_but_the_flows_does():
    datasets, q = [data(5, seed) for seed in range(8)], rotation(5, seed=1)
    g = np.array([x.T @ r / len(x) for x, r in datasets])
    alike = [(x, r / np.linalg.norm(u)) for (x, r), u in zip(datasets, g, strict=True)]  # neurons grow as exp(t)
    assert angles(NormalisedGD(1e-7), 3000, datasets, q).max() < 1.5
    assert angles(GradientFlow(7.0, rtol=1e-5), 1, alike, q).max() < 1.5
    predicted = np.degrees(np.arccos(np.abs((np.sign(g) * (np.sign(g @ q.T) @ q)).sum(axis=1)) / 5))
    for optimizer in (Adam(2e-7, eps=1e-30), SignGD(2e-7)):
        found = angles(optimizer, 3000, datasets, q)
        np.testing.assert_allclose(found, predicted, atol=1)
        assert np.median(found) > 20


@pytest.mark.trials
def test_muon_condenses_on_the_flows_line_for_multiplicity_one():
    datasets = [data(5, seed) for seed in range(8)]
    for (x, r), (w, a) in zip(datasets, trained(Muon(1e-6, eps=1e-30), datasets, 1, 1500), strict=True):
        amplitude, cosine = np.linalg.norm(w, axis=1), np.abs(unit(w) @ unit(x.T @ r))
        assert amplitude[cosine > 0.98].sum() > 0.95 * amplitude.sum()
        assert np.corrcoef(amplitude, np.abs(a))[0, 1] > 0.99


@pytest.mark.trials
def test_muon_fills_the_space_of_each_sign_for_multiplicity_two_where_the_flow_has_a_line():
    datasets = [data(5, seed) for seed in range(8)]
    for optimizer in (Muon(1e-6, eps=1e-30), NormalisedGD(1e-6)):
        on_space, on_top = [], []
        for (x, r), (w, a) in zip(datasets, trained(optimizer, datasets, 2, 3000), strict=True):
            values, vectors = np.linalg.eigh((x.T * r) @ x)
            mass = (w @ vectors) ** 2
            serves = np.sign(values) == np.sign(a)[:, None]
            fastest = np.where(a > 0, 4, 0)
            on_space.append(mass[serves].sum() / mass.sum())
            on_top.append(mass[np.arange(len(a)), fastest].sum() / mass.sum())
            if isinstance(optimizer, Muon):
                of_units = mass.sum(axis=1)
                assert of_units.sum() ** 2 / (of_units**2).sum() < 10, "few of the 50 units carry the norm"
        assert min(on_space) > 0.99
        if isinstance(optimizer, Muon):
            assert max(on_top) < 0.7
        else:
            assert np.mean(on_top) > 0.9


@pytest.mark.trials
@pytest.mark.parametrize(
    ("activation", "loss", "least"),
    [
        ("tanh", "mse", 0.95),
        ("tanh", "cross_entropy", 0.75),
        ("x_tanh", "mse", 0.95),
        ("x_tanh", "cross_entropy", 0.75),
    ],
)
def test_neurons_of_ten_outputs_end_on_the_cubes_lines(activation, loss, least):
    """Digits 64-50-10 by Adam from 1e-5, two seeds: the share within cos .95 of a line, and of untrained neurons."""
    x, y = Images("digits", n=500).draw(Seed(0, 0))
    x = x.reshape(len(x), -1)
    experiment = Experiment(
        Dense((64, 50, 10), activation), Init(Normal(1e-5)), Arrays(x, y), Adam(1e-7, eps=1e-30), 2000, Loss(loss),
        save=At((0, 2000)), record=At((0, 2000)), dtype="float64",
    )  # fmt: skip
    run = train(experiment, seeds=2)
    lines = cube_directions(
        np.c_[x, np.ones(len(x))], residual_at_zero(y, Loss(loss)), 1 if activation == "tanh" else 2
    )
    for k in range(2):
        untrained, trained = (
            np.abs(unit(run.weights(1, step, k)) @ unit(lines.directions).T).max(axis=1) for step in (0, 2000)
        )
        assert untrained.max() < 0.7
        assert np.mean(trained > 0.95) > least
        assert run.loss[k, -1] > 0.999 * run.loss[k, 0]
