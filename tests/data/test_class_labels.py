"""Labels 0 to K-1 as the targets of K classes."""

import numpy as np
import pytest

from condensation import (  # fmt: skip
    GD,
    Arrays,
    Dense,
    Experiment,
    Init,
    InputError,
    Loss,
    Normal,
    Points,
    load_run,
    train,
)
from condensation.derivatives import gradient
from condensation.prediction import predict, predict_model
from condensation.training._need import need_of

STREAM = np.random.default_rng(0)
X, LABELS = STREAM.normal(size=(12, 2)), np.arange(12) % 3


def experiment(y: np.ndarray, loss: str = "cross_entropy", outputs: int = 3, **others) -> Experiment:
    return Experiment(Dense((2, 6, outputs)), Init(Normal(0.3)), Arrays(X, y), GD(0.5), 5, loss=Loss(loss), **others)


@pytest.mark.parametrize("loss", ["cross_entropy", "softmax_mse"])
@pytest.mark.parametrize(
    "given", [LABELS, LABELS.astype(np.uint8)[:, None], LABELS.astype(float)], ids=lambda y: y.dtype
)
def test_labels_are_rows_of_the_identity(loss, given):
    one_hot = np.eye(3)[LABELS]
    ours = train(experiment(given, loss, test=Arrays(X[:4], LABELS[:4])), 1)
    theirs = train(experiment(one_hot, loss, test=Arrays(X[:4], one_hot[:4])), 1)
    for name, value in theirs.parameters.items():
        np.testing.assert_array_equal(ours.parameters[name], value)
    for name in ("loss", "accuracy", "test_loss", "test_accuracy"):
        np.testing.assert_array_equal(ours.curves[name], theirs.curves[name])
    np.testing.assert_array_equal(ours.data(0)[1], one_hot)


def test_labels_are_what_is_fingerprinted_and_kept(tmp_path):
    """The data stay as they were given, in the fingerprint, in TOML and in a run's folder."""
    np.savez(tmp_path / "mine.npz", x=X, y=LABELS)
    filed = experiment(LABELS).replace(data=Arrays.load("mine.npz", tmp_path))
    assert filed.fingerprint() == experiment(LABELS).fingerprint() != experiment(np.eye(3)[LABELS]).fingerprint()
    assert Experiment.from_toml(filed.to_toml(), tmp_path) == filed
    first = train(experiment(LABELS), 1, out=tmp_path / "runs")
    again = load_run(tmp_path / "runs" / experiment(LABELS).fingerprint()[:16])
    np.testing.assert_array_equal(again.data(0)[1], np.eye(3)[LABELS])
    np.testing.assert_array_equal(again.loss, first.loss)


def test_prediction_and_derivatives_take_them():
    made = experiment(LABELS)
    run = train(made, 1)
    one, other = (predict(each)["dense1"].directions.directions for each in (made, experiment(np.eye(3)[LABELS])))
    np.testing.assert_array_equal(one, other)
    model = run.model(0, 0)
    np.testing.assert_array_equal(
        predict_model(model, X, LABELS, made.loss)["dense1"].directions.directions,
        predict_model(model, X, np.eye(3)[LABELS], made.loss)["dense1"].directions.directions,
    )
    by_label, by_row = (gradient(model, X, y, made.loss) for y in (LABELS, np.eye(3)[LABELS]))
    for name, value in by_row.items():
        np.testing.assert_array_equal(by_label[name], value)


def test_points_with_labels_are_classes():
    rows = tuple((*map(float, x), float(label)) for x, label in zip(X, LABELS, strict=True))
    points = experiment(LABELS).replace(data=Points(rows))
    assert Experiment.from_toml(points.to_toml()) == points
    np.testing.assert_array_equal(train(points, 1).loss, train(experiment(LABELS), 1).loss)


def test_one_output_and_the_squared_error_is_a_regression():
    """As before, bit for bit: whole numbers are targets like any others."""
    whole, floats = (train(experiment(y, "mse", 1), 1) for y in (LABELS, LABELS.astype(float)))
    np.testing.assert_array_equal(whole.loss, floats.loss)
    assert whole.experiment.fingerprint() == floats.experiment.fingerprint()
    assert "accuracy" not in whole.curves
    np.testing.assert_array_equal(whole.data(0)[1][:, 0], LABELS)


def test_the_targets_that_labels_become_are_counted_in_memory():
    needs = [need_of(experiment(y)) for y in (LABELS, np.eye(3)[LABELS])]
    assert needs[0].samples - needs[1].samples == 8 * 12 * 3
    assert needs[0].working == needs[1].working


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("labels", "outputs", "loss", "said"),
    [
        (LABELS - 1, 3, "cross_entropy", "whole numbers from 0 to 2, but that of sample 0 is -1"),
        (LABELS + 1, 3, "cross_entropy", "whole numbers from 0 to 2, but that of sample 2 is 3"),
        (LABELS + 0.5, 3, "cross_entropy", "whole numbers from 0 to 2, but that of sample 0 is 0.5"),
        (2 * (LABELS % 2), 3, "softmax_mse", r"no sample has the label 1 of 0 to 2: .* or pass np.eye\(3\)\[labels\]"),
        (LABELS, 1, "cross_entropy", "an output for each of at least two classes, and there is one output"),
        (LABELS, 3, "mse", r"samples of shape \(2,\) and 1 outputs, the network \(2,\) and 3"),
        (np.c_[LABELS, LABELS], 3, "cross_entropy", r"\(2,\) and 2 outputs, the network \(2,\) and 3"),
        (np.full((12, 3), 0.5), 3, "cross_entropy", "each row adding up to 1, or one label a sample, 0 to K-1"),
    ],
)
def test_labels_that_cannot_be_get_one_sentence(labels, outputs, loss, said):
    for use in (train, predict):
        if use is predict and "adding up" in said:
            continue  # any residual has its lines
        with pytest.raises(InputError, match=said):
            use(experiment(labels, loss, outputs))


def test_labels_0_and_1_are_refused_by_the_exponential_loss():
    """The gradient by a sample whose label is 0 is zero: it would not be learned."""
    y = np.arange(12) % 2
    for call in (
        lambda: train(experiment(y, "exponential", 1), 1),
        lambda: predict(experiment(y, "exponential", 1)),
        lambda: gradient(experiment(y, "exponential", 1).initial_model(), X, y, Loss("exponential")),
    ):
        with pytest.raises(InputError, match=r"for labels of 1 and -1, and these are 0 and 1: .* 2 \* y - 1 would do"):
            call()
    assert np.isfinite(train(experiment(2 * y - 1, "exponential", 1), 1).loss).all()
    assert np.isfinite(train(experiment(np.ones(12), "exponential", 1), 1).loss).all()
