r"""Lazy against condensed: how far the tangent kernel moves, beside the number of lines, over $(\gamma, \gamma')$.

A network is *lazy* where its neural tangent kernel $\Theta$ hardly moves in training, so that it learns as a kernel
method does. The movement is $|\Theta - \Theta(0)|/|\Theta(0)|$ in the Frobenius norm, on the training samples. Networks
and exponents are those of ``two_layer``. As RD there, the movement falls with the width m in one regime and grows in
the other; k_eff, at the end over the one at the start, says where the neurons have condensed.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...derivatives import ntk
from ...drawing import Boundary, draw_phase_map, look
from ...drawing._style import PAGE
from ...measure import relative_change
from ...measure._crossing import crossing, zeros
from ...runs import Trajectory
from ...seeds import as_seeds
from ...sweeps import Sweep, linspace
from .._claims import Claim, PerSeed, at_least, at_most
from .._figure import Drawing
from ._diagram import ExponentDiagram, by_cell
from .two_layer import FIELDS, NAMED, TwoLayer, edge

WHERE = "Lazy against condensed"
WIDTHS = (100, 300, 1000)
NEAR = 0.2  # of the edge: cells so near are of neither side
FEWER = 0.5  # of the first k_eff: the neurons have condensed
STILL = 0.1  # a kernel that moves less is lazy
KEPT = 0.9  # of the first k_eff: no condensation at all


def kernel(trajectory: Trajectory, step: int) -> Mapping[str, float]:
    """How far the tangent kernel of one seed has moved until a step, relative to the first one, on its samples."""
    seed = trajectory.seeds[0]
    x, _ = trajectory.data(seed)
    first, now = (ntk(trajectory.model(each, seed), x) for each in (0, step))
    return {"kernel": relative_change(now, first)}


class Lazy(ExponentDiagram):
    """The movement of the tangent kernel and the effective number of lines, side by side."""

    name, title = "phase-lazy", "Lazy against condensed: tangent kernel and lines"
    sizes: ClassVar = {"quick": (7, 2), "paper": (17, 5)}
    claims = (
        Claim(
            "left", WHERE, "where γ' <= 0, the kernel moves less and less with the width up to γ = 1, and more beyond",
            "largest distance of the zero of the slope of log movement against log m from there, over γ'",
            at_most(0.1), lambda figure: PerSeed(figure.distance[figure.exponents[1] <= 0].max(axis=0)),
            lambda figure: figure.zeros_in_words(), ours=True,
        ),
        Claim(
            "right", WHERE, "where γ' > 0, it does so up to γ = 1 + γ'",
            "largest distance of the slope's zero from there, over γ'", at_most(0.1),
            lambda figure: PerSeed(figure.distance[figure.exponents[1] > 0].max(axis=0)),
            lambda figure: figure.zeros_in_words(), ours=True,
        ),
        Claim(
            "same", WHERE, "the kernel's movement and condensation change at the same edge",
            f"largest distance, over γ', between the slope's zero and the γ at which k_eff falls to {FEWER:.0%} of its "
            f"first value (m = {WIDTHS[-1]})", at_most(NEAR),
            lambda figure: PerSeed(np.abs(figure.kernel_edge - figure.lines_edge).max(axis=0)),
            lambda figure: figure.zeros_in_words(), ours=True,
        ),
        Claim(
            "condensed", WHERE, "networks condense in the condensed regime, and only there",
            f"share of the cells (m = {WIDTHS[-1]}), those within {NEAR} of the edge left out, in which k_eff falls to "
            f"{FEWER:.0%} on one side and does not on the other", at_least(0.9), lambda figure: figure.on_their_side(),
            lambda figure: figure.sides_in_words(), ours=True,
        ),
        Claim(
            "lazy", WHERE, f"where the kernel moves by less than {STILL:.0%}, nothing condenses",
            f"least k_eff over its first value in these cells (m = {WIDTHS[-1]})", at_least(KEPT),
            lambda figure: figure.least_kept(), lambda figure: figure.sides_in_words(), ours=True,
        ),
        Claim(
            "moving", WHERE, "a kernel that moves is no sign of condensation: it also moves where no lines appear",
            f"largest movement of the kernel in cells whose k_eff stays above {KEPT:.0%} of its first value "
            f"(m = {WIDTHS[-1]})", at_least(0.5), lambda figure: figure.most_moved(),
            lambda figure: figure.sides_in_words(), ours=True,
        ),
    )  # fmt: skip

    @classmethod
    def sweep(cls, size: int = 7, seeds: int = 2) -> Sweep:
        """The diagram as a sweep of size x size cells, three widths in each."""
        axes = {"gamma": linspace(0.4, 2.0, size), "gamma_prime": linspace(-0.8, 0.8, size), "m": WIDTHS}
        return Sweep(TwoLayer.sweep(2, 1).experiment, axes, FIELDS, as_seeds(seeds), ("lines", kernel), at="saved")

    @cached_property
    def movement(self) -> Float[np.ndarray, "gamma prime m seeds"]:
        """How far the kernel has moved at the end."""
        return self.table.array("kernel")[..., -1]

    @cached_property
    def kept(self) -> Float[np.ndarray, "gamma prime seeds"]:
        """k_eff at the end over the one at the start, at the largest width."""
        k_eff = self.table.array("dense1.k_eff")[:, :, -1]
        return k_eff[..., -1] / k_eff[..., 0]

    @cached_property
    def kernel_edge(self) -> Float[np.ndarray, "prime seeds"]:
        """The gamma at which the slope of log movement against log m is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.log(self.movement)
        widths = np.log(self.exponents[2])
        centred = widths - widths.mean()
        slopes = np.einsum("m,gpms->gps", centred, np.where(np.isfinite(moved), moved, np.nan)) / (centred @ centred)
        return zeros(self.exponents[0], slopes)

    @cached_property
    def lines_edge(self) -> Float[np.ndarray, "prime seeds"]:
        """The gamma at which k_eff has fallen to half of its first value."""
        return crossing(self.exponents[0], np.moveaxis(self.kept, 0, -1), FEWER, falling=True)

    @cached_property
    def distance(self) -> Float[np.ndarray, "prime seeds"]:
        """How far the kernel's edge is from theory's."""
        return np.abs(self.kernel_edge - edge(self.exponents[1])[:, None])

    @cached_property
    def beyond(self) -> Float[np.ndarray, "gamma prime"]:
        """How far a cell is on the condensed side of theory's edge."""
        gamma, prime, _ = self.exponents
        return gamma[:, None] - edge(prime)

    def on_their_side(self) -> PerSeed:
        """The share of cells that condense just where they should."""
        right = (self.kept <= FEWER) == (self.beyond > 0)[..., None]
        known = np.where(np.isnan(self.kept), False, right)
        return PerSeed(known[np.abs(self.beyond) > NEAR].mean(axis=0))

    def least_kept(self) -> PerSeed:
        """The least that is left of k_eff where the kernel hardly moves; a map of one kind decides nothing."""
        lazy = self.movement[:, :, -1] < STILL
        least = np.where(lazy, self.kept, np.inf).min(axis=(0, 1))
        return PerSeed(np.where(np.isfinite(least), least, np.nan), decided=np.ptp(lazy.astype(int), axis=(0, 1)) > 0)

    def most_moved(self) -> PerSeed:
        """The largest movement of the kernel where k_eff stays."""
        stays = self.kept >= KEPT
        return PerSeed(
            np.where(stays, self.movement[:, :, -1], 0.0).max(axis=(0, 1)), decided=np.asarray(stays.any(axis=(0, 1)))
        )

    def zeros_in_words(self) -> str:
        """Medians of both edges, by gamma'."""
        rows = zip(self.exponents[1], self.kernel_edge, self.lines_edge, strict=True)
        each = (f"{prime:.2g}: {np.median(a):.2f} and {np.median(b):.2f}" for prime, a, b in rows)
        return (
            "The γ at which the kernel's slope is zero, and at which k_eff is half of its first value (nan: nowhere in "
            f"the map, or several times), by γ': {'; '.join(each)}. Where γ' < 0 the kernel is made of output weights, "
            "which hardly change: beyond γ = 1 neurons turn and condense while it moves by the same part at all "
            "widths; only where the output weights, too, outgrow their first values does it move more and more."
        )

    def sides_in_words(self) -> str:
        """Medians of both quantities on either side."""
        parts = []
        for name, side in (("linear", self.beyond < -NEAR), ("condensed", self.beyond > NEAR)):
            kept, moved = np.median(self.kept[side]), np.median(self.movement[:, :, -1][side])
            parts.append(
                f"in the {name} regime k_eff is {kept:.2g} of its first value and the kernel moves by {moved:.2g}"
            )
        return f"Medians: {'; '.join(parts)}."

    def draw(self) -> Drawing:
        """Both maps, with theory's edge and those that were found."""
        gamma, prime, _ = self.exponents
        fine = np.linspace(prime[0], prime[-1], 200)
        theory = Boundary(edge(fine), fine, "theory: edge of the condensed regime")
        kernel_edge, lines_edge = (np.median(each, axis=-1) for each in (self.kernel_edge, self.lines_edge))
        with look():
            figure = Figure(figsize=(PAGE, 3.4), layout="constrained")
            left, right = figure.subplots(1, 2, sharey=True)
            draw_phase_map(
                np.median(self.movement[:, :, -1], axis=-1).T, gamma, prime, left, labels=("γ", "γ'"),
                quantity="movement of the tangent kernel", logarithmic=True, marks=NAMED,
                boundaries=(theory, Boundary(kernel_edge, prime, "found: as far at all widths", found=True)),
            )  # fmt: skip
            draw_phase_map(
                np.minimum(np.median(self.kept, axis=-1), 1).T, gamma, prime, right, labels=("γ", ""),
                quantity="k_eff at the end over the first", limits=(0, 1), marks=NAMED,
                boundaries=(theory, Boundary(lines_edge, prime, "found: half of the first k_eff", found=True)),
            )  # fmt: skip
        cells = by_cell(gamma=gamma, gamma_prime=prime, m=self.exponents[2], seed=range(self.movement.shape[-1]))
        k_eff = self.table.array("dense1.k_eff")
        return Drawing(
            caption="Two-layer relu networks, trained to 5% of the loss, medians over the seeds. Left: how far the "
            f"tangent kernel has moved, relative to the first one (m = {WIDTHS[-1]}); dashed where this does not "
            "depend on the width, between falling with it and growing. Right: the effective number of lines at the "
            "end, over that at the start; dashed where it has halved.",
            pictures={"": figure},
            data=cells
            | {
                "kernel": self.movement.ravel(),
                "k_eff_first": k_eff[..., 0].ravel(),
                "k_eff": k_eff[..., -1].ravel(),
            },
        )
