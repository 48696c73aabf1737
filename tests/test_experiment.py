import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import (  # fmt: skip
    Adam,
    Arrays,
    At,
    Dense,
    Every,
    Experiment,
    Geometric,
    GradientFlow,
    Init,
    InputError,
    Normal,
    Seed,
    sine_sum,
)
from condensation.activations import x_tanh
from condensation.seeds import as_seeds

BASE = Experiment(
    Dense((5, 50, 1)), Init(Normal(0.005)), sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2), Adam(1e-3), 100
)


def test_an_experiment_is_a_frozen_hashable_value():
    assert dataclasses.replace(BASE) == BASE
    assert hash(dataclasses.replace(BASE)) == hash(BASE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        BASE.steps = 5  # type: ignore[misc]


def test_the_fingerprint_is_pinned():
    """A changed fingerprint loses users their saved results: change FORMAT with it."""
    assert BASE.fingerprint() == BASE.replace(steps=100).fingerprint()
    assert BASE.fingerprint()[:16] == "a7ef954a5fb3c643"


@given(st.floats(1e-9, 1e3), st.integers(1, 1000), st.sampled_from(["tanh", "relu"]))
def test_the_fingerprint_tells_experiments_apart(rate, steps, activation):
    changed = BASE.replace(steps=steps, network=Dense((5, 50, 1), activation), **{"optimizer.learning_rate": rate})
    assert (changed.fingerprint() == BASE.fingerprint()) == (changed == BASE)


def test_a_function_is_fingerprinted_by_its_place():
    named = BASE.replace(**{"network.activation": x_tanh})
    assert named.to_plain()["network"]["activation"] == "condensation.activations:x_tanh"
    own = BASE.replace(**{"network.activation": lambda x: jnp.sin(x)})
    assert own.fingerprint() != BASE.replace(**{"network.activation": lambda x: jnp.cos(x)}).fingerprint()
    with pytest.raises(InputError, match="top level of a module that can be imported"):
        own.to_toml()


def test_arrays_are_fingerprinted_by_their_numbers():
    x, y = np.random.default_rng(0).normal(size=(2, 8, 5))
    one, same, other = (BASE.replace(data=Arrays(x, values)) for values in (y, y.copy(), y + 1e-12))
    assert one == same
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()


def test_vary_reaches_any_field():
    stds = [e.init.hidden.std for e in BASE.vary("init.hidden.std", [0.1, 0.2])]
    assert stds == [0.1, 0.2]
    terms = BASE.replace(**{"data.terms.0.1": 7.0}).data.terms
    assert terms == ((3.5, 7.0, 1.0),)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("stepz", "unknown field of Experiment 'stepz'; did you mean 'steps'"),
        ("optimizer.lr", "unknown field of Adam 'lr'; known: learning_rate, b1, b2, eps"),
        ("data.terms.9", "unknown field of tuple '9'; known: 0"),
        ("steps.more", "which has no fields"),
    ],
)
def test_an_unknown_path_is_named(path, said):
    with pytest.raises(InputError, match=said):
        BASE.vary(path, [1])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, not 0"),
        ({"dtype": "float16"}, "unknown dtype 'float16'"),
        ({"save": 10}, "save must be At or Every or Evenly or Geometric or Continued, not 10"),
        ({"loss": "mse"}, "loss must be Loss, not 'mse'"),
        ({"optimizer": "adam"}, "optimizer must be GD or Momentum or RMSprop or Adam"),
        ({"network": Dense}, "network must be Dense or Conv"),
        ({"data": (1, 2)}, "data must be Synthetic or Arrays"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"optimizer": GradientFlow(0.1), "batch_size": 8}, "gradient flow sees all samples"),
        ({"save": At((200,))}, "step 200 is to be saved, but training ends at step 100"),
        ({"optimizer.learning_rate": -1.0}, "learning_rate must be a positive"),
        ({"optimizer.b1": 1.0}, "b1 must be at least 0 and below 1"),
    ],
)
def test_an_experiment_that_cannot_be_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        BASE.replace(**change)


def test_schedules_always_keep_the_first_and_the_last_step():
    for schedule in (At((3,)), Every(7), Geometric(3), BASE.save):
        for last in (1, 2, 10, 1000):
            if isinstance(schedule, At) and last < 3:
                continue
            steps = schedule.steps(last)
            assert steps[0] == 0
            assert steps[-1] == last
            assert steps == sorted(set(steps))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("seeds", "said"),
    [(0, "at least one seed"), ([], "at least one seed"), ([1, 1], "each seed may stand once"), ([-1], "at least 0"),
     ([0.5], "whole number"), (2.5, "whole number or a list"), (None, "a list"), ([True], "whole number")],
)  # fmt: skip
def test_seeds_that_cannot_be_are_refused(seeds, said):
    with pytest.raises(InputError, match=said):
        as_seeds(seeds)


@pytest.mark.usefixtures("unchecked")
def test_seeds_of_a_number_and_of_pairs():
    assert as_seeds(2) == (Seed(0, 0), Seed(1, 1))
    assert as_seeds([5, Seed(1, 2)]) == (Seed(5, 5), Seed(1, 2))
    assert as_seeds(Seed(1, 2)) == (Seed(1, 2),)
    assert as_seeds(np.int64(1)) == (Seed(0, 0),)
