import numpy as np
import pytest

from condensation import InputError
from condensation.theory import coefficient
from condensation.theory._leading import as_neurons


def test_coefficients_are_those_of_the_taylor_series():
    for name, (p, c) in {"sigmoid": (1, 0.25), "softplus": (1, 0.5), "gelu": (1, 0.5), "x_tanh": (2, 2.0)}.items():
        assert coefficient(name) == (p, pytest.approx(c))


def test_a_kink_has_no_leading_order():
    with pytest.raises(InputError, match=r"relu is undefined.*extremal_directions"):
        coefficient("relu")


def test_what_does_not_fit_is_refused_in_a_sentence():
    w, a = np.ones((20, 4)), np.ones(20)
    with pytest.raises(InputError, match=r"units x 4 inputs \(the bias last\), not of shape \(20, 3\)"):
        as_neurons(w[:, :3], a, 4)
    with pytest.raises(InputError, match="one output weight for each of 20 units"):
        as_neurons(w, a[:5], 4)
    with pytest.raises(InputError, match="1 of 20 units hold NaN"):
        as_neurons(w, np.where(np.arange(20) == 3, np.nan, a), 4)
