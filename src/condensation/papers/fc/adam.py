"""FC Sec. 3: is Adam close to gradient flow when the learning rate is small?"""

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...activations import label
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...measure import nearest_lines
from ...optimizers import NormalisedGD, Optimizer
from ...saving import At, Evenly
from ...theory import cube_directions, stationary_directions
from .._claims import Claim, PerSeed, at_least, question
from .._counts import stack_columns
from .._figure import Drawing, PaperFigure
from .._tables import Table
from .._variant import Variant
from .experiments import FIG5_ACTIVATIONS, LINES, data_with_bias, fig3

RATES = (1e-3, 3e-4, 1e-4, 1e-5)
TIME = 0.02  # rate x steps: neurons have turned, and the loss has hardly moved
NEAR = 0.95
SURFACES = {"sphere": "gradient flow", "cube": "sign descent"}
SMALL = Variant(init_scale=0.01, eps=1e-30)  # with the usual eps, Adam's steps would shrink with the gradients
ON_A_LINE = f"share of neurons within a cosine of {NEAR} of a line of"


def _key(activation: str, rate: float, small: bool = False) -> str:
    return f"{activation}-{rate:g}{'-small' * small}"


def _flow(activation: str) -> "Claim[AdamAndFlow]":
    return Claim(
        activation, "Sec. 3",
        f"{label(activation)}, Adam with the rate {RATES[-1]:g}: as the rate is small, training is close to gradient "
        "flow, so that neurons go to its lines",
        f"{ON_A_LINE} gradient flow at rate x steps = {TIME}", at_least(0.9),
        lambda figure: PerSeed(figure.shares[_key(activation, RATES[-1])][0]),
        lambda figure: figure.on_the_cube(activation),
    )  # fmt: skip


def _cube(activation: str) -> "Claim[AdamAndFlow]":
    rate = RATES[-1]
    return question(
        f"{activation}-cube",
        f"{label(activation)}, Adam with the rate {rate:g} from a hundredth of the initial weights: neurons go to the "
        "lines of sign descent",
        f"{ON_A_LINE} the cube at rate x steps = {TIME}", at_least(0.9),
        lambda figure: PerSeed(figure.shares[_key(activation, rate, True)][1]),
    )  # fmt: skip


def _control(activation: str) -> "Claim[AdamAndFlow]":
    return question(
        f"{activation}-control",
        f"{label(activation)}, each neuron on its path of gradient flow, from a hundredth of the initial weights: "
        "neurons go to the lines of gradient flow",
        f"{ON_A_LINE} gradient flow", at_least(0.8), lambda figure: PerSeed(figure.shares[f"{activation}-control"][0]),
    )  # fmt: skip


