"""FC abstract, Secs. 1 and 5: relu and its like, whose multiplicity is undefined, and the directions of its neurons."""

from functools import cached_property, lru_cache
from itertools import product
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..._phrases import joined
from ...activations import Activation
from ...data import Synthetic
from ...drawing import draw_bar, draw_features, draw_similarity, look
from ...drawing._panels import only_outer
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...measure import cosine_similarity
from ...networks import Dense
from ...runs import Trajectory
from ...seeds import Seed
from ...theory import Directions, extremal_directions
from ...theory._fate import kink_slopes
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._counts import Counts, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from .adam import SMALL
from .experiments import FIG3_EPOCH, data_with_bias, fig3, one_input
from .fig3 import A_LINE
from .fig5 import column_begun
from .fig6 import NORMALISED

EPOCH, NEAR = FIG3_EPOCH, 0.95
STARTS = {"quick": 50, "paper": 400}  # of the search in six dimensions, for each sign of the output weight
INPUTS = {"5d": "Fig. 3's data", "1d": "Fig. 5's data"}


def leaky_half(z: Any) -> Any:
    """Half-way from relu to a linear function: z for z > 0, z/2 else."""
    return jnp.maximum(z, z / 2)


KINKED: dict[str, Activation] = {"relu": "relu", "leaky": "leaky_relu", "half": leaky_half}
SMOOTH = ("gelu", "swish")  # of multiplicity 1, like relu further from 0
CALLED = {"relu": "relu", "leaky": "leaky relu (slope 0.01)", "half": "leaky relu (slope 0.5)"} | {s: s for s in SMOOTH}
SETTINGS = {"small": "a hundredth of the weights", "flow": "normalised descent"}


def _isolated(dim: str, key: str, text: str) -> "Claim[Relu]":
    return Claim(
        f"isolated-{dim}{key}", "abstract, Sec. 1",
        f"relu, {INPUTS[dim]}{text}: the neurons condense onto isolated orientations",
        f"share of the norm on lines at epoch {EPOCH}", at_least(0.9),
        lambda figure: figure.cover(f"{dim}{key or '-relu'}"), lambda figure: figure.smaller(dim),
    )  # fmt: skip


def _most(name: str, where: str, text: str) -> "Claim[Relu]":
    dim, _, activation = name.partition("-")
    called = CALLED.get(activation, f"relu, {SETTINGS.get(activation)}")
    return Claim(
        f"most-{name}", where, f"{called}, {INPUTS[dim]}: at most two orientations, {text}",
        f"orientations at epoch {EPOCH}", at_most(2), lambda figure: figure.counts[name].orientations_found(),
        (lambda figure: figure.fields_of_its_own(name)) if activation not in SMOOTH else "",
        ours=activation not in SMOOTH,
    )  # fmt: skip


def _attract(dim: str) -> "Claim[Relu]":
    return Claim(
        f"attract-{dim}", "Sec. 5",
        f"relu, {INPUTS[dim]}: the theory of multiplicity 1 applies, so that at most two orientations attract",
        "orientations that attract, found from the data" + " (by a search: there can be more)" * (dim == "5d"),
        at_most(2), lambda figure: PerSeed(figure.attracting(f"{dim}-relu")),
        lambda figure: figure.fields_of_its_own(f"{dim}-relu"), trained=False,
    )  # fmt: skip


def _near(dim: str, run: str, text: str) -> "Claim[Relu]":
    return question(
        f"{run}-{dim}", f"relu, {INPUTS[dim]}, {text}: neurons go to the orientations that the data predict for relu "
        "under gradient flow",
        f"share of the neurons that see a sample within a cosine of {NEAR} of an orientation that attracts neurons of "
        "their sign, 1% of the loss gone", at_least(0.8), lambda figure: figure.shares_near(f"{dim}-{run}"),
        lambda figure: figure.by_sign(dim),
    )  # fmt: skip


