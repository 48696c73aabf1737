"""The smallest network that still does: a search over the sizes of its layers, the same for every kind of network."""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float

LayerSizes = dict[str, int]


def merging_order(costs: Mapping[str, Float[np.ndarray, " merges"]]) -> list[str]:
    """The layer of each merge, all layers' merges ordered by their cost; the costs of a layer are in their own order.

    >>> merging_order({"a": np.array([0.1, 0.3]), "b": np.array([0.2])})
    ['a', 'b', 'a']
    """
    order = []
    for name, values in costs.items():
        rising = np.maximum.accumulate(values)  # rounding must not turn the order
        order += [(cost, k, name) for k, cost in enumerate(rising)]
    return [name for _, _, name in sorted(order)]


def smallest(full: LayerSizes, order: list[str], fits: Callable[[LayerSizes], bool]) -> LayerSizes:
    """The fewest units along an order of merges with which a network ``fits``; the full one is not asked.

    The total number is doubled until it fits, then bisected; then single units are taken away, layer by layer.

    >>> smallest({"a": 3, "b": 2}, ["a", "b", "a"], lambda sizes: sizes["a"] >= 2)
    {'a': 2, 'b': 1}
    """

    def sizes(more: int) -> LayerSizes:
        """The sizes with so many units more than one in each layer."""
        done = order[: len(order) - more]
        return {name: count - done.count(name) for name, count in full.items()}

    def does(chosen: LayerSizes) -> bool:
        return chosen == full or fits(chosen)

    low, high = -1, 0
    while not does(sizes(high)):
        low, high = high, min(max(1, 2 * high), len(order))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if does(sizes(middle)) else (middle, high)
    best = sizes(high)
    left = [name for name in best if best[name] > 1] if len(best) > 1 else []
    while left:
        fewer = best | {left[0]: best[left[0]] - 1}
        if does(fewer):
            best = fewer
        if best != fewer or best[left[0]] == 1:
            left.pop(0)
    return best
