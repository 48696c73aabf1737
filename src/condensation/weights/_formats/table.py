"""The formats of model files: how the content of a file tells its format, and which module reads it.

A file's suffix decides nothing; where the content tells no format, it says what the file was meant to be.
"""

import importlib
import mmap
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ..._files import check_directory
from ...errors import InputError, unknown_name
from . import wire
from .opened import Opened

_HEAD = 4096  # bytes that are looked at first
_ONNX = {1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26}  # numbers of the fields of a model of ONNX
_GRAPH = {1, 2, 3, 4, 5}  # and of a graph of TensorFlow
_PROTOCOLS = tuple(bytes([128, k]) for k in range(1, 6))  # how pickles begin
_LOOKED = 2**16  # fields of a message that are looked at


@dataclass(frozen=True)
class Format:
    """A kind of model file.

    Attributes:
        name: of the format, as errors and tables call it.
        suffixes: that its files usually have.
        module: of this package that reads it, and the function there.
        told_by: whether the first bytes, or the file, are of this format.
    """

    name: str
    suffixes: tuple[str, ...]
    module: tuple[str, str]
    told_by: Callable[[Path, bytes], bool]

    def open(self, path: Path) -> Opened:
        """The arrays of a file."""
        module, function = self.module
        reader = importlib.import_module(f".{module}", __package__)
        try:
            return getattr(reader, function)(path)
        except InputError as error:
            if path.name in str(error):
                raise
            raise InputError(f"{path} cannot be read as {self.name}: {error}") from error


def _begins(*starts: bytes, at: int = 0) -> Callable[[Path, bytes], bool]:
    return lambda path, head: any(head[at : at + len(start)] == start for start in starts)


def _is_safetensors(path: Path, head: bytes) -> bool:
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 2**31


def _zip_with(test: Callable[[list[str]], bool]) -> Callable[[Path, bytes], bool]:
    def told(path: Path, head: bytes) -> bool:
        return head[:4] in (b"PK\3\4", b"PK\5\6") and test(zip_names(path))

    return told


def zip_names(path: Path) -> list[str]:
    """The members of a zip archive; none where its list is broken."""
    check_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return [name for name in archive.namelist() if not name.endswith("/")]
    except Exception:  # a broken archive fails in many ways
        return []


def is_pytorch(names: list[str]) -> bool:
    """Whether the members of a zip archive are those of PyTorch's."""
    return any(name == "data.pkl" or name.endswith("/data.pkl") for name in names)


def _is_keras(names: list[str]) -> bool:
    return "config.json" in names and "model.weights.h5" in names


def _is_npz(names: list[str]) -> bool:
    return bool(names) and all(name.endswith(".npy") for name in names)


def _is_bundle(path: Path, head: bytes) -> bool:
    return path.name.endswith(".index") and _ends(path) == bytes.fromhex("57fb808b247547db")


def _ends(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 8))
        return file.read(8)


def _is_message(known: set[int], needed: int) -> Callable[[Path, bytes], bool]:
    """Whether a file is a message whose fields have known numbers only, one of them being there as bytes."""

    def told(path: Path, head: bytes) -> bool:
        numbers = _numbers(path) if head[:1] in (b"\x08", b"\x0a", b"\x12", b"\x3a") else {}
        return numbers.keys() <= known and bool(numbers.get(needed))

    return told


def _numbers(path: Path) -> dict[int, bool]:
    """The numbers of the first fields of a message, each with whether it holds bytes; none where it is no message."""
    numbers: dict[int, bool] = {}
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            view = memoryview(content)
            try:
                for number, value in islice(wire.fields(view), _LOOKED):
                    numbers[number] = not isinstance(value, int)
                    if isinstance(value, memoryview):
                        value.release()
            finally:
                view.release()
    except (wire.Broken, ValueError, OSError):
        return {}
    return numbers


def _is_json(path: Path, head: bytes) -> bool:
    return head.lstrip()[:1] in (b"{", b"[") and (b'"weights' in head or path.suffix == ".json")


