"""Targets from a teacher network: given, drawn once, or drawn by each data seed; with noise; its inputs."""

import numpy as np
import pytest

import condensation as c

WEIGHTS = {"dense1.weight": np.array([[1.0, 0.5], [-1.0, 2.0]]), "output.weight": np.array([[1.0, -3.0]])}
NETWORK = c.Dense((2, 2, 1), bias=False)
GAUSSIAN = c.Gaussian(2, 5)
LAWS = c.Init(c.Normal(1.0))


def test_targets_are_the_teachers_outputs():
    x, y = c.Teacher(c.Model(NETWORK, WEIGHTS), GAUSSIAN).draw(c.Seed(4, 9))
    by_hand = np.tanh(x @ WEIGHTS["dense1.weight"].T) @ WEIGHTS["output.weight"].T
    np.testing.assert_allclose(y, by_hand, rtol=1e-14)
    assert x.shape == (5, 2)
    assert not np.array_equal(x, c.Teacher(c.Model(NETWORK, WEIGHTS), GAUSSIAN).draw(c.Seed(5, 9))[0])


def test_gaussian_inputs_have_their_std():
    x, y = c.Gaussian(20, 5000, std=0.5).draw(c.Seed(0, 0))
    assert np.std(x) == pytest.approx(0.5, rel=0.01)
    assert y.shape == (5000, 0)


def test_a_drawn_teacher_is_one_for_all_seeds_or_each_seeds_own():
    one, own = (c.Teacher(NETWORK, GAUSSIAN, init=LAWS, seed=seed) for seed in (3, None))
    first, second = (one.model(c.Seed(k, 0)).parameters["output.weight"] for k in (0, 1))
    np.testing.assert_array_equal(first, second)
    first, second, held_out = (own.model(s).parameters["output.weight"] for s in (
        c.Seed(0, 0), c.Seed(1, 0), c.Seed(1, 0).held_out()
    ))  # fmt: skip
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(second, held_out)  # the student is tested on what it learns


def test_noise_is_of_the_data_seed_and_has_its_std():
    teacher = c.Teacher(c.Model(NETWORK, WEIGHTS), c.Gaussian(2, 4000))
    noisy = c.Teacher(c.Model(NETWORK, WEIGHTS), c.Gaussian(2, 4000), noise=0.1)
    difference = noisy.draw(c.Seed(1, 0))[1] - teacher.draw(c.Seed(1, 0))[1]
    assert np.std(difference) == pytest.approx(0.1, rel=0.05)
    np.testing.assert_array_equal(noisy.draw(c.Seed(1, 5))[1], noisy.draw(c.Seed(1, 0))[1])


def test_inputs_may_be_any_data():
    images = c.Images("digits", n=20, scale="unit")
    network = c.Conv(images.shape, (2,), 3, 3)
    x, y = c.Teacher(network, images, init=LAWS, seed=0).draw(c.Seed(0, 0))
    np.testing.assert_array_equal(x, images.draw(c.Seed(0, 0))[0])
    assert y.shape == (20, 3)


def test_a_teacher_goes_through_toml_and_runs(tmp_path):
    c.Model(NETWORK, WEIGHTS).save(tmp_path / "teacher.safetensors")
    for teacher in (
        c.Teacher(NETWORK, GAUSSIAN, init=LAWS, noise=0.1),
        c.Teacher(NETWORK, GAUSSIAN, weights=str(tmp_path / "teacher.safetensors")),
    ):
        experiment = c.Experiment(c.Dense((2, 9, 1)), c.Init(c.Normal(0.1)), teacher, c.GD(0.1), 3, test=teacher)
        assert c.Experiment.from_toml(experiment.to_toml()) == experiment
        c.train(experiment, 2, out=tmp_path)
        (folder,) = (path.parent for path in tmp_path.glob(f"{experiment.fingerprint()[:16]}/run.json"))
        assert c.load_run(folder).experiment == experiment


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: c.Teacher(NETWORK, GAUSSIAN), "weights that are given, or an init that draws them"),
        (
            lambda: c.Teacher(c.Model(NETWORK, WEIGHTS), GAUSSIAN, init=LAWS),
            "a teacher that is a Model has its weights",
        ),
        (lambda: c.Teacher(NETWORK, c.Gaussian(3, 5), init=LAWS), r"samples of shape \(3,\), the teacher \(2,\)"),
        (lambda: c.Teacher(NETWORK, GAUSSIAN, weights={"output.weight": [[1.0, 1.0]]}), "dense1.weight is missing"),
        (lambda: c.Gaussian(2, 0), "n must be a whole number of at least 1"),
    ],
)
def test_teachers_that_cannot_be_are_refused(make, said):
    with pytest.raises(c.InputError, match=said):
        make()
