import numpy as np
import pytest

from condensation import Arrays, Dense, Experiment, GradientFlow, Init, InputError, Normal, train
from condensation.theory import moving_line


@pytest.mark.trials
def test_the_moving_line_is_the_linear_networks():
    """For the identity the leading order is exact: the same weights as gradient flow's."""
    stream = np.random.default_rng(0)
    x = stream.normal(size=(30, 3))
    y = x @ np.array([1.0, 0.5, -0.2]) + 0.3 * stream.normal(size=30)
    experiment = Experiment(
        Dense((3, 8, 1), linear, bias=False), Init(Normal(1e-2)), Arrays(x, y), GradientFlow(0.5, stop_ratio=0.95), 200
    )
    trajectory = train(experiment, 1)
    model = trajectory.model(0, 0)
    found = moving_line(x, y, model.weights(1), model.parameters["output.weight"], linear, ratio=0.95)
    np.testing.assert_allclose(found.weights, trajectory.weights(1, 200, 0), atol=1e-6)
    with pytest.raises(InputError, match=r"cannot bring the loss of these data down to 0\.01"):
        moving_line(x, y, model.weights(1), model.parameters["output.weight"], linear, ratio=0.01)
    with pytest.raises(InputError, match="multiplicity 1 that are 0 at 0, not sigmoid"):
        moving_line(x, y, model.weights(1), model.parameters["output.weight"], "sigmoid")


def linear(z):
    return z
