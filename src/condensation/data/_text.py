"""A real text as data: windows of tokens, and the token behind each."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
from jaxtyping import Float32, Int

from .._memory import in_digits, require
from .._phrases import counted
from .._serialization import Count
from ..errors import InputError, one_of
from ..seeds import Seed
from ._catalog import SPLITS, known_text
from ._sequences import Tokens
from ._sources import load

REST = 0  # the token of all words that are not in the vocabulary
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)*|[0-9]+|[^\sa-z0-9]")


def words_of(text: str) -> list[str]:
    """Words in small letters, numbers, and each other sign by itself.

    >>> words_of("Fellow-Citizens: we've 2 Houses.")
    ['fellow', '-', 'citizens', ':', "we've", '2', 'houses', '.']
    """
    return _TOKEN.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


@dataclass(frozen=True)
class Text(Tokens, kind="text"):
    """Windows of a real text, fetched when they are first drawn; the target is the token behind a window.

    A token is a word in small letters, a number or a sign. Those of the vocabulary are numbered from 1 on, the most
    frequent one of the training split first (of equally frequent ones the first by the alphabet); 0 is any other.
    The data seed draws n different windows of the split, which may overlap one another. Those of the other split are
    of other documents: every tenth address is to test with.

    Args:
        name: ``"sotu"``, the State of the Union addresses, two million tokens.
        n: number of windows.
        length: tokens in a window.
        vocabulary: number of tokens, the one for all others included; the target is a row of one 1 and zeros.
        split: ``"train"`` or ``"test"``.

    >>> data = Text("sotu", n=1000, length=16, vocabulary=500)
    >>> data.input_shape, data.outputs
    ((16,), 500)
    """

    name: str
    n: Count
    length: Count
    vocabulary: Count
    split: Annotated[str, one_of("split", SPLITS)] = "train"

    def __post_init__(self) -> None:
        super().__post_init__()
        known_text(self.name)
        if self.vocabulary < 2:
            raise InputError("a vocabulary of one token has no words, only the token of all others: 2 or more would do")

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the tokens from 1 on."""
        return _words(self.name)[: self.vocabulary - 1]

    def draw(
        self, seed: Seed
    ) -> tuple[Float32[np.ndarray, "samples length"], Float32[np.ndarray, "samples vocabulary"]]:
        """The windows, and the token behind each."""
        drawn = f"drawing {in_digits(self.n)} windows with targets of {in_digits(self.vocabulary)} tokens"
        require(2 * 4 * self.n * (self.length + self.vocabulary), drawn, "a smaller n or vocabulary would fit")
        numbers, most = _numbers(self.name, self.split), len(_words(self.name)) + 1
        if self.vocabulary > most:
            raise InputError(f"{self.name} has {most:,} tokens to train with: the vocabulary cannot have more")
        windows = len(numbers) - self.length
        if self.n > windows:
            raise InputError(
                f"the {self.split} split of {self.name} has {max(windows, 0):,} windows of {self.length} tokens with "
                f"one behind them, fewer than n = {self.n:,}"
            )
        begin = seed.data_stream().choice(windows, self.n, replace=False)
        seen = numbers[begin[:, None] + np.arange(self.length + 1)]
        seen = np.where(seen < self.vocabulary, seen, REST)
        y = np.zeros((self.n, self.vocabulary), np.float32)
        y[np.arange(self.n), seen[:, -1]] = 1
        return seen[:, :-1].astype(np.float32), y

    def describe(self) -> str:
        """The windows in words.

        >>> Text("sotu", n=1000, length=16, vocabulary=500).describe()
        '1000 windows of 16 tokens of the State of the Union addresses of 1790 to 2021, 500 tokens, target the next one'
        """
        text = known_text(self.name)
        test = " to test with" if self.split == "test" else ""
        windows = f"{counted(self.n, 'window')} of {counted(self.length, 'token')} of {text.title or text.name}"
        return f"{windows}{test}, {self.vocabulary} tokens, target the next one"


def _read(name: str, split: str) -> list[str]:
    return words_of(load(name).splits[split].text.tobytes().decode())


@lru_cache(maxsize=2)
def _words(name: str) -> tuple[str, ...]:
    """The words of the training split, the most frequent one first."""
    counts = Counter(_read(name, "train"))
    return tuple(sorted(counts, key=lambda word: (-counts[word], word)))


@lru_cache(maxsize=4)
def _numbers(name: str, split: str) -> Int[np.ndarray, " tokens"]:
    """The tokens of a split: a word's place in the list from 1 on; of a word that is not in it none of a vocabulary."""
    places = {word: place for place, word in enumerate(_words(name), 1)}
    return np.array([places.get(word, len(places) + 1) for word in _read(name, split)])
