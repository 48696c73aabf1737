r"""Networks of attention: blocks of heads over the tokens of a sequence, and a readout of the last token.

With tokens $x_1, ..., x_s$ a head gives token i $\sum_j A_{ij} W_V x_j$, where $A_{ij}$ is
$\mathrm{softmax}_j(c\, x_i^T W_Q^T W_K x_j)$, or without the softmax $c\, x_i^T W_Q^T W_K x_j$ (linear attention). A
block is the heads, their projection and a feed-forward part; the last block is computed for the last token alone, the
only one whose output is read. No layer has a bias.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from ..activations import get_activation
from ._arrangement import Moments
from ._dense import DenseNetwork

if TYPE_CHECKING:
    from ._attention_shape import Attention

NORM_EPS = 1e-5
CHUNK = 256  # tokens that ask at once where each reads only those before it: half of the pattern is zero


def layer_norm(h: Float[Array, "... width"]) -> Float[Array, "... width"]:
    """Each token without its mean, over its standard deviation: a layer norm without weights of its own."""
    centred = h - jnp.mean(h, -1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + NORM_EPS)


class AttentionNetwork(eqx.Module):
    """One network of attention: a value that can be called on sequences."""

    parameters: dict[str, Array | np.ndarray]
    network: Attention = eqx.field(static=True)

    def __call__(
        self, x: Float[Array | np.ndarray, "samples length *width"] | Moments, key: Any = None
    ) -> Float[Array, "samples outputs"]:
        """The outputs at the last token of each sequence; there is no dropout that a key could decide."""
        network = self.network
        if isinstance(x, Moments):
            h = self._from_moments(1, jnp.asarray(x.last), jnp.asarray(x.products))[:, None]
            h = self._feed_forward(1, h)
        else:
            h = self._embed(jnp.asarray(x))
            for block in range(1, network.depth + 1):
                h = self._feed_forward(block, self._heads(block, h))
        h = layer_norm(h) if network.norm == "pre" else h
        dense = [layer for layer in network.layers if layer.name.startswith(("dense", "output"))]
        return DenseNetwork.of(dense, self.parameters, network.activations, False, 0.0)(h[:, -1])

    def patterns(
        self, x: Float[Array | np.ndarray, "samples length *width"]
    ) -> list[Float[Array, "samples heads i j"]]:
        """How much each token reads of each other one, for every head: a matrix A a block, of the last one a row."""
        network, h, found = self.network, self._embed(jnp.asarray(x)), []
        for block in range(1, network.depth + 1):
            found.append(self._pattern(block, *self._read(block, h)))
            h = self._feed_forward(block, self._heads(block, h))
        return found

    def tokens(
        self, x: Float[Array | np.ndarray, "samples length *width"]
    ) -> list[Float[Array, "samples length width"]]:
        """The tokens that the heads of each block read: behind the norm, where one stands before them."""
        network, h, found = self.network, self._embed(jnp.asarray(x)), []
        for block in range(1, network.depth + 1):
            found.append(self._read(block, h)[1])
            h = self._feed_forward(block, self._heads(block, h))
        return found

    def _weight(self, name: str, block: int) -> Array:
        """A weight as heads x outputs x inputs."""
        weight = jnp.asarray(self.parameters[f"{name}{block}.weight"])
        return jnp.reshape(weight, (self.network.heads, -1, weight.shape[1]))

    def _embed(self, x: Array) -> Array:
        network, values = self.network, self.parameters
        if network.vocabulary is not None:
            x = jnp.asarray(values["embedding.weight"])[x.astype(jnp.int32)]
        return x + jnp.asarray(values["positions.weight"]) if network.positions else x

    def _read(self, block: int, h: Array) -> tuple[Array, Array]:
        """The tokens that ask in a block, and those that are asked."""
        seen = layer_norm(h) if self.network.norm == "pre" else h
        return (seen[:, -1:] if block == self.network.depth else seen), seen

    def _pattern(self, block: int, asking: Array, seen: Array) -> Array:
        """The matrix A of each head."""
        network, inputs = self.network, self.network.key_width
        asking, seen = asking[..., :inputs], seen[..., :inputs]
        if network.merged:
            asked = jnp.einsum("nia,hak->nhik", asking, self._weight("key_query", block))
            scores = jnp.einsum("nhik,njk->nhij", asked, seen)
        else:
            queries = jnp.einsum("nik,hrk->nhir", asking, self._weight("query", block))
            weight = self._weight("key", block)
            if asking.shape[1] == 1:  # W_K^T q once instead of W_K x for each token
                scores = jnp.einsum("nhik,njk->nhij", jnp.einsum("nhir,hrk->nhik", queries, weight), seen)
            else:
                scores = jnp.einsum("nhir,nhjr->nhij", queries, jnp.einsum("njk,hrk->nhjr", seen, weight))
        scores = network.factor * scores
        if network.causal and asking.shape[1] > 1:
            earlier = jnp.tril(jnp.ones(scores.shape[-2:], bool), seen.shape[1] - asking.shape[1])
            return jax.nn.softmax(jnp.where(earlier, scores, -jnp.inf), -1) if network.softmax else scores * earlier
        return jax.nn.softmax(scores, -1) if network.softmax else scores

    def _heads(self, block: int, h: Array) -> Array:
        """The tokens after the heads of a block, before its feed-forward part."""
        network = self.network
        asking, seen = self._read(block, h)
        if not network.softmax and block == network.depth:
            keys, values = seen[..., : network.key_width], seen[..., network.value_from :]
            return self._finish(
                block, self._from_moments(block, asking[:, 0], jnp.einsum("njk,njv->nkv", keys, values))[:, None], h
            )
        if network.causal and asking.shape[1] > CHUNK:
            ends = [*range(CHUNK, asking.shape[1], CHUNK), asking.shape[1]]
            parts = [self._pass_on(block, asking[:, begin:end], seen[:, :end]) for begin, end in pairwise([0, *ends])]
            passed = jnp.concatenate(parts, 1)
        else:
            passed = self._pass_on(block, asking, seen)
        return self._finish(block, jnp.reshape(passed, (*passed.shape[:2], -1)), h)

    def _pass_on(self, block: int, asking: Array, seen: Array) -> Array:
        """What the heads of a block give the tokens that ask, the last ones of those that are seen."""
        network = self.network
        pattern, values = self._pattern(block, asking, seen), seen[..., network.value_from :]
        if not network.values:
            return jnp.einsum("nhij,njv->nihv", pattern, values)
        weight = self._weight("value", block)
        if asking.shape[1] == 1:  # W_V of what is passed on, instead of each token's
            return jnp.einsum("nihv,hwv->nihw", jnp.einsum("nhij,njv->nihv", pattern, values), weight)
        return jnp.einsum("nhij,nhjw->nihw", pattern, jnp.einsum("njv,hwv->nhjw", values, weight))

    def _from_moments(self, block: int, last: Array, products: Array) -> Array:
        """What linear heads give the last token, from the products of keys' and values' inputs, summed over tokens."""
        network = self.network
        if network.merged:
            asked = jnp.einsum("na,hak->nhk", last[:, : network.key_width], self._weight("key_query", block))
        else:
            queries = jnp.einsum("nk,hrk->nhr", last[:, : network.key_width], self._weight("query", block))
            asked = jnp.einsum("nhr,hrk->nhk", queries, self._weight("key", block))
        passed = network.factor * jnp.sum(asked[..., None] * products[:, None], 2)  # narrow: faster than a product
        passed = jnp.einsum("nhv,hwv->nhw", passed, self._weight("value", block)) if network.values else passed
        return jnp.reshape(passed, (len(last), -1))

    def _finish(self, block: int, passed: Array, h: Array) -> Array:
        network = self.network
        if network.projection:
            passed = passed @ jnp.asarray(self.parameters[f"projection{block}.weight"]).T
        return self._add(passed, h)

    def _add(self, new: Array, h: Array) -> Array:
        """What a part of a block gives, with what it read where there are residual connections."""
        if self.network.residual:
            new = new + (h[:, -1:] if new.shape[1] == 1 else h)
        return layer_norm(new) if self.network.norm == "post" else new

    def _feed_forward(self, block: int, h: Array) -> Array:
        network = self.network
        if network.feed_forward is None:
            return h
        up, down = (jnp.asarray(self.parameters[f"{name}{block}.weight"]) for name in ("up", "down"))
        read = layer_norm(h) if network.norm == "pre" else h
        return self._add(get_activation(network.activation)(read @ up.T) @ down.T, h)


def default_factor(network: Attention) -> float:
    """The factor of the scores: one over the root of a key's width with softmax, one over the length without."""
    if not network.softmax:
        return 1 / network.length
    return 1 / math.sqrt(network.key_width if network.merged else network.key_outputs)
