"""Three layers, batches of two, a switch from a fitted network: two tanh neurons (Zhang and Xu, Figs 4 and 6)."""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Given
from ...measure import LineHistory, count_lines
from ...runs import Trajectory
from ...saving import Evenly
from ...training import train
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._counts import relative_loss
from .._figure import Available, Drawing
from ._noise import FITTED, WHERE, UnderNoise
from .line import SHARE, Line

SIZES = {"quick": (30, 5000), "paper": (100, 100_000)}  # width, steps
DEEP = {"deep none": "no noise", "deep dropout": "dropout", "deep penalty": "R1"}
LAYERS = {"first": 1, "last": 2}
LATE = {"late penalty": "R1 from the fitted network on", "late dropout": "dropout from there on"}
REASONS = {
    "first": "Its lines have less than the 90% of the neurons, by |w|, from which on a layer is condensed: what R1 and "
    "dropout act on are the outputs of the last hidden layer.",
    "last": "Of its neurons' 101 weights the 20 samples reach a span of 20 dimensions; what is beyond hardly moves and "
    "keeps neurons apart. Of the squared norm 20% is in that span at first, 41% to 45% at the end with R1, 73% to 75% "
    "with dropout (three seeds).",
}
FEWER = 0.8  # of the lines that there are without noise


def _claims(layer: str) -> "tuple[Claim[Deep], ...]":
    """What three layers come to, by the hidden layer that is counted."""
    where, text = f"{WHERE}, Fig. 4", f"three layers, the {layer} hidden one:"

    def few(name: str) -> Callable[["Deep"], PerSeed]:
        return lambda figure: figure.orientations(f"{layer} {name}")

    def fewer(name: str) -> Callable[["Deep"], PerSeed]:
        return lambda figure: figure.over(f"{layer} {name}", f"{layer} none")

    def why(figure: "Deep") -> str:
        return f"{REASONS[layer]} {figure.in_words()}"

    return (
        Claim(f"{layer}-dropout", where, f"{text} with dropout few orientations are left",
              "orientations at the end, the layer condensed", at_most(6), few("dropout"), why),
        Claim(f"{layer}-penalty", where, f"{text} with R1 in place of dropout the same",
              "orientations at the end, the layer condensed", at_most(6), few("penalty"), why),
        Claim(f"{layer}-none", where, f"{text} without dropout it does not condense",
              "1 where it is not condensed and the loss at 1% of the first", at_least(1),
              lambda figure: figure.loose(f"{layer} none"), why),
        question(f"{layer}-dropout-fewer", f"{text} dropout leaves fewer effective lines than no noise",
                 "k_eff at the end over that without noise", at_most(FEWER), fewer("dropout"), why),
        question(f"{layer}-penalty-fewer", f"{text} and so does R1",
                 "k_eff at the end over that without noise", at_most(FEWER), fewer("penalty"), why),
    )  # fmt: skip


def own(layer: str, name: str) -> str:
    """What the lines of a layer are called.

    >>> own("last", "deep dropout")
    'last dropout'
    """
    return f"{layer} {name.removeprefix('deep ')}"


