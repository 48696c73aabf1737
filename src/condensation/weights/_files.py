"""Checkpoints of any framework: a file of weights, or a Hugging Face folder with its configuration and shards."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._files import Stored, read_json
from .._phrases import printable
from .._regular import check_regular
from ..errors import InputError
from ._beside import OF_OPTIMIZER, is_state, natural
from ._formats.archives import around, innermost, is_archive, kept
from ._formats.opened import Opened
from ._formats.orders import told_by_names
from ._formats.table import SUFFIXES, format_of
from ._layout import UnitLayout, Units, list_units
from ._names import layouts
from ._quantised import dequantised, is_quantised
from ._roles import with_roles
from ._tied import tied_arrays

KINDS = tuple(suffix for suffix in SUFFIXES if suffix != ".json")
MODEL_FILES = (  # of a folder, the first that is there
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
    "diffusion_pytorch_model.safetensors",
    "adapter_model.safetensors",
    "adapter_model.bin",
    "saved_model.pb",
)
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")  # of compiling, FSDP, checkpointing
_COUNTERS = {"n_averaged"}  # that an AveragedModel has beside its module


@dataclass(frozen=True)
class ModelFile:
    """The arrays of a checkpoint, none of them read yet.

    Attributes:
        path: the file or folder.
        arrays: by name, as they are stored.
        config: the model's configuration, empty where there is none: it tells the sizes of attention heads.
        files: that hold the arrays.
        notes: what a reader should know of how they were read.
        told: what the file itself says of some arrays' units, where names and shapes do not.
        format: of the file, told by its content.
    """

    path: Path
    arrays: Mapping[str, Stored]
    config: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    told: Mapping[str, UnitLayout | str] = field(default_factory=dict)
    format: str = ""

    def units(self, *, heads: bool = False, view: str = "filter") -> list[Units]:
        """The units of all arrays; tied, packed, integer and unreadable arrays are listed with the reason.

        Args:
            heads: cut attention projections into their heads.
            view: the units of convolution layers, ``"filter"`` or ``"kernel"``.
        """
        known: dict[str, UnitLayout | str] = {}
        for name, stored in self.weights.items():
            tied = f"tied: it is {self.tied[name]}" if name in self.tied else ""
            known[name] = stored.reason or _not_weights(stored, self.layouts[name]) or tied or self.layouts[name]
        reads = {name: (stored.shape, stored.read) for name, stored in self.weights.items()}
        known = with_roles(known, {name: stored.shape for name, stored in self.weights.items()})
        quantised = [name for name, stored in self.weights.items() if is_quantised(stored)]
        parts = {name: stored.read_part for name, stored in self.weights.items()}
        return list_units(reads, known, heads=heads, view=view, quantised=quantised, parts=parts)

    @cached_property
    def weights(self) -> dict[str, Stored]:
        """The arrays, quantised ones as floating-point numbers where that can be done."""
        return dequantised(self.arrays)

    @cached_property
    def layouts(self) -> dict[str, UnitLayout | str]:
        """How the units lie in each array, told by names, shapes and configuration; or why it has none."""
        states = {name: OF_OPTIMIZER for name in self.weights if is_state(name)}
        shapes = {name: stored.shape for name, stored in self.weights.items()}
        return layouts(shapes, self.config, {**states, **self.told})

    @cached_property
    def tied(self) -> dict[str, str]:
        """The name of the array that each tied array repeats."""
        return tied_arrays(self.weights, self.layouts)

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.stat().st_size for file in self.files)

    @property
    def parameters(self) -> int:
        """Number of floating-point numbers; those of tied arrays count once, those of an optimizer's state do not."""
        return sum(
            stored.size
            for name, stored in self.arrays.items()
            if stored.floating and name not in self.tied and not is_state(name)
        )


def _not_weights(stored: Stored, layout: UnitLayout | str) -> str:
    """Why values of a type are no weights; empty where they are, or where the shape has told already."""
    if stored.floating or isinstance(layout, str):
        return ""
    if stored.dtype.startswith("complex"):
        return "complex: lines are of real weights"
    return f"of type {stored.dtype}, not floating-point: quantised weights have to be dequantised first"


def open_model_file(path: str | Path) -> ModelFile:
    """A checkpoint: a file of weights, a folder with a model's file or its shards, or a model in an archive.

    Nothing is read but names, shapes and types, and nothing that the file holds is run. The content tells the format,
    not the name. A path may lead into an archive: ``package.whl/data/model.onnx``.
    """
    path = Path(path)
    if path.is_dir():
        inside = model_file(path)
        if inside is None:
            raise InputError(f"{path} holds no model: looked for {', '.join(MODEL_FILES)}")
        return replace(open_model_file(inside), path=path)
    if not path.exists():
        return _not_there(path)
    check_regular(path)
    if path.name.endswith(".index.json"):
        arrays, files, notes = _open_shards(path)
        opened = Opened(arrays, files=files, notes=notes)
    elif is_archive(path):
        return _in_archive(path, None)
    else:
        known = format_of(path)
        return replace(_as_model(path, known.open(path), (path,)), format=known.name)
    return _as_model(path, opened, (path,))


