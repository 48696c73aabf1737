"""Archives as packages ship them (.zip, .whl, .tar, .tgz, .gz): a model inside is read without unpacking the rest.

A member is copied, with the files beside it that belong to it, into a folder of this process under a name of our own;
what an archive says of paths, links, owners and rights is not followed.
"""

import gzip
import shutil
import tarfile
import weakref
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import Any

import numpy as np

from ..._files import Stored
from ..._memory import in_words
from ..._phrases import printable
from ...errors import InputError
from .opened import LARGE, MOST_TIMES, Opened, check_growth
from .table import SUFFIXES, is_pytorch, zip_names

_MOST_MEMBERS = 200_000
_BLOCK = 2**20
_SHOWN = 8  # members that an error names
_TRIED = 64  # members that are looked into
_SIDE = (".data", ".bin", ".onnx_data", ".weight", "")  # suffixes of files that a model beside them may name
_DEEPEST = 4  # archives in each other
_HEAD = 4096  # bytes in which packed ones begin to tell what they are
_GZIP = b"\x1f\x8b"
_GRAPH = "saved_model.pb"  # of TensorFlow, whose variables lie in a folder beside it
_LISTS = ("model.json", "weights_manifest.json")  # of TensorFlow.js; other .json files are no models


@dataclass(frozen=True)
class Member:
    """A file in an archive, by its name there."""

    name: str
    size: int
    packed: int


class Folder:
    """A folder of this process, which goes when nothing needs it any more."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="condensation-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def is_archive(path: Path) -> bool:
    """Whether a file is an archive of files, and not one of the formats that are zip archives themselves."""
    with path.open("rb") as file:
        head = file.read(262)
    if head[:4] == b"PK\3\4":
        names = zip_names(path)
        own = is_pytorch(names) or "model.weights.h5" in names or all(name.endswith(".npy") for name in names)
        return bool(names) and not own
    return head[257:262] == b"ustar" or head[:2] == _GZIP or _is_packed_pickle(path)


def _is_packed_pickle(path: Path) -> bool:
    """Whether a file is a pickle that zlib has packed, as joblib does."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head[:1] != b"\x78" or int.from_bytes(head[:2], "big") % 31:
        return False
    try:
        return zlib.decompressobj().decompress(head, 2)[:1] == b"\x80"
    except zlib.error:
        return False


def around(path: Path) -> tuple[Path, str] | None:
    """The archive and the member that a path through an archive names; None where no part of it is an archive."""
    for folder in path.parents:
        if folder.is_file():
            return (folder, path.relative_to(folder).as_posix()) if is_archive(folder) else None
    return None


def models_in(path: Path) -> list[str]:
    """The members of an archive that may be models, told by their suffixes."""
    return models_among([member.name for member in _list(path)])


def models_among(names: Iterable[str]) -> list[str]:
    """The names of files that may be models; shards that a list of TensorFlow.js beside them names are none.

    >>> models_among(["a/model.json", "a/group1-shard1of1.bin", "b/w.pt", "c/saved_model.pb", "tokenizer.json"])
    ['a/model.json', 'b/w.pt', 'c/saved_model.pb']
    """
    files = [PurePosixPath(name) for name in names]
    lists = {file.parent for file in files if file.name.endswith(_LISTS)}
    graphs = {file.parent for file in files if file.name == _GRAPH}
    return [
        str(file)
        for file in files
        if (file.name.endswith(_LISTS) if file.suffix == ".json" else file.suffix in (*SUFFIXES, ".zip"))
        and "__MACOSX" not in file.parts
        and not (file.suffix == ".bin" and file.parent in lists)
        and not (file.suffix == ".index" and file.parent.name == "variables" and file.parent.parent in graphs)
    ]


def only_model(path: Path) -> str:
    """The one model of an archive; where there are several, an error that names them."""
    found = models_in(path)
    if len(found) > 1:
        raw = _raw(path, [name for name in found if name.endswith(".bin")][:_TRIED])
        found = [name for name in found if name not in raw]
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"{path} is an archive without a model: looked for {', '.join(SUFFIXES)}")
    shown = ", ".join(map(printable, found[:_SHOWN])) + (f", {len(found) - _SHOWN} more" if found[_SHOWN:] else "")
    raise InputError(f"{path} holds {len(found)} models ({shown}): name one, such as {path}/{printable(found[0])}")


def _raw(path: Path, names: list[str]) -> set[str]:
    """Those of some members that begin as no archive and no pickle does: numbers without a description."""
    raw = set()
    with _opened(path) as archive:
        for name in names:
            source = archive.open(name) if isinstance(archive, zipfile.ZipFile) else archive.extractfile(name)
            with source:
                if not source.read(2).startswith((b"PK", b"GG", *(bytes([128, k]) for k in range(1, 6)))):
                    raw.add(name)
    return raw


def _begins_as_zip(path: Path) -> bool:
    """By its beginning: a tar archive whose last file is a zip archive ends as one."""
    with path.open("rb") as file:
        return file.read(2) == b"PK"


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with zipfile.ZipFile(path) if _begins_as_zip(path) else tarfile.open(path) as archive:
            yield archive
    except InputError:
        raise
    except Exception as error:  # a foreign archive fails in many ways
        why = str(error).partition(":\n")[0]
        raise InputError(f"{path} cannot be read as an archive: {type(error).__name__}: {why}") from error


