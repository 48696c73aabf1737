"""Given weights as part of an experiment: a network's parameters by name, the same for all seeds or one set a seed."""

import json
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._files import read_arrays, read_sealed_json, read_tensors
from .._functions import may_import
from .._plain import parse_json
from .._seeds_header import read_header
from .._serialization import from_plain
from .._stored import StoredArrays, check_beside, digest
from ..errors import InputError, brief, unknown_name
from ..saving import SaveSchedule, list_steps
from ..seeds import Seed, as_seed
from ._model import Model

KNOWN = ("file", "run", "step", "seed", "sha256")


@dataclass(frozen=True, eq=False)
class Weights(StoredArrays):
    """Parameters by name. They are copied and frozen; two are equal when all their numbers are.

    >>> Weights({"output.weight": [[1, 2]]}).tensors()
    {'output.weight': array([[1., 2.]])}

    Args:
        parameters: arrays by name, a ``Model``, or models by seed (``trajectory.models(step)``): each seed then has
            weights of its own.
        seeds: of the first axis of all arrays, where each seed has weights of its own.
        source: where they came from, as an experiment file names it: ``{"file": ...}`` (see ``load``) or
            ``{"run": ..., "step": ...}`` (see ``of_run``).
    """

    parameters: Any
    seeds: Any = None
    source: Any = None

    def __post_init__(self) -> None:
        given, seeds = self.parameters, self.seeds
        if isinstance(given, Model):
            given = given.parameters
        elif isinstance(given, Mapping) and given and all(isinstance(value, Model) for value in given.values()):
            seeds, given = tuple(given), _stacked([model.parameters for model in given.values()])
        if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) for name in given):
            raise InputError(f"weights are arrays by name, a Model, or models by seed, not {brief(given)}")
        object.__setattr__(self, "parameters", {name: _frozen(name, given[name]) for name in sorted(given)})
        if seeds is not None:
            object.__setattr__(self, "seeds", tuple(as_seed(seed) for seed in seeds))
            for name, value in self.parameters.items():
                if value.shape[:1] != (len(self.seeds),):
                    raise InputError(f"{brief(name)} has the shape {value.shape}, which is not of {len(seeds)} seeds")

    def of(self, seed: Seed | None = None) -> dict[str, np.ndarray]:
        """The parameters by name, those of a seed where each has its own; of the first one if none is named."""
        if self.seeds is None:
            return dict(self.parameters)
        if seed is not None and seed not in self.seeds:
            known = ", ".join(str(own.data) if own.data == own.init else str(own) for own in self.seeds)
            raise InputError(f"the given weights are of the seeds {brief(known)}, and there are none for {seed}")
        place = 0 if seed is None else self.seeds.index(seed)
        return {name: value[place] for name, value in self.parameters.items()}

    @classmethod
    def load(cls, file: str | Path, folder: str | Path = ".") -> "Weights":
        """The weights in a file that ``Model.save`` wrote, or any .safetensors or .npz file of arrays by name."""
        path = Path(folder) / file
        about = read_tensors(path, arrays=False)[0] if path.suffix == ".safetensors" else {}
        try:
            seeds = tuple(Seed(*pair) for pair in parse_json(about["seeds"])) if "seeds" in about else None
        except (ValueError, TypeError) as error:
            raise InputError(f"{path} names seeds that cannot be read: {brief(about['seeds'])}") from error
        arrays = read_arrays(path)
        try:
            return cls(arrays, seeds, {"file": str(file)})
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    @classmethod
    def of_run(cls, run: str | Path, step: int, seed: int | Seed | None = None, folder: str | Path = ".") -> "Weights":
        """The weights at a saved step of a run's folder: those of one seed, or each finished seed's own."""
        source: dict[str, Any] = {"run": str(run), "step": step}
        if seed is None:
            found = _read_step(Path(folder) / run, step)
            return cls(_stacked(list(found.values())), tuple(found), source)
        own = as_seed(seed)
        return cls(_read_step(Path(folder) / run, step, own)[own], source=source | {"seed": list(own)})

    @property
    def origin(self) -> dict[str, Any]:
        """The file, or run and step, that they were loaded from."""
        return dict(self.source or {})

    def at(self, file: str) -> "Weights":
        """The same weights, as loaded from a file."""
        return replace(self, source={"file": file})

    def tensors(self) -> dict[str, np.ndarray]:
        """The arrays by name."""
        return dict(self.parameters)

    def about(self) -> dict[str, str]:
        """The seeds, where each has weights of its own."""
        return {} if self.seeds is None else {"seeds": json.dumps(self.seeds)}

    def describe(self) -> str:
        """Where they came from, in words."""
        origin = self.origin
        if "file" in origin:
            return f"the weights in {origin['file']}"
        own = "" if self.seeds is None else ", each seed's own"
        if "run" in origin:
            return f"the weights of the run {origin['run']} at step {origin['step']}{own}"
        return f"given weights{own}"

    @classmethod
    def __from_plain__(cls, plain: dict[str, Any], place: str, folder: Path) -> "Weights":
        for name in plain:
            if name not in KNOWN:
                raise unknown_name(f"field in {place}", name, KNOWN)
        if isinstance(plain.get("file"), str) and "run" not in plain:
            check_beside(place, plain["file"], folder)
            own = cls.load(plain["file"], folder)
        elif isinstance(plain.get("run"), str) and isinstance(plain.get("step"), int):
            if not may_import():
                raise InputError(f"{place} is the run {plain['run']}, outside of the folder that is opened: trust=True")
            pair: Any = plain.get("seed")
            seed: Any = Seed(*pair) if isinstance(pair, list) and len(pair) == 2 else pair
            own = cls.of_run(plain["run"], plain["step"], seed, folder)
        else:
            raise InputError(f"missing in {place}: file (a .safetensors or .npz file of weights), or run and step")
        if plain.get("sha256", own._digest) != own._digest:
            raise InputError(f"the weights of {place} are not those that this experiment used: their sha256 differs")
        return own

    def __plain__(self) -> dict[str, Any]:
        return {"sha256": self._digest}

    @cached_property
    def _digest(self) -> str:
        named = {} if self.seeds is None else {" seeds": np.array(self.seeds)}
        return digest(self.parameters | named)


