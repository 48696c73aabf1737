"""Files of strangers: nothing in them is run, nothing outside them is opened, and each bad one gets one sentence."""

import gzip
import io
import os
import pickle
import struct
import sys
import tarfile
import zipfile

import foreign
import h5py
import joblib
import numpy as np
import pytest
from fuzzing import check_told, refused, within_time

from condensation import InputError
from condensation._memory import VARIABLE
from condensation.weights import measure_listed, open_model_file
from condensation.weights._formats.table import SUFFIXES

SAID = "of which nothing was imported or called"


class Payload:
    """What an attacker would pickle."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


def programs(target: str) -> dict[str, bytes]:
    """Pickles that make a folder, by each opcode that imports, calls or builds."""
    module, name = os.mkdir.__module__.encode(), target.encode()
    text = b"X" + struct.pack("<I", len(name)) + name
    named = b"c" + module + b"\nmkdir\n"
    return {
        **{f"protocol {k}": pickle.dumps(Payload(target), protocol=k) for k in range(6)},
        "INST": b"(" + text + b"i" + module + b"\nmkdir\n.",
        "OBJ": b"(" + named + text + b"o.",
        "NEWOBJ": b"\x80\x02" + named + text + b"\x85\x81.",
        "NEWOBJ_EX": b"\x80\x04" + named + text + b"\x85}\x92.",
        "BUILD": b"\x80\x02cshadowed\nThing\n)\x81}" + text + named + text + b"\x85Rsb.",
        "import": b"\x80\x02cshadowed\nthing\n.",
        "deep import": b"\x80\x04\x8c\x08shadowed\x8c\x0fthing.sub.thing\x93.",
    }


def containers(program: bytes, target: str) -> dict[str, bytes]:
    """A pickle in each kind of file that may hold one."""
    array, archive, torch, script, packed = (io.BytesIO() for _ in range(5))
    np.save(array, np.array([{"w": foreign.DENSE, "x": Payload(target)}], dtype=object))
    np.savez(archive, a=foreign.DENSE, b=np.array([Payload(target)], dtype=object))
    for buffer, names in ((torch, ("data.pkl",)), (script, ("data.pkl", "constants.pkl", "code/m.py"))):
        with zipfile.ZipFile(buffer, "w") as made:
            for name in names:
                made.writestr(f"m/{name}", program)
    joblib.dump({"w": foreign.DENSE, "x": Payload(target)}, packed)
    legacy = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    return {
        "m.npy": array.getvalue(), "m.npz": archive.getvalue(), "m.pt": torch.getvalue(), "m.jit": script.getvalue(),
        "m.joblib": packed.getvalue(), "m.pkl": program, "m.pth.tar": legacy + program + pickle.dumps([], 2),
    }  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", programs("x"))
def test_no_opcode_imports_or_calls(tmp_path, monkeypatch, kind):
    target = tmp_path / "harm"
    shadowed = f"import pathlib\npathlib.Path({str(target)!r}).mkdir()\n"
    (tmp_path / "shadowed.py").write_text(shadowed)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, content in containers(programs(str(target))[kind], str(target)).items():
        path = tmp_path / name
        path.write_bytes(content)
        check_told("measure", path)
        with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
            archive.write(path, f"inner/{name}")
        refused(lambda: open_model_file(tmp_path / "in.zip"))
        with gzip.open(tmp_path / f"{name}.gz", "wb") as packed:
            packed.write(content)
        refused(lambda name=name: open_model_file(tmp_path / f"{name}.gz"))
        assert not target.exists(), (kind, name)
        assert "shadowed" not in sys.modules


def test_the_programs_do_harm_where_pickles_are_trusted(tmp_path):
    """Else the test above would say nothing."""
    for kind, content in programs(str(tmp_path / "harm")).items():
        if kind.startswith("protocol") or kind in ("INST", "OBJ"):
            pickle.loads(content)
            (tmp_path / "harm").rmdir()


def test_arrays_beside_a_payload_are_read(tmp_path):
    for name, content in containers(b"N.", str(tmp_path / "harm")).items():
        if name in ("m.npy", "m.npz", "m.joblib"):
            (tmp_path / name).write_bytes(content)
            found = open_model_file(tmp_path / name)
            np.testing.assert_array_equal(found.arrays["a" if name == "m.npz" else "w"].read(), foreign.DENSE)
            assert name == "m.npz" or any(SAID in note for note in found.notes)
    assert not (tmp_path / "harm").exists()


def nested(build: bytes, count: int) -> bytes:
    return b"\x80\x02" + build * count + b"."


BOMBS = {
    "lists in lists": nested(b"]", 50_000) + b"a" * 49_999 + b".",
    "two of each": b"\x80\x02]q\x00" + b"".join(b"]h%cah%caq%c" % (k, k, k + 1) for k in range(60)) + b".",
    "two of each by name": b"\x80\x02cnumpy\nndarray\n)\x81(K\x01)cnumpy\ndtype\nX\x02\0\0\0f4\x85R\x89"
    + b"X\x04\0\0\0abcdtbq\x00"
    + b"".join(b"}X\x01\0\0\0ah%csX\x01\0\0\0bh%csq%c" % (k, k, k + 1) for k in range(60))
    + b".",
    "a name that is a nest": b"\x80\x02]q\x00"
    + b"".join(b"]h%cah%caq%c" % (k, k, k + 1) for k in range(60))
    + b"}ctorch._utils\n_rebuild_tensor_v2\n((h<h<h<h<tQh<h<h<tRs.",
    "tuples as keys": b"\x80\x02)" + b"2\x86" * 60 + b"}q\x00h\x001K\x01s.",
    "a place far away": b"\x80\x02]r\xff\xff\xff\x7f.",
    "bytes that are not there": b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b"a.",
    "a frame that is not there": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"N.",
    "a number of many digits": b"I" + b"9" * 100_000 + b"\n.",
    "nothing on the stack": b"\x80\x02R.",
    "a mark that is missing": b"\x80\x02t.",
    "a buffer of elsewhere": b"\x80\x05\x97.",
    "no end": b"\x80\x02]",
    "itself": b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.",
    "a list in itself": b"\x80\x02]q\x00h\x00a.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_pickles_that_eat_the_machine_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.setenv(VARIABLE, str(2**30))
    path = tmp_path / "m.pkl"
    path.write_bytes(BOMBS[name])
    with within_time(), pytest.raises(InputError, match=r"m\.pkl") as told:
        open_model_file(path)
    assert "\n" not in str(told.value)


def tensor_file(offset=0, size=(2, 2), stride=(2, 1), count=4, values=16) -> bytes:
    """A file of PyTorch with one tensor, written by hand."""

    def number(value: int) -> bytes:
        return b"\x8a\x08" + struct.pack("<q", value)

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(number, values)) + b"t"

    def text(word: bytes) -> bytes:
        return b"X" + struct.pack("<I", len(word)) + word

    storage = b"(" + text(b"storage") + b"ctorch\nFloatStorage\n" + text(b"0") + text(b"cpu") + number(count) + b"tQ"
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + number(offset)
        + numbers(size)
        + numbers(stride)
        + b"\x89NtR"
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02}" + text(b"a.weight") + tensor + b"s.")
        archive.writestr("m/data/0", bytes(range(1, values + 1)))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"offset": 1}, "reaches beyond the end of its storage"),
        ({"offset": -1}, "place in its storage is none"),
        ({"stride": (2, -1)}, "sizes are none"),
        ({"stride": (2**40, 1)}, "reaches beyond the end of its storage"),
        ({"size": (2**40, 2**40)}, "sizes that no array has"),
        ({"size": (1,) * 65, "stride": (1,) * 65}, "65 axes, more than an array may have"),
        ({"size": (-2, -2)}, "sizes are none"),
        ({"size": (2,)}, "place in its storage is none"),
        ({"count": 2**60, "offset": 2**50}, "its values are missing"),
        ({"values": 15}, "its values are missing"),
    ],
)
def test_tensors_lie_within_their_storage(tmp_path, change, said):
    (tmp_path / "m.pt").write_bytes(tensor_file(**change))
    (row,) = measure_listed(open_model_file(tmp_path / "m.pt").units())
    assert said in row.reason
    assert bool(said) == bool(row.reason)


def test_links_and_foreign_values_of_hdf5_are_not_followed(tmp_path):
    secret = foreign.normal(8, 4)
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["w"] = secret
    secret.tofile(tmp_path / "secret.bin")
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["own"] = foreign.normal(8, 4)
        file["external"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "w")
        file["soft"] = h5py.SoftLink("/own")
        file.create_dataset("stored", (8, 4), "f4", external=[(str(tmp_path / "secret.bin"), 0, secret.nbytes)])
        layout = h5py.VirtualLayout((8, 4), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "secret.h5"), "w", (8, 4))
        file.create_virtual_dataset("virtual", layout)
        file["group/again"] = file["/"]  # a circle
    told = {own.name: own.reason for own in open_model_file(tmp_path / "m.h5").units()}
    assert told == {
        "own": "",
        "external": "a link of HDF5 to elsewhere, which is not followed",
        "soft": "a link of HDF5 to elsewhere, which is not followed",
        "stored": "its values are in another file, which is not opened",
        "virtual": "its values are in another file, which is not opened",
    }


def test_a_large_array_of_few_bytes_is_refused_before_it_is_made(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.create_dataset("w", (2**20, 2**20), "f4", chunks=(1024, 1024), compression="gzip")
    monkeypatch.setenv(VARIABLE, str(2**32))
    (row,) = measure_listed(open_model_file(tmp_path / "m.h5").units())
    assert "of memory" in row.reason


@pytest.mark.parametrize("name", ["../shard1.bin", "/etc/hostname", "a/../../shard1.bin", ""])
def test_a_list_of_weights_names_files_in_its_folder(tmp_path, name):
    (tmp_path / "in").mkdir()
    (tmp_path / "shard1.bin").write_bytes(bytes(2000))
    (tmp_path / "in" / "model.json").write_bytes(foreign.tfjs_files((name,))["model.json"])
    with pytest.raises(InputError, match="which is not in its own folder"):
        open_model_file(tmp_path / "in" / "model.json")


CUTS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 20, 24, 30, 32, 40, 48, 64, 96, 100, 128, 200, 256, 400, 512]


@pytest.mark.parametrize("kind", ["m.onnx", "m.h5", "m.keras", "m.pb", "c.index", "model.json", "m.tflite", "m.gguf"])
@pytest.mark.usefixtures("unchecked")
def test_files_that_are_cut_short_get_one_sentence(tmp_path, kind):
    """At the boundaries of headers, and in sixteenths; none of them, and none of another name, is an accident."""
    content = foreign.all_files(tmp_path)[kind]
    ends = [*CUTS, *(k * len(content) // 16 for k in range(1, 16)), len(content) - 8, len(content) - 1]
    for end in ends:
        for path in (tmp_path / kind, tmp_path / "other.bin"):
            path.write_bytes(content[:end])
            refused(lambda path=path: measure_listed(open_model_file(path).units()))
    (tmp_path / kind).write_bytes(content)
    assert check_told("measure", tmp_path / kind) == 0


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".whl", ".zip", ".tgz", ".txt", ""])
@pytest.mark.parametrize("content", [b"", b"\0", b"hello", b"PK\3\4", b"\x1f\x8b", bytes(600)])
def test_empty_files_and_files_of_nothing(tmp_path, suffix, content):
    path = tmp_path / f"m{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"m{suffix}|unknown kind of file") as told:
        open_model_file(path)
    assert "\n" not in str(told.value)
    if not content:
        assert str(told.value).endswith("it is empty")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS, not the file itself"),
        (b"<!DOCTYPE html><html></html>", "a web page, not a model"),
        (b"\x18\0\0\0ORTM....", "of ONNX Runtime's own format"),
        (b"\x04\x22\x4d\x18....", "packed with LZ4: unpack it first"),
        (foreign.field(1, 4) + foreign.field(2, b"") + foreign.field(500, b"..."), "is a Core ML model"),
    ],
)
def test_what_is_not_read_is_refused_with_the_true_reason(tmp_path, content, said):
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(InputError, match=said):
        open_model_file(tmp_path / "model.bin")


def test_members_of_archives_are_written_nowhere_else(tmp_path):
    """Names that lead out, links, and a name twice: the content is read, or it is refused."""
    (tmp_path / "secret.onnx").write_bytes(foreign.onnx_file())
    before = sorted(tmp_path.parent.rglob("*.onnx"))
    for name in ("../../evil.onnx", "/evil.onnx", "a\\..\\evil.onnx", "a/../evil.onnx", "\x1b[2J.onnx"):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr(name, foreign.onnx_file())
        check_told("measure", tmp_path / "a.zip")
        with tarfile.open(tmp_path / "a.tar", "w") as archive:
            about = tarfile.TarInfo(name)
            about.size = len(foreign.onnx_file())
            archive.addfile(about, io.BytesIO(foreign.onnx_file()))
        check_told("measure", tmp_path / "a.tar")
    assert sorted(tmp_path.parent.rglob("*.onnx")) == before
    with tarfile.open(tmp_path / "links.tar", "w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            about = tarfile.TarInfo(f"m{kind.decode()}.onnx")
            about.type, about.linkname = kind, str(tmp_path / "secret.onnx")
            archive.addfile(about)
    with pytest.raises(InputError, match="an archive without a model"):
        open_model_file(tmp_path / "links.tar")


def test_archives_that_grow_are_refused(tmp_path):
    zeros = bytes(2**20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("m.onnx", "w") as file:
        for _ in range(80):
            file.write(zeros)
    with pytest.raises(InputError, match=r"is not unpacked: m\.onnx would grow to 80 MiB"):
        open_model_file(tmp_path / "a.zip")
    with gzip.open(tmp_path / "m.onnx.gz", "wb", compresslevel=9) as file:
        for _ in range(160):
            file.write(zeros)
    with pytest.raises(InputError, match=r"is not unpacked: it grows beyond"):
        open_model_file(tmp_path / "m.onnx.gz")


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tgz"])
def test_archives_that_are_cut_short_get_one_sentence(tmp_path, name):
    path = tmp_path / name
    if name == "a.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("m.onnx", foreign.onnx_file())
    else:
        (tmp_path / "m.onnx").write_bytes(foreign.onnx_file())
        with tarfile.open(path, "w:gz" if name == "a.tgz" else "w") as archive:
            archive.add(tmp_path / "m.onnx", "m.onnx")
    content = path.read_bytes()
    for end in (1, 4, 10, 30, 100, len(content) // 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:end])
        with within_time():
            assert check_told("measure", path) in (0, 2)
    path.write_bytes(content)
    assert check_told("measure", path) == 0


@pytest.mark.parametrize(("place", "value"), [(8, 2**60), (16, 2**60), (16, 2**33), (4, 1)])
def test_counts_of_gguf_that_lie_are_refused(tmp_path, place, value):
    content = bytearray(foreign.gguf_file(tmp_path))
    width = 4 if place == 4 else 8
    content[place : place + width] = value.to_bytes(width, "little")
    (tmp_path / "m.gguf").write_bytes(content)
    with within_time(), pytest.raises(InputError, match="cannot be read as GGUF"):
        open_model_file(tmp_path / "m.gguf")
