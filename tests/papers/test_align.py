"""Early alignment: the duality of the least norm by brute force, active neurons by hand, verdicts over seeds."""

import numpy as np
import pytest
import small_figure as small

from condensation.papers import judge
from condensation.papers.align._cone import better, cone, cone_above, dual_maximum, teacher_of, two_cones
from condensation.papers.align.dims import Dims
from condensation.papers.align.points import ROWS


@pytest.mark.parametrize("draw", [cone, cone_above])
def test_the_dual_is_the_largest_of_many_directions(draw):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, y = draw(rng)
        teacher = teacher_of(x, y)
        nu = np.linalg.solve(x.T, teacher / np.linalg.norm(teacher))
        value, at = dual_maximum(x, teacher)
        assert abs(np.maximum(x @ at, 0) @ nu) == pytest.approx(value)
        around = at + 10.0 ** rng.uniform(-6, 1, (20_000, 1)) * rng.standard_normal((20_000, 4))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        assert np.abs(np.maximum(around @ x.T, 0) @ nu).max() <= value + 1e-9
        assert (value > 1.01) == (draw is cone_above) or value == pytest.approx(1)
        assert better(x, teacher, at) <= 1 + 1e-12
        assert (better(x, teacher, at) < 1 - 1e-6) == (draw is cone_above)


def test_two_neurons_of_less_norm_give_the_same_outputs():
    x, y = cone_above(np.random.default_rng(5))
    teacher = teacher_of(x, y)
    aside = dual_maximum(x, teacher)[1]
    response = np.linalg.solve(x, np.maximum(x @ aside, 0))
    sizes = np.linspace(-1, 1, 20_001)
    firsts = teacher - sizes[:, None] * response
    fits = (firsts @ x.T >= 0).all(1)
    outputs = np.maximum(firsts @ x.T, 0) + sizes[:, None] * np.maximum(x @ aside, 0)
    np.testing.assert_allclose(outputs[fits], np.broadcast_to(y, outputs[fits].shape), atol=1e-9)
    least = (np.linalg.norm(firsts, axis=1) + np.abs(sizes))[fits].min()
    assert better(x, teacher, aside) == pytest.approx(least, abs=1e-4)


def test_the_samples_are_what_the_theorems_ask_for():
    x, y = cone(np.random.default_rng(1))
    assert teacher_of(x, y) @ teacher_of(x, y) == pytest.approx(1)
    assert (x @ teacher_of(x, y) > np.cos(np.pi / 4)).all()
    x, y = two_cones(np.random.default_rng(2))
    assert ((x @ x.T > 0) == (np.outer(y, y) > 0)).all()


def test_neurons_with_a_kink_are_found_as_by_hand():
    figure, control = small.observed("align-points", only=("balanced",))
    for each in (figure, control):
        run = each.runs["balanced"]
        for k, seed in enumerate(run.seeds):
            model, kinked, total = run.model(int(run.saved[-1]), seed), 0.0, 0.0
            for w, a in zip(model.weights(1), model.parameters["output.weight"][0], strict=True):
                on = [w[0] * x + w[1] > 0 for x, _ in ROWS]
                total += any(on) * abs(a) * np.linalg.norm(w)
                kinked += (0 < sum(on) < 3) * abs(a) * np.linalg.norm(w)
            assert each.bent["balanced"][k] == pytest.approx(kinked / total)
    x, y = np.array(ROWS).T
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    assert figure.line[0] == pytest.approx(slope)


@pytest.mark.parametrize("name", ["align-points", "align-cone", "align-cone-dims", "align-classes"])
def test_a_network_that_hardly_moved_fulfils_nothing(name):
    figure, control = small.observed(name)
    small.judged(figure)
    about_training = {claim.key for claim in figure.claims if claim.trained}
    assert not any(any(holds) for key, holds in small.judged(control).items() if key in about_training)
    assert figure.draw().pictures


def test_gaps_and_angles_in_more_dimensions_are_those_of_each_neuron():
    figure, _ = small.observed("align-cone-dims", steps=300, seeds=1)
    assert isinstance(figure, Dims)
    run = figure.runs["16, 4^-9"]
    x, y = run.data(run.seeds[0])
    gamma, model = y[:, 0] @ x / 16, run.model(300, run.seeds[0])
    due = 0.25 * np.log(4**9) / np.linalg.norm(gamma)
    column = next(k for k, step in enumerate(run.saved) if step * 0.1 >= due)
    before, after = run.saved[column - 1] * 0.1, run.saved[column] * 0.1
    assert before < due < after
    gaps, directions = [], []
    for k in range(50):
        if run.parameters["output.weight"][0, 0, 0, k] > 0 and any(run.history(1)[0, 0, k] @ x.T > 0):
            logs = []
            for then in run.history(1)[0, column - 1 : column + 1, k]:
                logs.append(np.log(1 - then @ gamma / np.linalg.norm(then) / np.linalg.norm(gamma)))
            gaps.append(np.exp(np.interp(due, (before, after), logs)) / 4**-2.25)
        w, a = model.weights(1)[k], model.parameters["output.weight"][0, k]
        if any(w @ x.T > 0):
            directions.append((w, abs(a)))
    assert figure.cones[16].gaps[1, 0] == pytest.approx(max(gaps))
    assert figure.due[16][1, 0] == pytest.approx(np.mean(np.array(gaps) <= 1))
    mean = sum(a * w for w, a in directions)
    cosines = [w @ mean / np.linalg.norm(w) / np.linalg.norm(mean) for w, _ in directions]
    assert figure.spread[16][1, 0] == pytest.approx(np.degrees(np.arccos(min(cosines))), rel=1e-6)


@pytest.mark.trials
def test_points_are_fitted_from_independent_weights_only_and_a_cone_becomes_one_neuron(measured_of):
    def verdict(name, key):
        values, rule, _ = measured_of(name)[f"{name}-{key}"]
        return judge(values.holds(rule))

    assert verdict("align-points", "balanced-line") == verdict("align-points", "dominated-line") == "reproduced"
    assert verdict("align-points", "independent-line") == "partly"
    assert verdict("align-cone", "negative") == verdict("align-cone", "rank") == "reproduced"
    assert verdict("align-classes", "aligned") == "reproduced"