class AdamAndFlow(PaperFigure):
    """Which lines the neurons of Fig. 3's networks are on, by the learning rate of Adam, at equal rate times steps."""

    name, title, paper = "fc-adam", "FC Sec. 3: is Adam close to gradient flow?", "FC"
    has_variants = False
    chosen = "the rates below Fig. 3's, the moment (on seeds 0 to 3), the smaller initial weights and the control"
    titles: ClassVar = {
        **{_key(name, rate): f"{label(name)}, rate {rate:g}" for name in FIG5_ACTIVATIONS for rate in RATES},
        **{
            _key(name, rate, True): f"{label(name)}, small, rate {rate:g}"
            for name in FIG5_ACTIVATIONS
            for rate in RATES
        },
        **{f"{name}-control": f"{label(name)}, small, normalised" for name in FIG5_ACTIVATIONS},
    }
    claims = (
        *map(_flow, FIG5_ACTIVATIONS), *map(_cube, FIG5_ACTIVATIONS), *map(_control, FIG5_ACTIVATIONS),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 3's networks at four rates from two sizes of initial weights, and by neuron-normalised descent."""
        experiments = {}
        for name in FIG5_ACTIVATIONS:
            for experiment, small in ((fig3(name), False), (SMALL.apply(fig3(name)), True)):
                for rate in RATES:
                    optimizer = replace(experiment.optimizer, learning_rate=rate)
                    experiments[_key(name, rate, small)] = _until(experiment, optimizer, round(TIME / rate))
            control = NormalisedGD(RATES[-2] * 7**0.5)  # the seven weights of a neuron, moved as far as Adam moves them
            experiments[f"{name}-control"] = _until(SMALL.apply(fig3(name)), control, round(TIME / RATES[-2]))
        return experiments

    @cached_property
    def shares(self) -> dict[str, Float[np.ndarray, "surfaces seeds"]]:
        """The share of neurons at the last step on lines of gradient flow and of the cube, of each run."""
        return self.runs.each(lambda name, run: np.array([self._share(name, k) for k in range(len(run.seeds))]).T)

    def _share(self, name: str, k: int) -> list[float]:
        run, activation = self.runs[name], name.partition("-")[0]
        weights = run.weights("dense1", int(run.saved[-1]), run.seeds[k])
        return [float(np.mean(nearest_lines(weights, lines)[1] >= NEAR)) for lines in self._lines(activation, k)]

    def _lines(self, activation: str, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The attracting lines of gradient flow and of the cube, from a seed's data."""
        if (activation, k) not in self._known:
            run = self.runs[_key(activation, RATES[0])]
            inputs, y = data_with_bias(run, run.seeds[k])
            sphere = stationary_directions(inputs, y[:, 0], LINES[activation])
            cube = cube_directions(inputs, y[:, 0], LINES[activation])
            self._known[activation, k] = sphere.directions[sphere.attracts], cube.directions
        return self._known[activation, k]

    @cached_property
    def _known(self) -> dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]:
        return {}

    def on_the_cube(self, activation: str) -> str:
        """Where the neurons are instead."""
        keys = _key(activation, RATES[-1]), _key(activation, RATES[-1], small=True)
        medians = (np.median(self.shares[key], axis=1) for key in keys)
        (sphere, cube), (small_sphere, small_cube) = ([f"{share:.0%}" for share in pair] for pair in medians)
        return (
            "A small rate does not bring Adam to gradient flow: it divides each coordinate by the size of its gradient "
            f"and so tends to sign descent. {cube} of the neurons (median) are on lines of the cube, {sphere} on those "
            f"of gradient flow; from a hundredth of the initial weights {small_cube} and {small_sphere}."
        )

    def draw(self) -> Drawing:
        """Shares on both kinds of lines against the rate."""
        with look():
            figure = Figure(figsize=(PAGE, 2.5), layout="constrained")
            panels = figure.subplots(1, len(FIG5_ACTIVATIONS), sharey=True)
            for axes, name in zip(panels, FIG5_ACTIVATIONS, strict=True):
                for small, style in ((False, "o--"), (True, "o-")):
                    shares = np.stack(
                        [self.shares[_key(name, rate, small)] for rate in RATES]
                    )  # rates, surfaces, seeds
                    for k, (surface, optimizer) in enumerate(SURFACES.items()):
                        each, colour = shares[:, k], COLOURS[k]
                        low, middle, high = np.quantile(each, (0.25, 0.5, 0.75), axis=1)
                        axes.fill_between(RATES, low, high, color=colour, alpha=0.15, linewidth=0)
                        text = f"{optimizer} (the {surface}){', small' * small}"
                        axes.plot(RATES, middle, style, color=colour, label=text, markersize=3)
                axes.set(xscale="log", xlabel="Adam's learning rate", ylim=(-0.03, 1.03), title=label(name))
            panels[0].set_ylabel("share of neurons on lines")
            figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        rows = [
            (self.titles[key], *(f"{np.median(share):.2f} ({share.min():.2f} to {share.max():.2f})" for share in pair))
            for key, pair in self.shares.items()
        ]
        header = ("network", *(f"on lines of {optimizer}" for optimizer in SURFACES.values()))
        seeds = np.arange(self.seeds)
        parts = {name: {"seed": seeds, "sphere": pair[0], "cube": pair[1]} for name, pair in self.shares.items()}
        return Drawing(
            caption=f"The share of neurons of Fig. 3's networks within a cosine of {NEAR} of an attracting line of "
            f"gradient flow, and of one of sign descent (the cube), at rate x steps = {TIME} with smaller and smaller "
            "rates, from the captioned initial weights and from a hundredth of them (small); median and quartiles "
            f"of {self.seeds} seeds.",
            pictures={"": figure}, data=stack_columns(parts, "network"),
            tables=(Table("Shares of neurons on lines, median and range over the seeds", header, tuple(rows)),),
        )  # fmt: skip


def _until(experiment: Experiment, optimizer: Optimizer, steps: int) -> Experiment:
    return experiment.replace(optimizer=optimizer, steps=steps, save=At((steps,)), record=Evenly(11))
