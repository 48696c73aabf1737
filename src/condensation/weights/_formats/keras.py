"""Keras (.keras, .weights.h5, and .h5 of before) and HDF5 files of arrays, through h5py; links are not followed.

An HDF5 file may name other files (external links, external and virtual datasets) and code (filters). None of them is
opened: what is not in the file itself is listed with the reason.
"""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ADVICE, Stored
from ..._memory import require
from ..._phrases import printable
from ..._plain import parse_json
from ...errors import InputError
from .._beside import natural
from .opened import Opened, check_growth, library, without_values
from .orders import beside_weights, kind_of, part_of_heads, units_first

_DEEPEST, _MOST = 40, 200_000  # groups in groups, and datasets
_FILTERS = {1, 2, 3, 4, 5, 6, 32000}  # that come with h5py; others would be looked for on this machine
_RECURRENT = ("kernel", "recurrent_kernel", "bias")
_VARIABLES = {  # the names of a layer's variables, which new files only count
    **dict.fromkeys(("lstm", "gru", "simple_rnn", "lstm_cell", "gru_cell"), _RECURRENT),
    **dict.fromkeys(("depthwise_conv1d", "depthwise_conv2d"), ("depthwise_kernel", "bias")),
    **dict.fromkeys(("separable_conv1d", "separable_conv2d"), ("depthwise_kernel", "pointwise_kernel", "bias")),
    "embedding": ("embeddings",),
    "batch_normalization": ("gamma", "beta", "moving_mean", "moving_variance"),
    **dict.fromkeys(("layer_normalization", "group_normalization"), ("gamma", "beta")),
}
_CLASSES = {  # layers whose kernels have an order of their own
    **dict.fromkeys(("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"), "transposed"),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D"), "depthwise"),
    **dict.fromkeys(("LSTM", "GRU", "CuDNNLSTM", "CuDNNGRU", "SimpleRNN"), "recurrent"),
    **{"Embedding": "embedding", "Dense": "dense"},
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D", "Convolution1D", "Convolution2D"), "conv"),
}


def open_hdf5(path: Path) -> Opened:
    """The arrays of an HDF5 file, of Keras or of others."""
    return _open(path, path)


def open_keras(path: Path) -> Opened:
    """The weights of a .keras archive."""
    library("h5py", path)
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [archive.getinfo(name) for name in ("config.json", "model.weights.h5")]
            check_growth(path, ((part.filename, part.file_size, part.compress_size) for part in parts))
            require(10 * parts[0].file_size + parts[1].file_size, f"reading {path}", ADVICE)
            config, content = archive.read("config.json"), archive.read("model.weights.h5")
    except InputError:
        raise
    except Exception as error:  # a broken archive fails in many ways
        raise InputError(f"{path} cannot be read as Keras: {type(error).__name__}: {error}") from error
    return _open(path, content, config)


def _open(path: Path, source: Path | bytes, config: bytes | str = "") -> Opened:
    h5py = library("h5py", path)
    arrays: dict[str, Stored] = {}
    try:
        with _file(h5py, source) as file:
            if not config:
                config = file.attrs.get("model_config", "")
            is_keras = bool(config) or any(key in file.attrs for key in ("keras_version", "layer_names", "backend"))
            own = {"model_weights", "layers", "_layer_checkpoint_dependencies"}
            is_keras = is_keras or any(name in own for name in file)  # "in file" would follow links
            for place, dataset in _datasets(h5py, file):
                arrays[place] = dataset if isinstance(dataset, Stored) else _stored(h5py, source, place, dataset)
    except InputError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}".split("\n")[0]
        raise InputError(f"{path} cannot be read as HDF5: {why}") from error
    arrays = {place: stored for place, stored in arrays.items() if stored.dtype}
    if not arrays:
        raise InputError(f"{path} holds no arrays")
    if not is_keras:
        return Opened({place.replace("/", "."): stored for place, stored in arrays.items()})
    return _keras(arrays, config)


def _file(h5py: Any, source: Path | bytes) -> Any:
    return h5py.File(source if isinstance(source, Path) else io.BytesIO(source), "r", locking=False)


def _datasets(h5py: Any, file: Any) -> Iterator[tuple[str, Any]]:
    """The datasets of a file by place, each once; what leads elsewhere is an array with the reason."""
    root = h5py.h5o.get_info(file["/"].id)
    waiting, seen, count = [("", file, 0)], {(root.fileno, root.addr)}, 0
    while waiting:
        place, group, depth = waiting.pop()
        inside = []
        names = [name for name in group if isinstance(name, str)] if depth <= _DEEPEST else []
        for name in sorted(names, key=natural):
            inner = f"{place}/{name}" if place else name
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                yield inner, without_values((), "float32", "a link of HDF5 to elsewhere, which is not followed")
                continue
            value = group[name]
            about = h5py.h5o.get_info(value.id)
            if (about.fileno, about.addr) in seen:
                continue
            seen.add((about.fileno, about.addr))
            count += 1
            if count > _MOST:
                raise InputError(f"it holds more than {_MOST:,} groups and datasets")
            if isinstance(value, h5py.Group):
                inside.append((inner, value, depth + 1))
            elif isinstance(value, h5py.Dataset):
                yield inner, value
        waiting += reversed(inside)


