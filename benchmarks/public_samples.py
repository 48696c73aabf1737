"""Real inputs for the models of ``public_models.py``: images, sounds, files, words and sentences, each in two parts.

The first part is what a reduction gets, the second what it is judged on. No two samples overlap, since a reduction that
holds samples back would else know them already: images and recordings are cut into pieces side by side. One half of an
image goes to one part; windows of a recording go to the parts in turn.
"""

import inspect
import io
import re
import sysconfig
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.signal
import torch
from PIL import Image
from scipy.io import wavfile

RATE = 16_000  # of all sounds, in samples a second
Parts = tuple[torch.Tensor, torch.Tensor]
Read = Callable[[str, str], bytes]  # the content of a file of a package
IMAGES = {
    "scikit-image": [f"skimage/data/{name}" for name in (
        "astronaut.png", "brick.png", "camera.png", "chelsea.png", "coffee.png", "coins.png", "color.png", "grass.png",
        "hubble_deep_field.jpg", "ihc.png", "motorcycle_left.png", "page.png", "retina.jpg", "rocket.jpg", "text.png",
    )],
    "insightface": ["insightface/data/images/t1.jpg", "insightface/data/images/mask_white.jpg"],
    "ultralytics": ["ultralytics/assets/bus.jpg", "ultralytics/assets/zidane.jpg"],
    "imgaug": ["imgaug/quokka.jpg"],
}  # fmt: skip
SOUNDS = {
    "pyannote.audio": ["pyannote/audio/sample/sample.wav"],
    "useful-moonshine-onnx": ["moonshine_onnx/assets/beckett.wav"],
    "f5-tts": [f"f5_tts/infer/examples/basic/basic_ref_{language}.wav" for language in ("en", "zh")],
    "moonshine-voice": [f"moonshine_voice/assets/{name}.wav" for name in ("two_cities", "endgame_nagg_nell")],
}
FACES = ("scikit-image", "skimage/data/lfw_subset.npy")


def _parts(pairs: Iterable[tuple[int, np.ndarray]], count: int) -> Parts:
    """So many samples of each part, drawn at random from (part, sample)."""
    every: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for part, sample in pairs:
        every[part].append(sample)
    stream, chosen = np.random.default_rng(0), []
    for own in every:
        order = stream.permutation(len(own))[:count]
        chosen.append(torch.from_numpy(np.stack([own[k] for k in order])))
    return chosen[0], chosen[1]


def _images(read: Read) -> Iterator[Image.Image]:
    for package, names in IMAGES.items():
        for name in names:
            yield Image.open(io.BytesIO(read(package, name))).convert("RGB")