class Relu(PaperFigure):
    """Neurons with relu, leaky relu and smooth functions like it, with the orientations predicted from the data."""

    name, title, paper = "fc-relu", "FC abstract, Secs. 1 and 5: relu and its like", "FC"
    has_variants = False
    chosen = (
        f"data, network, optimizer and epoch {EPOCH} of Fig. 3 and the data and network of Fig. 5: the text shows no "
        "relu network; the second slope, the smaller initial weights and the control"
    )
    titles: ClassVar = {
        f"{dim}-{name}": f"{text}, {INPUTS[dim]}" for dim, (name, text) in product(INPUTS, (CALLED | SETTINGS).items())
    }
    claims = (
        *(_isolated(dim, "", "") for dim in INPUTS),
        *(_isolated(dim, "-small", ", as the initial weights go to zero (a hundredth)") for dim in INPUTS),
        *(
            _most(name, "additional question", "as the theory is said to apply to what is like relu")
            for name in ("5d-relu", "5d-small", "5d-leaky", "1d-relu", "1d-leaky")
        ),
        *map(_attract, INPUTS),
        *(_most(f"5d-{name}", "Secs. 1 and 4.3", "as its multiplicity is 1") for name in SMOOTH),
        *(_most(f"{dim}-half", "additional question", "as of a linear function") for dim in INPUTS),
        *(_near(dim, "flow", "each neuron on its path of gradient flow") for dim in INPUTS),
        *(_near(dim, "small", "Adam from a hundredth of the initial weights") for dim in INPUTS),
    )

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 3's and Fig. 5's networks with other activations, smaller, and under a descent on the flow's paths."""
        networks = {"5d": (fig3("tanh"), (5, 50, 1)), "1d": (one_input("tanh"), (1, 100, 1))}
        experiments = {}
        for dim, (captioned, sizes) in networks.items():
            named = KINKED | ({name: name for name in SMOOTH} if dim == "5d" else {})
            own = {name: captioned.replace(network=Dense(sizes, each)) for name, each in named.items()}
            own |= {"small": SMALL.apply(own["relu"]), "flow": NORMALISED.apply(own["relu"])}
            experiments |= {f"{dim}-{name}": each for name, each in own.items()}
        return experiments

    @cached_property
    def counts(self) -> Available[Counts]:
        """Lines and orientations at the epoch; of normalised descent too, though its steps are others."""
        return self.runs.each(lambda name, run: self.count(run, 1, EPOCH))

    def cover(self, name: str) -> PerSeed:
        """The share of the norm on lines, which means something where the layer is condensed."""
        return PerSeed(self.counts[name].cover, self.counts[name].condensed)

    def predicted(self, name: str) -> list[Directions]:
        """The orientations that attract neurons of a network with a kink, from the data of each seed."""
        run, starts = self.runs[name], STARTS[self.scale]
        slopes = kink_slopes(run.experiment.network.activations[0])
        assert slopes is not None
        assert isinstance(run.experiment.data, Synthetic)
        return [_predict(run.experiment.data, seed, slopes, starts) for seed in run.seeds]

    def attracting(self, name: str) -> list[int]:
        """How many orientations attract, in each seed."""
        return [int(each.attracts.sum()) for each in self.predicted(name)]

    @cached_property
    def near(self) -> Available[list[float]]:
        """The share of neurons near an orientation that attracts them, when 1% of the loss is gone."""
        followed = {f"{dim}-{name}": self.runs[f"{dim}-{name}"] for dim in INPUTS for name in SETTINGS}
        return Available(followed).each(self._near)

    def shares_near(self, name: str) -> PerSeed:
        """These shares; a seed that never loses 1% of the loss decides nothing."""
        return PerSeed(self.near[name], decided=column_begun(self.runs[name]) >= 0)

    def _near(self, name: str, run: Trajectory) -> list[float]:
        shares, predicted = [], self.predicted(name)
        for k, (seed, column) in enumerate(zip(run.seeds, column_begun(run), strict=True)):
            model, (inputs, _) = run.model(int(run.saved[column]), seed), data_with_bias(run, seed)
            shares.append(share_near(model.weights(1), model.parameters["output.weight"][0], predicted[k], inputs))
        return shares

    def smaller(self, dim: str) -> str:
        """How far a layer is condensed as captioned, and from smaller initial weights."""
        parts = []
        for name, text in (("relu", "as captioned"), ("small", "from a hundredth of the initial weights")):
            own = self.counts[f"{dim}-{name}"]
            parts.append(
                f"{own.condensed.sum()} of {len(own.condensed)} seeds {text} (cover {np.median(own.cover):.2f})"
            )
        return f"Condensed are {' and '.join(parts)}."

    def fields_of_its_own(self, name: str) -> str:
        """Why there are more than two orientations."""
        own, attracting = self.counts[name], joined(self.attracting(name))
        return (
            "Each set of samples that a neuron can be active on has a field of its own. Orientations that attract "
            f"under gradient flow, from the data: {attracting}. Found under Adam at epoch {EPOCH}: "
            f"{joined(own.orientations, 'g')}; {own.condensed.sum()} of {len(own.condensed)} seeds are condensed."
        )

    def by_sign(self, dim: str) -> str:
        """Where Adam's neurons are, against those of a descent on the flow's paths."""
        flow, adam = (np.median(self.near[f"{dim}-{name}"]) for name in ("flow", "small"))
        return (
            f"{flow:.0%} of the neurons (median) are near a predicted orientation if each follows its path of gradient "
            f"flow, {adam:.0%} under Adam, which moves all coordinates equally fast."
        )

    def draw(self) -> Drawing:
        """Neurons of one input with predicted orientations; counts, predicted and found; shares near the predicted."""
        with look():
            figure = Figure(figsize=(PAGE, 4.7), layout="constrained")
            top, bottom = figure.subplots(2, 3)
            for name, axes in zip(KINKED, top, strict=True):
                self._draw_neurons(axes, name)
            only_outer(figure, list(top))
            draw_similarity(self.counts["5d-relu"].shown, bottom[0], title="relu, Fig. 3's data", bar=False)
            draw_bar(bottom[0].images[0], [bottom[0]])
            self._draw_counts(bottom[1])
            self._draw_shares(bottom[2])
        return Drawing(
            caption=f"Top: neurons of Fig. 5's network at epoch {EPOCH} with relu, leaky relu and half-way to linear, "
            "at their angles and amplitudes, and the orientations that attract, computed from the data (dashed: "
            "neurons with positive, dotted: with negative output weight); the median seed by lines. Bottom: cosine "
            "similarity of Fig. 3's neurons with relu; orientations found (blue: condensed, grey: not) and predicted "
            "(orange rings) in each seed, the bound 2 dotted (5d: Fig. 3's data, 1d: Fig. 5's, small: a hundredth of "
            "the initial weights); share of neurons near a predicted orientation, under Adam from a hundredth of the "
            "weights and under normalised descent, which follows the paths of gradient flow.",
            pictures={"": figure}, data=stack_columns(self.counts.each(lambda _, own: own.columns()), "network"),
            tables=(self._table(),), settings_extra={"a line": A_LINE},
        )  # fmt: skip

    def _draw_neurons(self, axes: Axes, name: str) -> None:
        own, run = self.counts[f"1d-{name}"], self.runs[f"1d-{name}"]
        k = own.median_seed
        outputs = run.model(int(own.steps[k]), run.seeds[k]).parameters["output.weight"]
        draw_features(own.shown, outputs, axes, title=CALLED[name]).set_xlabel("angle of $(w, b)$")
        directions = self.predicted(f"1d-{name}")[k]
        for sign, style in ((1, "--"), (-1, ":")):
            for u in directions.orientations(sign):
                axes.axvline(np.arctan2(u[1], u[0]), color=COLOURS[6], linestyle=style, linewidth=0.8, zorder=0)

    def _draw_counts(self, axes: Axes) -> None:
        names = [name for name in self.counts if not name.endswith("-flow")]
        stream = np.random.default_rng(0)
        for place, name in enumerate(names):
            own, shift = self.counts[name], stream.uniform(-0.12, 0.12, self.seeds)
            colours = [COLOURS[0] if condensed else FAINT for condensed in own.condensed]
            axes.scatter(place - 0.15 + shift, own.orientations, s=7, color=colours, linewidth=0)
            if name.partition("-")[2] in KINKED:
                attracting = self.attracting(name)
                axes.scatter(
                    place + 0.25 + shift, attracting, s=9, facecolor="none", edgecolor=COLOURS[1], linewidth=0.6
                )
        axes.axhline(2, color=FAINT, linestyle=":", linewidth=0.8)
        axes.set_xticks(range(len(names)), [name.replace("-", " ") for name in names], rotation=60)
        axes.set(ylabel="orientations", yscale="log", yticks=[1, 2, 4, 8, 16, 32], title="found and predicted")
        axes.set_yticklabels(["1", "2", "4", "8", "16", "32"])
        axes.minorticks_off()

    def _draw_shares(self, axes: Axes) -> None:
        for place, shares in enumerate(self.near.values()):
            axes.scatter(np.full(len(shares), place), shares, s=9, alpha=0.7, color=COLOURS[place % 2 * 2], linewidth=0)
        called = {"small": "Adam", "flow": "descent"}
        ticks = [f"{name[:2]} {called[name[3:]]}" for name in self.near]
        axes.set_xticks(range(len(ticks)), ticks, rotation=60)
        axes.set(ylim=(0, 1.03), xlim=(-0.6, len(ticks) - 0.4), title="near a predicted one", ylabel="share of neurons")

    def _table(self) -> Table:
        rows = []
        for name, own in self.counts.items():
            attracting = joined(self.attracting(name)) if name.partition("-")[2] in KINKED else ""
            rows.append((self.titles[name], joined(own.orientations, "g"), f"{own.condensed.sum()}", attracting))
        header = "network", f"orientations at epoch {EPOCH}", "condensed seeds", "orientations that attract, predicted"
        return Table("Orientations seed by seed", header, tuple(rows))


@lru_cache(maxsize=100)  # the untrained networks have the same
def _predict(data: Synthetic, seed: Seed, slopes: tuple[float, float], starts: int) -> Directions:
    x, y = data.draw(seed)
    return extremal_directions(np.c_[x, np.ones(len(x))], slopes[0] * y[:, 0], slopes[1] / slopes[0], starts=starts)


def share_near(
    weights: Float[np.ndarray, "units inputs"], outputs: Float[np.ndarray, " units"], predicted: Directions,
    inputs: Float[np.ndarray, "samples inputs"],
) -> float:  # fmt: skip
    """The share of neurons near an orientation that attracts their sign, of those that are active on a sample.

    NaN where none is.
    """
    active = (weights @ inputs.T > 0).any(axis=1)
    near = np.zeros(len(weights), bool)
    for sign in (1, -1):
        chosen, ends = np.sign(outputs) == sign, predicted.orientations(sign)
        if chosen.any() and len(ends):
            near[chosen] = cosine_similarity(weights[chosen], ends).max(axis=1) >= NEAR
    return float(np.mean(near[active])) if active.any() else float("nan")