def _stored(h5py: Any, source: Path | bytes, place: str, dataset: Any) -> Stored:
    """A dataset that is read when it is asked for; an empty type for what is no array of numbers."""
    shape, kind = dataset.shape, dataset.dtype
    if shape is None or kind.kind not in "fiucb":
        return Stored((), "", lambda: np.empty(0))
    creation = dataset.id.get_create_plist()
    filters = {creation.get_filter(k)[0] for k in range(creation.get_nfilters())}
    if dataset.external or dataset.is_virtual:
        return without_values(shape, kind.name, "its values are in another file, which is not opened")
    if filters - _FILTERS:
        return without_values(
            shape, kind.name, f"packed by a filter that is not known here ({min(filters - _FILTERS)})"
        )
    chunk = prod(dataset.chunks or ()) * kind.itemsize

    def load() -> np.ndarray:
        require(chunk, "a block of the array", ADVICE)
        try:
            with _file(h5py, source) as file:
                values = file[place][()]
        except Exception as error:
            raise InputError(f"{printable(place)} is broken: {str(error).splitlines()[0]}") from error
        return values.astype(kind.newbyteorder("="), copy=False)

    return Stored(shape, kind.name, load)


def _keras(arrays: dict[str, Stored], config: bytes | str) -> Opened:
    named: dict[str, Stored] = {}
    layers: dict[str, str] = {}
    for place, stored in arrays.items():
        if place.startswith(("optimizer", "optimizer_weights")) or beside_weights(place.replace("/", ".")):
            continue
        name, layers[name] = _name(place, stored.shape)
        named[name] = stored
    return units_first(named, _kinds(named, layers, _layer_classes(config)))


def layer_kinds(arrays: Mapping[str, Stored], topology: Any) -> dict[str, str]:
    """The kinds of kernels whose names begin with that of a layer of a configuration."""
    layers = {name: name.partition(".")[0] for name in arrays}
    return _kinds(arrays, layers, _classes(topology))


def _kinds(arrays: Mapping[str, Stored], layers: Mapping[str, str], classes: Mapping[str, str]) -> dict[str, str]:
    """The kinds of kernels, told by the classes of their layers."""
    kinds: dict[str, str] = {}
    for name, stored in arrays.items():
        known = _CLASSES.get(classes.get(layers[name], ""))
        if known is None or (known == "dense" and len(stored.shape) != 2):
            continue
        convolution = known in ("conv", "transposed", "depthwise")
        kinds[name] = kind_of(name, stored.shape) if convolution and len(stored.shape) < 3 else known
    return kinds


def _name(place: str, shape: tuple[int, ...]) -> tuple[str, str]:
    """The name of a Keras variable, and of the layer that it belongs to.

    >>> _name("model_weights/conv/conv/kernel:0", (3, 3, 1, 8)), _name("layers/lstm_1/cell/vars/1", (4, 16))[0]
    (('conv.kernel', 'conv'), 'lstm_1.cell.recurrent_kernel')
    """
    parts = re.sub(r":\d+$", "", place.removeprefix("model_weights/")).split("/")
    if "vars" in parts:
        where = parts.index("vars")
        layers = [part for part in parts[:where] if part not in ("layers", "_layer_checkpoint_dependencies")]
        own = next((re.sub(r"_\d+$", "", part) for part in reversed(layers) if part != "cell"), "")
        known = _VARIABLES.get(own, _RECURRENT if "cell" in layers else ("kernel", "bias"))
        index = parts[-1]
        number = int(index) if index.isdecimal() and len(index) < 4 else len(known)
        short = known[number] if number < len(known) else f"variable{index}"
        name = ".".join([*layers, short])
        if known == ("kernel", "bias") and short == "bias" and len(shape) > 1 and not part_of_heads(name):
            name = ".".join([*layers, f"variable{index}"])
        return name, layers[-1] if layers else ""
    layer = parts[0]
    kept = [part for k, part in enumerate(parts) if not k or part != parts[k - 1]]
    return ".".join(kept), layer


def _layer_classes(config: bytes | str) -> dict[str, str]:
    """The class of each layer that a configuration has, by its name."""
    try:
        return _classes(parse_json(config if isinstance(config, bytes) else config.encode()))
    except (ValueError, AttributeError):
        return {}


def _classes(plain: Any) -> dict[str, str]:
    classes: dict[str, str] = {}
    waiting: list[Any] = [plain]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            inner = value.get("config")
            name = value.get("name") or (inner.get("name") if isinstance(inner, dict) else None)
            if isinstance(value.get("class_name"), str) and isinstance(name, str):
                classes[name] = value["class_name"]
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return classes
