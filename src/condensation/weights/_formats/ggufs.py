"""GGUF, through the package ``gguf``: the tensors of language models, dequantised block by block of a tensor."""

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ADVICE, Stored
from ..._memory import require
from ...errors import InputError
from .._attention import Heads
from .._layout import UnitLayout
from .opened import Opened, check_shape, library

_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of the types of values
_TEXT, _LIST = 8, 9
_KINDS = {"q": "query", "k": "key", "v": "value", "output": "attention output"}
_ATTENTION = re.compile(r"attn_(q|k|v|output)\.weight$")
_TOLD = re.compile(rf"embd|{_ATTENTION.pattern}")
_SIZES = {  # of the metadata, as configurations call them
    "embedding_length": "hidden_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
}


def open_gguf(path: Path) -> Opened:
    """The tensors of a GGUF file, and the sizes that its metadata tells."""
    gguf = library("gguf", path)
    try:
        entries = _check(path)
        require(2000 * entries, "the list of its tensors and texts", ADVICE)
        reader = gguf.GGUFReader(path)
        config = _config(reader)
        arrays = {tensor.name: _stored(gguf, tensor) for tensor in reader.tensors}
    except InputError:
        raise
    except Exception as error:  # a foreign file fails in many ways
        raise InputError(f"{path} cannot be read as GGUF: it is truncated or broken") from error
    if not arrays:
        raise InputError(f"{path} is a GGUF file without tensors")
    head = Heads.of(config).size
    layouts = {name: _layout(name, head) for name, own in arrays.items() if len(own.shape) == 2 and _TOLD.search(name)}
    return Opened(arrays, layouts, config)


def _layout(name: str, head: int) -> UnitLayout:
    """The units of an array whose name, of GGUF's own, tells them."""
    own = _ATTENTION.search(name)
    if own is None:
        return UnitLayout("embedding")
    return UnitLayout(_KINDS[own[1]], head=head, head_inputs=own[1] == "output")


def _stored(gguf: Any, tensor: Any) -> Stored:
    shape = check_shape(reversed(tensor.shape.tolist()))
    kind = tensor.tensor_type.name.lower()
    dtype = {"f64": "float64", "f32": "float32", "f16": "float16"}.get(kind, f"float32 from {kind}")
    plain = kind[:1] in ("f", "i") and kind[1:].isdigit()
    if plain and kind[0] == "i":
        dtype = f"int{kind[1:]}"

    def load() -> np.ndarray:
        try:
            values = tensor.data if plain else gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError:
            raise InputError(f"quantised as {kind}, which its library does not give back") from None
        return np.asarray(values).reshape(shape)

    return Stored(shape, dtype, load)


def _config(reader: Any) -> dict[str, Any]:
    """What the metadata tells of the model, under the names of configurations."""
    plain = {name: own.contents() for name, own in reader.fields.items() if len(own.data) == 1 and len(own.parts) < 10}
    model = plain.get("general.architecture", "")
    config = {ours: plain[f"{model}.{theirs}"] for theirs, ours in _SIZES.items() if f"{model}.{theirs}" in plain}
    return config | ({"model_type": model} if isinstance(model, str) and model else {})


def _check(path: Path) -> int:
    """Walk over the metadata within the file, and count its entries and texts: the library trusts the counts."""
    size, texts = path.stat().st_size, 0
    with path.open("rb") as file:

        def number(form: str) -> int:
            width = struct.calcsize(form)
            return struct.unpack(f"<{form}", file.read(width))[0]

        def skip(width: int) -> None:
            if width < 0 or file.tell() + width > size:
                raise InputError(f"{path} cannot be read as GGUF: it is truncated or broken")
            file.seek(width, 1)

        def value(kind: int) -> None:
            nonlocal texts
            if kind == _TEXT:
                skip(number("Q"))
            elif kind == _LIST:
                inner, count = number("I"), number("Q")
                if inner in _WIDTHS:
                    skip(_WIDTHS[inner] * count)
                elif inner != _TEXT or 8 * count > size:
                    raise InputError(f"{path} cannot be read as GGUF: it is truncated or broken")
                else:
                    for _ in range(count):
                        skip(number("Q"))
                    texts += count
            else:
                skip(_WIDTHS[kind])

        file.read(4)
        version, tensors, entries = number("I"), number("Q"), number("Q")
        if version not in (2, 3) or 20 * (tensors + entries) > size:
            raise InputError(f"{path} cannot be read as GGUF: of version {version}, or truncated or broken")
        for _ in range(entries):
            skip(number("Q"))
            value(number("I"))
    return tensors + entries + texts
