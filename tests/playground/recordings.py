"""A recording as the page reads it."""

import base64
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from condensation.playground._messages import unpack
from condensation.playground._tracks import decode

TOUR = Path(__file__).parents[2] / "docs" / "assets" / "tour.txt"


class Opened:
    """A recording, from its text or from the page that has it."""

    def __init__(self, text: str) -> None:
        found = re.search(r'id="recording">\n(.*?)\n</script>', text, re.S)
        self.lines = (found[1] if found else text).strip().split("\n")
        self.hello = self.part(0)[0]

    def part(self, number: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return unpack(zlib.decompress(base64.b64decode(self.lines[number])))

    def frames(self, entry: dict[str, Any], layer: int = 0) -> list[tuple[dict[str, Any], dict[str, np.ndarray]]]:
        """Headers and arrays of the frames of a layer."""
        own = entry["layers"][layer]
        header, arrays = self.part(own["frames"])
        frames = decode(header["tracks"], arrays)
        if "heads" in own:
            kept, shared = self.part(own["heads"])
            tracks = [track for track in kept["tracks"] if track["name"] != "spectra"]
            frames = [one | other for one, other in zip(frames, decode(tracks, shared), strict=True)]
            matrix = f"head_{own['name'].rstrip('0123456789')}"
            frames = [{"w": frame[matrix].reshape(-1, frame[matrix].shape[-1])} | frame if matrix in frame else frame
                      for frame in frames]  # fmt: skip
        return [*zip(header["frames"], frames, strict=True)]

    def spectra(self, entry: dict[str, Any]) -> np.ndarray:
        """The singular values of attention over the steps."""
        kept, arrays = self.part(entry["layers"][0]["heads"])
        tracks = [track for track in kept["tracks"] if track["name"] == "spectra"]
        return np.stack([frame["spectra"] for frame in decode(tracks, arrays)])

    def texts(self, entry: dict[str, Any], layer: int = 0) -> dict[str, list[str]]:
        return self.part(entry["layers"][layer]["frames"])[0]["texts"]
