"""What the page offers: targets, the papers' examples and the guided tour, as ``presets.toml`` holds them."""

import tomllib
from pathlib import Path
from typing import Any

from ..activations import ACTIVATIONS, label, multiplicity
from ._settings import DEEP_WIDTH, LIMITS, MOST_CHANNELS, OPTIMIZERS, Settings


def presets() -> dict[str, list[dict[str, Any]]]:
    """The ``targets``, the ``figures`` and the ``scenes`` of the tour, with all their settings as texts."""
    tables = tomllib.loads((Path(__file__).parent / "presets.toml").read_text(encoding="utf-8"))
    shared = tables.pop("shared")

    def changed(settings: dict[str, str]) -> dict[str, str]:
        return shared.get(settings.pop("like", None), {}) | settings

    for target in tables["targets"]:
        target["settings"] = changed(target["settings"])
    comparisons = [comparison for scene in tables["scenes"] for comparison in scene["compare"]]
    for preset in (*tables["figures"], *tables["scenes"], *comparisons):
        preset["settings"] = Settings.from_text(changed(preset["settings"])).to_text()
    return tables


def hello() -> dict[str, Any]:
    """The first message to a page: everything that it can offer, but for the library."""
    return {
        "kind": "hello",
        "defaults": Settings().to_text(),
        **presets(),
        "activations": [{"name": name, "label": label(name), "p": multiplicity(name)} for name in ACTIVATIONS],
        "optimizers": [{"name": name, "label": text} for name, text in OPTIMIZERS.items()],
        "limits": {name: list(pair) for name, pair in LIMITS.items()},
        "widest": {"channels": MOST_CHANNELS, "deep": DEEP_WIDTH},
    }
