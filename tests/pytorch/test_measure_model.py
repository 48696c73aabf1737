"""A model measured in one call: which layers it takes by name, and what is no model."""

import pytest
import torch
from torch import nn

from condensation import InputError
from condensation.pytorch import measure_model


def model():
    return nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 3))


@pytest.mark.filterwarnings("ignore:.torch.jit")  # by the import of the compiler
@pytest.mark.parametrize(
    "wrapped", [nn.Module.eval, torch.compile, nn.DataParallel, torch.optim.swa_utils.AveragedModel]
)
def test_layers_are_named_as_in_the_model_with_or_without_weight_whatever_wraps_it(wrapped):
    rows = measure_model(wrapped(model()), ["0", "2.weight"])
    assert {row.layer: row.kind for row in rows} == {"0.weight": "neuron", "2.weight": "output"}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("ignore")  # of TorchScript
def test_what_is_no_module_to_read_is_refused_in_a_sentence():
    with pytest.raises(
        InputError, match=r"not OrderedDict; measure_arrays of condensation\.weights takes arrays by name"
    ):
        measure_model(model().state_dict())  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"compiled by TorchScript: pass the nn\.Module it was made from"):
        measure_model(torch.jit.script(model()))


def test_a_threshold_that_is_no_cosine_is_refused():
    with pytest.raises(InputError, match="a cosine between 0 and 1, not 2"):
        measure_model(model(), threshold=2)