def _list(path: Path) -> list[Member]:
    """The regular files of an archive; one of a size that nothing could be packed to is refused."""
    with _opened(path) as archive:
        if isinstance(archive, zipfile.ZipFile):
            members = [Member(m.filename, m.file_size, m.compress_size) for m in archive.infolist() if not m.is_dir()]
        else:
            members, whole = [], path.stat().st_size
            for member in archive:  # one after the other: a packed archive that grows without end is left
                if member.isreg():
                    members.append(Member(member.name, member.size, whole))
                if len(members) > _MOST_MEMBERS or sum(m.size for m in members[-1:]) > MOST_TIMES * whole + LARGE:
                    break
    if len(members) > _MOST_MEMBERS:
        raise InputError(f"{path} holds more than {_MOST_MEMBERS:,} files: unpack it first")
    check_growth(path, ((member.name, member.size, member.packed) for member in members))
    return members


def unpacked(path: Path, name: str) -> tuple[Path, Folder]:
    """A copy of a member, with the files beside it that may belong to it, and the folder that holds them."""
    members = {member.name: member for member in _list(path)}
    if PurePosixPath(name).name == _GRAPH:
        name = str(PurePosixPath(name).parent / "variables" / "variables.index")
    wanted = next((own for own in members if PurePosixPath(own) == PurePosixPath(name)), None)
    if wanted is None:
        raise InputError(f"{path} holds no file {name}; its models: {', '.join(models_in(path)[:_SHOWN]) or 'none'}")
    beside = [own for own in members if own != wanted and _belongs(own, wanted)]
    folder = Folder()
    free = shutil.disk_usage(folder.path).free // 2
    if (needed := sum(members[own].size for own in (wanted, *beside))) > free:
        raise InputError(f"{path} takes {in_words(needed)} unpacked, and {in_words(free)} of the disk may be used")
    with _opened(path) as archive:
        for own in (wanted, *beside):
            source = archive.open(own) if isinstance(archive, zipfile.ZipFile) else archive.extractfile(own)
            with source, (folder.path / _plain(own)).open("wb") as target:
                _copy(source, target, members[own].size, path)
    return folder.path / _plain(wanted), folder


def _plain(name: str) -> str:
    """The last part of a member's name, as a file's name that leads nowhere else."""
    return PurePosixPath(name.replace("\\", "/")).name.replace("\0", "") or "member"


def _belongs(other: str, wanted: str) -> bool:
    """Whether a member lies beside another and may be named by it: its shards, its data, its configuration."""
    file, own = PurePosixPath(other), PurePosixPath(wanted)
    if file.parent != own.parent or _plain(other) == _plain(wanted):
        return False
    if own.suffix == ".index":
        return file.name.startswith(own.stem)
    if own.suffix == ".json":
        return file.suffix in _SIDE
    return file.name == "config.json" or (own.suffix == ".onnx" and (file.suffix in _SIDE or own.name in file.name))


def _copy(source: Any, target: Any, size: int, path: Path) -> None:
    """Copy so many bytes, and not one more."""
    left = size
    while left and (block := source.read(min(_BLOCK, left))):
        target.write(block)
        left -= len(block)
    if left:
        raise InputError(f"{path} cannot be read as an archive: it is truncated")


def kept(opened: Opened, folder: object) -> Opened:
    """Arrays that keep the folder of their file as long as they are there."""

    def load(stored: Stored, _: object) -> np.ndarray:
        return stored.load()

    arrays = {name: replace(stored, load=partial(load, stored, folder)) for name, stored in opened.arrays.items()}
    return replace(opened, arrays=arrays)


def innermost(path: Path, member: str | None) -> tuple[Path, list[Folder]]:
    """A copy of a model in an archive, which may lie in another one, as packages have them, and the folders of copies.

    It is the member that is named, or the only model.
    """
    inside, folders = path, []
    while member or not folders or is_archive(inside):
        if len(folders) == _DEEPEST:
            raise InputError(f"{path} holds more than {_DEEPEST} archives in each other: unpack them first")
        try:
            alone = unzipped(inside)
            inside, folder = alone or unpacked(inside, member or only_model(inside))
        except InputError as error:
            raise InputError(str(error).replace(str(inside), str(path))) from error
        folders.append(folder)
        member = member if alone else None
    return inside, folders


def unzipped(path: Path) -> tuple[Path, Folder] | None:
    """A copy of the one file that gzip or zlib has packed; None where it is another one, or packs several."""
    with path.open("rb") as file:
        if file.read(2) != _GZIP and not _is_packed_pickle(path):
            return None
    folder = Folder()
    inside = folder.path / (_plain(path.name).removesuffix(".gz") or "member")
    free = min(shutil.disk_usage(folder.path).free // 2, MOST_TIMES * path.stat().st_size + LARGE)
    try:
        with inside.open("wb") as target:
            for block in _unpacking(path):
                if not target.tell() and block[257:262] == b"ustar":
                    return None
                target.write(block)
                if target.tell() > free:
                    raise InputError(f"{path} is not unpacked: it grows beyond {in_words(free)}")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as an archive: {error}") from error
    return inside, folder


def _unpacking(path: Path) -> Iterator[bytes]:
    """The content of a file packed by gzip or zlib, in blocks."""
    with path.open("rb") as file:
        if file.read(2) == _GZIP:
            with gzip.open(path) as source:
                while block := source.read(_BLOCK):
                    yield block
            return
        file.seek(0)
        stream = zlib.decompressobj()
        while not stream.eof:
            packed = stream.unconsumed_tail or file.read(_BLOCK)
            block = stream.decompress(packed, _BLOCK)
            if not packed and not block:
                raise EOFError("it is truncated")
            yield block
