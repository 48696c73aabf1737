"""A set of coupled channels, as a value."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

Indices = Int[np.ndarray, " units"]


@dataclass(frozen=True)
class ChannelSet:
    """Coupled channels.

    Attributes:
        name: of the first layer that makes them.
        producers: the layers whose rows make them, in the order in which they run.
        channels: of each producer, and of each batch norm, PReLU and depthwise convolution they pass, the channel of
            each unit.
        columns: of each layer that reads them, the columns of each unit.
        blocks: number of the block of each unit: where grouped convolutions stand at either end, units merge only
            within a block, and all blocks keep the same number.
        reason: why it cannot be reduced, or empty.
        declared: whether a unit has several rows, by the kind of its module (a head, an entry of a recurrent state); it
            then merges only with its like, and ``channels`` and ``columns`` are -1 where a module does not know it.
        attributes: of modules, how much each counts for a unit of a block.
    """

    name: str
    producers: tuple[str, ...]
    channels: dict[str, Int[np.ndarray, "units *rows"]]
    columns: dict[str, Int[np.ndarray, "units _"]]
    blocks: Indices
    reason: str = ""
    declared: bool = False
    attributes: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """Number of channels."""
        return len(self.blocks)