class Deep(UnderNoise):
    """Networks of two and three layers; those of two go on with noise once they have fitted the data."""

    name, title = "dropout-deep", "Three layers, small batches, and a late switch to R1"
    on_request = True
    titles: ClassVar = {
        "none": "two layers, no noise", "batches": "two layers, batches of 2", "deep none": "three layers, no noise",
        "deep dropout": "three layers, dropout", "deep penalty": "three layers, R1",
    }  # fmt: skip
    chosen = (
        "as in dropout-line: 20 points evenly spaced on [-15, 15], 100 neurons a layer in place of 1000, Adam at 1e-3; "
        "the late switch, after all steps without noise, goes on for as many. Which layer the text counts of three is "
        "not known to us: both are; R1 is on the last one. Few is at most six orientations, as there; fewer is at "
        "most 0.8 of the effective "
        "lines without noise. dropout-line had been seen before the rules were written, and a trial "
        "with two seeds before those of the first of three layers"
    )
    claims = (
        *_claims("first"),
        *_claims("last"),
        Claim(
            "batches", f"{WHERE}, Fig. 6", "two layers: batches of two samples do not condense",
            "k_eff at the end over that with all samples at once", at_least(FEWER),
            lambda figure: PerSeed(figure.ratio("batches", "none"), valid=figure.fitted("batches")),
            lambda figure: figure.in_words(),
        ),
        Claim(
            "late-penalty", f"{WHERE}, Fig. 4", "two layers: R1 condenses a network that has fitted the data without "
            "it",
            "k_eff after as many steps with R1 over that of the fitted network", at_most(FEWER),
            lambda figure: figure.after("late penalty"), lambda figure: figure.in_words(),
        ),
        question(
            "late-dropout", "two layers: so does dropout", "k_eff after as many steps with dropout over that of the "
            "fitted network", at_most(FEWER),
            lambda figure: figure.after("late dropout"), lambda figure: figure.in_words(),
        ),
        question(
            "late-few", "two layers: few orientations are left by R1 from the fitted network on",
            "orientations at the end, the layer condensed", at_most(6),
            lambda figure: figure.late_orientations(), lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Two layers without noise and in batches; three layers without noise, with dropout, and with R1."""
        width, steps = SIZES[scale]
        changes = {"steps": steps, "save": Evenly(11), "record": Evenly(11)}
        line = Line.experiments(scale)
        two = line["none"].replace(**changes, **{"network.widths": (1, width, 1)})
        deep = {
            f"deep {name}": each.replace(
                **changes, **{"network.widths": (1, width, width, 1), "network.activation": "tanh"}
            )
            for name, each in line.items()
        }
        return {"none": two, "batches": two.replace(batch_size=2)} | deep

    @cached_property
    def late(self) -> Available[Trajectory]:
        """What goes on from the network without noise; nothing where no seed of it has fitted the data."""
        run = self.runs["none"]
        if not self.fitted("none").any():
            return Available()
        start = run.experiment.replace(init=Given(run.models(int(run.saved[-1]))))
        changed = {
            "late penalty": start.replace(dropout_penalty=SHARE),
            "late dropout": start.replace(**{"network.dropout": SHARE}),
        }
        return Available({name: train(each, run.seeds, progress=False) for name, each in changed.items()})

    @cached_property
    def histories(self) -> Available[LineHistory]:
        """The lines at the saved steps; of three layers those of the first and of the last hidden one."""
        found = {name: count_lines(run.history(1)) for name, run in self.runs.items() if name not in DEEP}
        for layer, number in LAYERS.items():
            found |= {own(layer, name): count_lines(self.runs[name].history(number)) for name in DEEP}
        return Available(found)

    def _run(self, name: str) -> Trajectory:
        return self.runs[name if name in self.runs else f"deep {name.split()[1]}"]

    def fitted(self, name: str, share: float = FITTED) -> np.ndarray:
        """Whether the loss at the end is at most a share of the first."""
        return relative_loss(self._run(name))[:, -1] <= share

    def loose(self, name: str) -> PerSeed:
        """1 where a layer is not condensed; it counts where the data are fitted."""
        return PerSeed(1 - self.histories[name].condensed[:, -1], valid=self.fitted(name))

    @cached_property
    def late_histories(self) -> dict[str, LineHistory]:
        """The same of what goes on."""
        return {name: count_lines(run.history(1)) for name, run in self.late.items()}

    def ratio(self, name: str, plain: str) -> np.ndarray:
        """k_eff at the end, over that of another run."""
        return self.k_eff(name) / self.k_eff(plain)

    def over(self, name: str, plain: str) -> PerSeed:
        """The same; it counts where the loss has fallen to a tenth."""
        return PerSeed(self.ratio(name, plain), valid=self.fitted(name, 0.1))

    def after(self, name: str) -> PerSeed:
        """k_eff after the switch over that before; it counts where the data were fitted before."""
        fitted = self.fitted("none")
        if name not in self.late_histories:
            return PerSeed(np.full(len(fitted), np.nan))
        k_eff = self.late_histories[name].k_eff
        return PerSeed(k_eff[:, -1] / k_eff[:, 0], valid=fitted)

    def late_orientations(self) -> PerSeed:
        """Orientations after the switch to R1."""
        fitted = self.fitted("none")
        if "late penalty" not in self.late_histories:
            return PerSeed(np.full(len(fitted), np.nan))
        own = self.late_histories["late penalty"]
        return PerSeed(own.orientations[:, -1], valid=own.condensed[:, -1] & fitted)

    def in_words(self) -> str:
        """Medians of all runs, and orientations seed by seed."""
        parts = []
        for name, each in (self.histories | self.late_histories).items():
            loss = "" if name in LATE else f", loss {np.median(relative_loss(self._run(name))[:, -1]):.2g} of the first"
            parts.append(
                f"{name.replace('penalty', 'R1')}: {np.median(each.k_eff[:, -1]):.3g} (from "
                f"{np.median(each.k_eff[:, 0]):.3g}; {int(each.condensed[:, -1].sum())} of {len(each.condensed)} "
                f"condensed, orientations {', '.join(f'{found:g}' for found in each.orientations[:, -1])}{loss})"
            )
        return f"k_eff at the end, medians; first and last are the hidden layers of three. {'; '.join(parts)}."

    def draw(self) -> Drawing:
        """k_eff of two layers, of three, and after the switch; the neurons there."""
        with look():
            picture = Figure(figsize=(PAGE, 2.5), layout="constrained")
            panels = picture.subplots(1, 4)
            for (name, each), colour in zip(self.late_histories.items(), COLOURS[1:], strict=False):
                run = self.late[name]
                weights, a = run.history(1)[0, -1], np.abs(run.parameters["output.weight"][0, -1, 0])
                angles = np.degrees(np.arctan2(weights[:, 1], weights[:, 0]))
                panels[3].scatter(
                    angles, a * np.linalg.norm(weights, axis=1), s=8, color=colour, linewidth=0, alpha=0.7
                )
                self._lines(panels[2], run, each, name.removeprefix("late ").replace("penalty", "R1"), colour)
            for name, colour in zip(("none", "batches"), COLOURS, strict=False):
                self._lines(panels[0], self.runs[name], self.histories[name], self.titles[name].split(", ")[1], colour)
            for (name, title), colour in zip(DEEP.items(), COLOURS, strict=False):
                self._lines(panels[1], self.runs[name], self.histories[own("last", name)], title, colour)
            titles = ("two layers", "three, the last hidden", "after the switch", "after the switch")
            for axes, title in zip(panels, titles, strict=True):
                axes.set(title=title, xlabel="step", ylabel="k_eff" if axes is panels[0] else "")
            panels[3].set(xlabel="angle of (w, b)", ylabel="|a||w|", xlim=(-180, 180), yscale="log")
        return Drawing(
            caption="tanh networks on a target of two tanh neurons. Effective lines of each seed with two layers, with "
            "three (the last hidden one), and of two layers that go on with R1 or dropout from the fitted network; "
            "right: the neurons of the first seed then.",
            pictures={"": picture},
            data=self.columns_of_claims(),
            settings_extra={
                "late switch": "from the last weights of the two layers without noise, as many steps again"
            },
        )

    def _lines(self, axes: Axes, run: Trajectory, each: LineHistory, label: str, colour: str) -> None:
        axes.plot(run.saved, each.k_eff.T, color=colour, alpha=0.4, linewidth=0.7)
        axes.plot([], [], color=colour, label=label)
        axes.legend(fontsize=6)
