import numpy as np
import pytest

from condensation import InputError, Seed
from condensation.optimizers import GD, Adam, GradientFlow, NormalisedGD
from condensation.papers import Variant
from condensation.papers._counts import count
from condensation.papers._variant import NotRun
from condensation.papers.fc.experiments import fig3, one_input, resnet, six_layers


def test_no_change_leaves_the_experiment_as_it_is():
    experiment = fig3("tanh")
    assert Variant().apply(experiment) is experiment
    assert str(Variant()) == Variant().tag == ""


def test_changes_of_numbers():
    experiment = fig3("tanh")
    assert Variant(eps=1e-30).apply(experiment).optimizer == Adam(1e-3, eps=1e-30)
    assert Variant(dtype="float32").apply(experiment).dtype == "float32"
    init = Variant(init_scale=0.1, output_scale=10.0).apply(experiment).init
    assert init.hidden[0].std == pytest.approx(5e-4)
    assert init.output.std == pytest.approx(5e-3)
    assert Variant(threshold=0.8).apply(experiment) == experiment


def test_other_optimizers():
    kinds = {"gradient_flow": GradientFlow, "normalised_gd": NormalisedGD, "gd": GD}
    for name, kind in kinds.items():
        changed = Variant(optimizer=name).apply(six_layers(residual=True))
        assert isinstance(changed.optimizer, kind)
        assert set(six_layers(residual=True).saved_steps()) <= set(changed.saved_steps())


def test_numbers_that_differ_have_names_that_differ():
    assert Variant(threshold=0.9999991).tag != Variant(threshold=0.9999994).tag


def test_a_threshold_does_not_change_how_lines_are_counted_for_two_inputs(run_of):
    run = run_of(one_input("tanh"))
    plain, strict = (count(run, 1, 200, variant) for variant in (Variant(), Variant(threshold=0.8)))
    np.testing.assert_array_equal(plain.lines, strict.lines)


def test_rotated_inputs_keep_their_targets_and_norms():
    plain, turned = fig3("tanh"), Variant(rotated=True).apply(fig3("tanh"))
    (x, y), (u, v) = (one.data.draw(Seed(3, 3)) for one in (plain, turned))
    np.testing.assert_array_equal(y, v)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), np.linalg.norm(u, axis=1))
    assert np.abs(x - u).max() > 0.1
    assert plain.fingerprint() != turned.fingerprint()


def test_a_change_that_does_not_fit_is_named():
    with pytest.raises(NotRun, match="images"):
        Variant(rotated=True).apply(resnet("tanh", "quick"))
    with pytest.raises(NotRun, match="single input"):
        Variant(rotated=True).apply(one_input("tanh"))
    with pytest.raises(NotRun, match="batch"):
        Variant(optimizer="gradient_flow").apply(resnet("tanh", "quick"))
    with pytest.raises(NotRun, match="eps is Adam's"):
        Variant(optimizer="gd", eps=1e-3).apply(fig3("tanh"))


def test_bad_input_is_named():
    with pytest.raises(InputError, match="unknown optimizer of a variant 'adamm'; did you mean 'adam'"):
        Variant(optimizer="adamm")
    with pytest.raises(InputError, match="threshold is a cosine"):
        Variant(threshold=2.0)
    with pytest.raises(InputError, match="eps must be a positive"):
        Variant(eps=-1.0)
