"""Arrays from files of other frameworks."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from condensation import InputError
from condensation._files import read_arrays


def test_bfloat16_is_read_as_float32(tmp_path):
    weights = {"a": torch.randn(7, 5).bfloat16(), "b": torch.randn(3, 4), "c": torch.randn(2).bfloat16()}
    save_file(weights, tmp_path / "model.safetensors")
    found = read_arrays(tmp_path / "model.safetensors")
    for name, tensor in weights.items():
        np.testing.assert_array_equal(found[name], tensor.float().numpy())
    assert found["a"].dtype == np.float32


def test_a_broken_archive_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "w.npz", a=np.arange(5000.0))
    content = bytearray((tmp_path / "w.npz").read_bytes())
    content[200:400] = b"x" * 200
    (tmp_path / "w.npz").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        read_arrays(tmp_path / "w.npz")
    with pytest.raises(InputError, match=r"unknown kind of file '\.txt'"):
        read_arrays(tmp_path / "w.txt")