FORMATS = (
    Format("safetensors", (".safetensors",), ("numpys", "open_safetensors"), _is_safetensors),
    Format("NumPy", (".npy",), ("numpys", "open_npy"), _begins(b"\x93NUMPY")),
    Format("NumPy", (".npz",), ("numpys", "open_npz"), _zip_with(_is_npz)),
    Format(
        "PyTorch", (".pt", ".pth", ".bin", ".ckpt", ".jit", ".ptl"), ("pytorch", "open_archive"), _zip_with(is_pytorch)
    ),
    Format(
        "PyTorch",
        (".pkl", ".pickle", ".joblib", ".tar"),
        ("pytorch", "open_pickle"),
        _begins(*_PROTOCOLS),
    ),
    Format("Keras", (".keras",), ("keras", "open_keras"), _zip_with(_is_keras)),
    Format("HDF5", (".h5", ".hdf5"), ("keras", "open_hdf5"), _begins(b"\x89HDF\r\n\x1a\n")),
    Format("GGUF", (".gguf",), ("ggufs", "open_gguf"), _begins(b"GGUF")),
    Format("TensorFlow Lite", (".tflite",), ("tflites", "open_tflite"), _begins(b"TFL3", at=4)),
    Format("TensorFlow checkpoint", (".index",), ("bundles", "open_bundle"), _is_bundle),
    Format("TensorFlow.js", (".json",), ("tfjs", "open_manifest"), _is_json),
    Format("ONNX", (".onnx",), ("onnxs", "open_onnx"), _is_message(_ONNX, 7)),
    Format("TensorFlow graph", (".pb",), ("graphs", "open_graph"), _is_message(_GRAPH, 1)),
)
SUFFIXES = tuple(dict.fromkeys(suffix for known in FORMATS for suffix in known.suffixes))
DECLINED = {  # what a file may be that is not read, by its first bytes and their place: the true reason
    (b"ORTM", 4): "a model of ONNX Runtime's own format (.ort): the .onnx file that it was made from can be read",
    (b"ET12", 4): "a program of ExecuTorch: the weights are to be had where it was exported",
    (
        b"lmgg",
        0,
    ): "a file of ggml, the format before GGUF, whose layout only its own program knows: convert it",
    (b"\xba\x16\x4f\x2f", 0): "a model of fastText, a table of words and n-grams in a format of its own",
    (b"\x04\x22\x4d\x18", 0): "packed with LZ4: unpack it first (lz4 -d)",
    (b"\x28\xb5\x2f\xfd", 0): "packed with Zstandard: unpack it first (zstd -d)",
    (b"\xfd7zXZ\0", 0): "packed with xz: unpack it first (xz -d)",
    (b"BZh", 0): "packed with bzip2: unpack it first (bzip2 -d)",
    (b"7z\xbc\xaf\x27\x1c", 0): "a 7z archive: unpack it first (7z x)",
    (b"Rar!", 0): "a RAR archive: unpack it first (unrar x)",
    (b"version https://git-lfs", 0): "a pointer of Git LFS, not the file itself: git lfs pull fetches it",
    (b"<!DOCTYPE", 0): "a web page, not a model: the download went wrong",
    (b"<html", 0): "a web page, not a model: the download went wrong",
}


def format_of(path: Path) -> Format:
    """The format of a file, by its content, or where that tells none by its suffix; what is not read is refused."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    meant = next((known for known in FORMATS if path.suffix in known.suffixes), None)
    if not head:
        raise InputError(f"{path} cannot be read{f' as {meant.name}' if meant else ''}: it is empty")
    told = next((known for known in FORMATS if known.told_by(path, head)), None)
    if told is not None:
        return told
    for (start, place), reason in DECLINED.items():
        if head[place : place + len(start)] == start:
            raise InputError(f"{path} is {reason}")
    if head[:2] == b"PK":
        if not _ends_well(path):
            raise InputError(f"{path} is truncated: its end is missing, copy or save it again")
        if meant is None or not {".npz", ".pt", ".keras"} & {*meant.suffixes}:
            raise InputError(f"{path} holds no model that is known here")
        return meant
    if _is_core_ml(path):
        raise InputError(f"{path} is a Core ML model, which no light library reads: the model it was made from can be")
    if meant is None:
        raise unknown_name("kind of file", path.suffix or path.name, SUFFIXES)
    return meant


def _ends_well(path: Path) -> bool:
    """Whether a file ends as a zip archive does."""
    try:
        return zipfile.is_zipfile(path)
    except zipfile.BadZipFile:
        return False


def _is_core_ml(path: Path) -> bool:
    """Whether a file is a model of Core ML: a version, a description, and a model under a number from 200 on."""
    numbers = _numbers(path)
    return {1, 2} < numbers.keys() and 200 <= max(numbers) < 4000
