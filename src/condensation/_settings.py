"""The settings of experiments in words, from their own descriptions."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

MANY = 3  # more titles than these, if most of all, are "otherwise"


@runtime_checkable
class Describable(Protocol):
    """An experiment or a sweep."""

    def describe(self) -> dict[str, str]:
        """The settings in words, by what they are settings of."""
        ...


def settings_text(experiments: Mapping[str, Describable]) -> dict[str, str]:
    """The descriptions of several experiments as one: what all share stands once, the rest with titles behind it."""
    described: dict[str, dict[str, str]] = {}
    for title, experiment in experiments.items():
        for key, text in experiment.describe().items():
            described.setdefault(key, {})[title] = text
    return {key: merge(texts, len(experiments)) for key, texts in described.items()}


def reduced_text(quick: Mapping[str, Describable], paper: Mapping[str, Describable]) -> str:
    """What the quick scale changes, with the paper's settings in brackets, and what it leaves out."""
    small, full = ({title: each.describe() for title, each in some.items()} for some in (quick, paper))
    titles = [title for title in small if title in full]
    changes = []
    for key in dict.fromkeys(key for title in titles for key in (*small[title], *full[title])):
        pairs = {title: _different(small[title].get(key, "none"), full[title].get(key, "none")) for title in titles}
        changed = {title: pair for title, pair in pairs.items() if pair[0] != pair[1]}
        if changed:
            here, there = (merge({title: pair[k] for title, pair in changed.items()}, len(titles)) for k in (0, 1))
            changes.append(f"{key}: {here} (paper: {there})")
    left_out = "; ".join(title for title in full if title not in small)
    return "; ".join(changes + [f"left out: {left_out}"] * bool(left_out))


def merge(values: Mapping[str, str], total: int) -> str:
    """One text for the values of several titles.

    Clauses between semicolons are merged one by one. Of a clause the parts between commas that are common stand first;
    behind them those that differ, without the words they share. Of many titles, those with the same words before a
    comma are merged first.

    >>> merge({"tanh": "Adam, rate 1, eps 2", "relu": "Adam, rate 3, eps 2"}, 2)
    'Adam, eps 2; rate 1 (tanh), 3 (relu)'
    >>> merge({"a": "80 points", "b": "500 images"}, 2), merge({"a": "x"}, 2)
    ('80 points (a), 500 images (b)', 'x (a)')
    >>> merge({"relu": "kernels, relu; 10 outputs", "tanh": "kernels, tanh; 10 outputs"}, 2)
    'kernels; relu, tanh; 10 outputs'
    >>> merge({"Fig. 1, tanh": "5-1, tanh", "Fig. 1, relu": "5-1, relu", "Fig. 2": "3-1", "Fig. 3": "3-1"}, 4)
    'Fig. 1: 5-1; tanh, relu; Fig. 2, Fig. 3: 3-1'
    """
    if len(values) == total and len({*values.values()}) == 1:
        return next(iter(values.values()))
    groups: dict[str, dict[str, str]] = {}
    for title, value in values.items():
        group, _, member = title.partition(", ")
        groups.setdefault(group, {})[member] = value
    if total > MANY and len(groups) < len(values) and (len(groups) > 1 or len(values) < total):
        merged = {group: merge(members, len(members)) for group, members in groups.items()}
        return "; ".join(f"{', '.join(names)}: {text}" for text, names in titles_of(merged).items())
    clauses = [value.split("; ") for value in values.values()]
    if len(clauses[0]) > 1 and len({len(each) for each in clauses}) == 1:
        return "; ".join(merge(dict(zip(values, column, strict=True)), total) for column in zip(*clauses, strict=True))
    parts = {title: _parts(value) for title, value in values.items()}
    if len({len(each) for each in parts.values()}) > 1 or len(values) < total:
        return _listed(values, total)
    columns = [dict(zip(parts, column, strict=True)) for column in zip(*parts.values(), strict=True)]
    common = [next(iter(column.values())) for column in columns if len({*column.values()}) == 1]
    differing = [_listed(column, total) for column in columns if len({*column.values()}) > 1]
    return "; ".join([", ".join(common), *differing]) if common else _listed(values, total)


def _listed(values: Mapping[str, str], total: int) -> str:
    """Each value with the titles that have it, the first words that all share before them."""
    words = [_split(value, " ") for value in values.values()]
    shared = 0
    while len(words) > 1 and all(len(each) > shared + 1 and each[shared] == words[0][shared] for each in words):
        shared += 1
    titles = titles_of({title: " ".join(_split(value, " ")[shared:]) for title, value in values.items()})
    most = max(titles, key=lambda value: len(titles[value]))
    rest = len(titles) > 1 and len(titles[most]) > MANY and len(values) == total
    listed = []
    for value, each in sorted(titles.items(), key=lambda item: rest and item[0] == most):
        who = "otherwise" if rest and value == most else ("; " if "," in "".join(each) else ", ").join(each)
        listed.append(value if value in (who, f"({who})") else f"{value} ({who})")
    return " ".join([*words[0][:shared], ", ".join(listed)])


def titles_of(values: Mapping[str, str]) -> dict[str, list[str]]:
    """The titles that have each value."""
    titles: dict[str, list[str]] = {}
    for title, value in values.items():
        titles.setdefault(value, []).append(title)
    return titles


def _different(here: str, there: str) -> tuple[str, str]:
    """Two texts without the parts that both have, as far as something is left of each."""
    first, second = (_parts(text.replace("; ", ", ")) for text in (here, there))
    ours, theirs = ([part for part in one if part not in other] for one, other in ((first, second), (second, first)))
    return (", ".join(ours), ", ".join(theirs)) if ours and theirs else (here, there)


def _parts(text: str) -> list[str]:
    """What stands between commas and semicolons that are not inside brackets.

    >>> _parts("N(0, (1e-05)²), zero bias; relu")
    ['N(0, (1e-05)²)', 'zero bias', 'relu']
    """
    return _split(text.replace("; ", ", "), ", ")


def _split(text: str, separator: str) -> list[str]:
    """A text split at a separator, except inside brackets."""
    pieces = [""]
    for piece in text.split(separator):
        if sum(pieces[-1].count(bracket) for bracket in "([") > sum(pieces[-1].count(bracket) for bracket in ")]"):
            pieces[-1] += separator + piece
        else:
            pieces.append(piece)
    return pieces[1:]