GivenWeights = Model | Weights | Mapping[str, ArrayLike] | Mapping[Seed, Model] | Mapping[int, Model] | str | Path
"""How weights may be given: a model, arrays by name, models by seed, or the name of a file."""


def as_weights(given: GivenWeights) -> Weights:
    """Weights as they may be given: themselves, a ``Model``, arrays by name, models by seed, or the name of a file."""
    if isinstance(given, Weights):
        return given
    return Weights.load(given) if isinstance(given, str | Path) else Weights(given)


def _frozen(name: str, value: Any) -> np.ndarray:
    """A copy in float64 that cannot be written to; what is no array of finite numbers is refused."""
    try:
        array = np.array(value, dtype=float)
    except (ValueError, TypeError) as error:
        raise InputError(f"the given weights of {brief(name)} must be an array of numbers: {error}") from error
    if np.iscomplexobj(value) or not np.isfinite(array).all():
        raise InputError(f"the given weights of {brief(name)} must be finite real numbers")
    array.setflags(write=False)
    return array


def _stacked(models: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The parameters of some networks, one above the other."""
    for model in models[1:]:
        if {name: np.shape(value) for name, value in model.items()} != {n: np.shape(v) for n, v in models[0].items()}:
            raise InputError("the models of the seeds have not the same parameters")
    return {name: np.stack([np.asarray(model[name], float) for model in models]) for name in models[0]}


def _read_step(path: Path, step: int, seed: Seed | None = None) -> dict[Seed, dict[str, np.ndarray]]:
    """The weights of each finished seed, or of one, at a saved step of a run's folder; nothing else is read of it."""
    about = read_sealed_json(path / "run.json")
    plain = about.get("experiment")
    if not isinstance(plain, dict) or not isinstance(plain.get("steps"), int):
        raise InputError(f"{path} is not the folder of an experiment's run, whose weights at a step could be given")
    saved = list_steps(plain["steps"], from_plain(SaveSchedule, plain.get("save"), "save"))
    if not isinstance(step, numbers.Integral) or isinstance(step, bool) or step not in saved:
        raise InputError(f"step {brief(step)} was not saved in {path}; saved are {brief(saved)}")
    found = {}
    for file in sorted(path.glob("*.safetensors")):
        said = read_tensors(file, arrays=False)[0]
        if "condensation" not in said:
            continue  # the arrays that were trained on
        header = read_header(file, said, about.get("fingerprint", ""))
        if not header.finished or (seed is not None and seed not in header.seeds):
            continue
        tensors = {n[len("weights/") :]: t for n, t in read_tensors(file)[1].items() if n.startswith("weights/")}
        if any(tensor.shape[:2] != (len(header.seeds), len(saved)) for tensor in tensors.values()):
            raise InputError(f"{file} is not the file of a seed: its weights are not of all seeds and saved steps")
        for k, own in enumerate(header.seeds):
            if seed in (None, own):
                found[own] = {name: tensor[k, saved.index(step)] for name, tensor in tensors.items()}
    found = {own: weights for own, weights in found.items() if all(np.isfinite(w).all() for w in weights.values())}
    if not found:
        named = "seed" if seed is None else str(seed)
        raise InputError(f"the run in {path} has no finished {named} with finite weights at step {step}")
    return {own: found[own] for own in sorted(found)}