def _as_model(path: Path, opened: Opened, files: tuple[Path, ...]) -> ModelFile:
    """What was opened, with its units first, and with the configuration that lies beside it."""
    opened = told_by_names(opened)
    arrays = dict(opened.arrays)
    if path.suffix in (".safetensors", ".json"):  # whose order says nothing
        arrays = {name: arrays[name] for name in sorted(arrays, key=natural)}
    shown = _shown(arrays)
    names = dict(zip(arrays, shown, strict=True))
    told = {names[name]: _renamed(layout, names) for name, layout in opened.layouts.items()}
    config, more = read_config(path.parent)
    arrays = shown if told else unwrapped(shown)
    return ModelFile(path, arrays, config or opened.config, opened.files or files, (*opened.notes, *more), told)


def _renamed(layout: UnitLayout | str, names: Mapping[str, str]) -> UnitLayout | str:
    """A layout with the name of its bias as it is shown."""
    if isinstance(layout, str) or layout.bias is None:
        return layout
    return replace(layout, bias=(names[layout.bias[0]], layout.bias[1]))


def _in_archive(path: Path, member: str | None) -> ModelFile:
    """A model in an archive: the one that is named, or the only one."""
    inside, folders = innermost(path, member)
    try:
        known = format_of(inside)
        found = replace(_as_model(inside, kept(known.open(inside), folders), (path,)), format=known.name)
    except InputError as error:
        raise InputError(str(error).replace(str(inside), f"{path}/{member}" if member else str(path))) from error
    return replace(found, path=path / member if member else path, files=(path,))


def _not_there(path: Path) -> ModelFile:
    """What a path names that is no file itself: a member of an archive, or a checkpoint of TensorFlow by its prefix."""
    if (found := around(path)) is not None:
        return _in_archive(*found)
    index = path.with_name(f"{path.name}.index")
    if index.is_file():
        return open_model_file(index)
    raise InputError(f"there is no file or folder {path}")


def model_file(folder: Path) -> Path | None:
    """The file of a folder that holds a model's weights, or tells its shards."""
    return next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)


def read_config(folder: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The configuration beside a model (of one with several parts, that for text), and a note if it cannot be read."""
    path = folder / "config.json"
    if not path.is_file():
        return {}, ()
    try:
        config = read_json(path)
    except InputError as error:
        return {}, (f"the sizes of attention heads are not told: {error}",)
    return config | config["text_config"] if isinstance(config.get("text_config"), dict) else config, ()


def unwrapped(arrays: Mapping[str, Stored]) -> dict[str, Stored]:
    """Arrays by the names of the user's model, without what DistributedDataParallel, torch.compile and others put in.

    >>> array = Stored((2, 2), "float32", lambda: np.ones((2, 2)))
    >>> list(unwrapped({"module._orig_mod.fc.weight": array})), list(unwrapped({"model.fc.weight": array}))
    (['fc.weight'], ['model.fc.weight'])
    """
    names = {name: ".".join(part for part in name.split(".") if part not in _WRAPPERS) for name in arrays}
    while (of_modules := {*names.values()} - _COUNTERS) and all(name.startswith("module.") for name in of_modules):
        names = {name: short.removeprefix("module.") for name, short in names.items()}
    if len(set(names.values())) < len(names):
        return dict(arrays)
    return {names[name]: stored for name, stored in arrays.items()}


def _shown(arrays: dict[str, Stored]) -> dict[str, Stored]:
    """Arrays by names that can be shown: those of a stranger's file reach terminals and pages."""
    shown: dict[str, Stored] = {}
    for name, stored in arrays.items():
        name = printable(name)
        while name in shown:
            name += "'"
        shown[name] = stored
    return shown


def _is_beside(index: Path, file: str) -> bool:
    """Whether a name in an index is that of a plain file beside it.

    A link may not leave the folder, except to the store of files that a cache of Hugging Face keeps for its snapshots.
    """
    shard, folder = index.parent / file, index.parent.resolve()
    if file in ("", ".", "..") or Path(file).name != file or file.endswith(".index.json"):
        return False
    if shard.exists() and not shard.is_file():
        return False
    store = folder.parent.parent / "blobs" if folder.parent.name == "snapshots" else folder
    return shard.resolve().parent in (folder, store)


def _open_shards(index: Path) -> tuple[dict[str, Stored], tuple[Path, ...], tuple[str, ...]]:
    """The arrays of all shards that an index names; what a missing or broken shard should hold has a reason."""
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise InputError(f"{index} is no index of shards: it has no weight_map of names to files")
    arrays: dict[str, Stored] = {}
    files, notes = [], []
    for file in dict.fromkeys(places.values()):
        shard, opened, reason = index.parent / file, {}, f"missing: the index says it is in {file}"
        try:
            if not _is_beside(index, file):
                raise InputError(f"{index} names {file}, which is not in its own folder")
            if not shard.exists():
                raise InputError(f"there is no file or folder {shard}")
            check_regular(shard)
            opened = dict(format_of(shard).open(shard).arrays)
            files.append(shard)
        except InputError as error:
            notes.append(str(error))
            reason = f"in a shard that is missing or broken ({file})"
        arrays |= opened
        lost = [name for name, place in places.items() if place == file and name not in opened]
        arrays |= dict.fromkeys(lost, Stored((), "float32", lambda: np.empty(()), reason=reason))
    if not files:
        raise InputError(f"{index} names no shard that can be read; {notes[0] if notes else 'it is empty'}")
    return arrays, tuple(files), tuple(notes)
