"""Files of PyTorch that look like something else, and layers whose names say little."""

import io
import tarfile

import pytest
import torch
from torch import nn

from condensation.weights import open_model_file, units_of_arrays


@pytest.mark.parametrize("padding", [0, 100])
def test_a_tar_archive_that_ends_as_a_zip_archive_is_a_tar_archive(tmp_path, padding):
    """torch.save writes zip archives, and the one inside ends near the end of the other."""
    content, weight = io.BytesIO(), torch.randn(6, 5)
    torch.save({"fc.weight": weight}, content)
    members = {"data/notes.txt": b"n" * padding, "data/m.pth": content.getvalue()}
    with tarfile.open(tmp_path / "m.pth.tar", "w") as archive:
        for name, own in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(own)
            archive.addfile(about, io.BytesIO(own))
    for path in (tmp_path / "m.pth.tar", tmp_path / "m.pth.tar" / "data" / "m.pth"):
        assert (open_model_file(path).arrays["fc.weight"].load() == weight.numpy()).all()


@pytest.mark.parametrize("sizes", [{}, {"kdim": 8, "vdim": 12}])
@pytest.mark.parametrize("name", ["", "mix."])
def test_an_attention_is_known_by_its_own_weights_whatever_it_is_called(name, sizes):
    state = nn.MultiheadAttention(16, 4, **sizes).state_dict()
    found = units_of_arrays({f"{name}{own}": value.numpy() for own, value in state.items()})
    kinds = [own.kind for own in found if not own.reason]
    assert kinds == ["query", "key", "value", "attention output"]
    assert {own.kind for own in units_of_arrays({"mix.out_proj.weight": torch.randn(16, 16).numpy()})} == {"neuron"}