def tiles(read: Read, shape: tuple[int, int], height: int, count: int, faces: bool = False) -> Parts:
    """Pieces of images of a height, RGB in -1 to 1; with faces, two hundred small images of and without a face too."""
    tall, wide = shape

    def pairs() -> Iterator[tuple[int, np.ndarray]]:
        for k, image in enumerate(_images(read)):
            for side in (0, 1):
                half = image.crop((side * image.width // 2, 0, (side + 1) * image.width // 2, image.height))
                width = max(wide, half.width * height // half.height)
                pixels = np.asarray(half.resize((width, height), Image.Resampling.BILINEAR))
                for top in range(0, height - tall + 1, tall):
                    for left in range(0, width - wide + 1, wide):
                        yield (side + k) % 2, _scaled(pixels[top : top + tall, left : left + wide])
        if faces:
            for k, grey in enumerate(np.load(io.BytesIO(read(*FACES)))):
                face = Image.fromarray((255 * grey).astype(np.uint8)).convert("RGB")
                yield k % 2, _scaled(np.asarray(face.resize((wide, tall), Image.Resampling.BILINEAR)))

    return _parts(pairs(), count)


def _scaled(pixels: np.ndarray) -> np.ndarray:
    return (pixels.astype(np.float32).transpose(2, 0, 1) - 127.5) / 128


def upside_down(x: torch.Tensor) -> torch.Tensor:
    """Images, every second of them turned by 180 degrees."""
    turned = x.clone()
    turned[::2] = x[::2].flip(2, 3)
    return turned


def windows(read: Read, length: int, count: int, features: Callable[[np.ndarray], np.ndarray] = np.asarray) -> Parts:
    """Windows of speech, one after the other, which go to the parts in turn, and what is computed of each."""

    def pairs() -> Iterator[tuple[int, np.ndarray]]:
        for package, names in SOUNDS.items():
            for name in names:
                with warnings.catch_warnings(action="ignore"):  # about a recording's own notes
                    rate, signal = wavfile.read(io.BytesIO(read(package, name)))
                sound = scipy.signal.resample_poly(signal / 2**15, RATE, rate).astype(np.float32)
                for k, start in enumerate(range(0, len(sound) - length + 1, length)):
                    yield k % 2, features(sound[start : start + length])

    return _parts(pairs(), count)


def mel(sound: np.ndarray, frame: int, hop: int, bands: int) -> np.ndarray:
    """The power in bands that are even on the mel scale, by frame: Slaney's scale, triangles of equal area."""
    half = frame // 2
    padded = np.pad(sound.astype(np.float64), half)
    starts = range(0, len(padded) - frame + 1, hop)
    window = np.hanning(frame + 1)[:-1]
    power = np.abs(np.fft.rfft(np.stack([padded[k : k + frame] for k in starts]) * window)) ** 2
    top = 15 + 27 * np.log(RATE / 2 / 1000) / np.log(6.4)
    points = np.linspace(0, top, bands + 2)
    hertz = np.where(points < 15, points * 200 / 3, 1000 * np.exp((points - 15) * np.log(6.4) / 27))
    bins = np.arange(power.shape[1]) * RATE / frame
    rising = (bins - hertz[:-2, None]) / np.diff(hertz)[:-1, None]
    falling = (hertz[2:, None] - bins) / np.diff(hertz)[1:, None]
    weights = np.maximum(0, np.minimum(rising, falling)) * (2 / (hertz[2:] - hertz[:-2]))[:, None]
    return (power @ weights.T).astype(np.float32)


def texts() -> list[str]:
    """The documentation of parts of scikit-learn and SciPy."""
    import scipy.stats
    import sklearn
    import sklearn.datasets
    import sklearn.linear_model

    descriptions = Path(sklearn.__file__).parent / "datasets" / "descr"
    found = [path.read_text(encoding="utf-8") for path in sorted(descriptions.glob("*.rst"))]
    for module in (scipy.stats, scipy.signal, sklearn.datasets, sklearn.linear_model):
        found += [inspect.getdoc(value) or "" for _, value in inspect.getmembers(module, callable)]
    return found


def sentences() -> list[str]:
    """Their sentences, in the order of the alphabet."""
    found = {
        re.sub(r"\s+", " ", sentence).strip()
        for text in texts()
        for sentence in re.split(r"(?<=[.?!])\s+|\n\s*\n", text)
    }
    return sorted(one for one in found if re.fullmatch(r"[A-Z][\w ,;:'()-]{40,160}[.?!]", one))


def in_turn(samples: list[Any], count: int) -> Parts:
    """Every second sample for each part."""
    return _parts(((k % 2, np.asarray(sample)) for k, sample in enumerate(samples)), count)


def files(length: int, count: int) -> Parts:
    """The first and the last bytes of files of the standard library and of the installed packages; 256 is no byte."""
    kinds: dict[str, list[Path]] = defaultdict(list)
    for folder in (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"]):
        for path in sorted(Path(folder).rglob("*.*")):
            if path.is_file() and path.stat().st_size > 64:
                kinds[path.suffix].append(path)
    stream = np.random.default_rng(0)
    chosen = [own[k] for own in kinds.values() for k in stream.permutation(len(own))[:40]]

    def sample(path: Path) -> np.ndarray:
        with path.open("rb") as file:
            head = file.read(4096).lstrip()[:length]
            file.seek(max(0, path.stat().st_size - 4096))
            tail = file.read().rstrip()[-length:]
        padded = [*head, *[256] * (2 * length - len(head) - len(tail)), *tail]
        return np.array(padded)

    return in_turn([sample(path) for path in chosen], count)
