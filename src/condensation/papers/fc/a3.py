"""FC App. A.3: the losses of all experiments, with the line at 70% that ends the initial stage."""

from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from ...activations import label
from ...drawing import draw_loss, look
from ...drawing._panels import only_outer
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...runs import Trajectory
from ...saving import At, Geometric
from .._claims import Claim, PerSeed, at_most
from .._counts import relative_loss
from .._figure import Drawing, PaperFigure
from .._tables import Table
from . import experiments as captions
from .wording import in_initial_stage

LONG, COLUMNS = 30_000, 4
SIX_EPOCH = max(captions.FIG4_EPOCHS)
CAPTIONED = {  # the figure and the epoch of each claim
    **{f"fig2-{name}": (f"Fig. 2, {label(name)}", epoch) for name, epoch in captions.FIG2_EPOCHS.items()},
    **{f"fig3-{name}": (f"Fig. 3, {label(name)}", captions.FIG3_EPOCH) for name in captions.FIG3_RATES},
    **{"fig4": ("Fig. 4", SIX_EPOCH), "a5": ("App. A.5", SIX_EPOCH)},
    **{f"fig5-{name}": (f"Fig. 5, {label(name)}", captions.FIG5_EPOCH) for name in captions.FIG5_ACTIVATIONS},
    **{f"fig6-{name}": (f"Fig. 6, {label(name)}", captions.FIG6_EPOCH) for name in captions.FIG5_ACTIVATIONS},
}


def _stage(key: str) -> "Claim[A3]":
    return in_initial_stage(key, *CAPTIONED[key], lambda figure: figure.loss_at(key))


class A3(PaperFigure):
    """Losses against time, a panel an experiment."""

    name, title, paper = "fc-a3", "FC App. A.3: the losses of all experiments", "FC"
    titles: ClassVar = {key: title for key, (title, _) in CAPTIONED.items()} | {"end": "Fig. 3 continued, tanh"}
    claims = (
        *map(_stage, CAPTIONED),
        Claim(
            "end", "Sec. 3", "70% is early: generally the loss can fall to 1% of its first value (Fig. 3, tanh)",
            "least loss over the first, within 30,000 epochs", at_most(0.01),
            lambda figure: PerSeed(np.nanmin((loss := figure.runs["end"].loss) / loss[:, :1], axis=1)),
            lambda figure: f"Within {LONG} epochs the least loss is {figure.measured('end').median:.3f} of the first "
            "(median): 50 tanh neurons do not fit 80 points of a rough target in that time.",
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Those of all figures, and one that goes on for long."""
        return {
            **{f"fig2-{name}": captions.resnet(name, scale) for name in captions.FIG2_RATES},
            **captions.synthetic(),
            "end": captions.fig3("tanh").replace(steps=LONG, save=At(()), record=Geometric(20)),
        }

    def _run(self, key: str) -> Trajectory:
        return self.runs[key.replace("fig6", "fig5")]

    def _epoch(self, key: str) -> int:
        return int(self._run(key).saved[-1]) if key.startswith("fig2") else CAPTIONED[key][1]

    def loss_at(self, key: str) -> np.ndarray:
        """The loss at the captioned epoch, of Fig. 2 at the last step, over the first."""
        return relative_loss(self._run(key))[:, np.flatnonzero(self._run(key).saved == self._epoch(key))[0]]

    def draw(self) -> Drawing:
        """A panel for each run, and a table of where the initial stage ends."""
        drawn = [key for key in self.titles if key in self.runs]
        with look():
            lines = -(-len(drawn) // COLUMNS)
            figure = Figure(figsize=(PAGE, 1.45 * lines + 0.3), layout="constrained")
            panels = figure.subplots(lines, COLUMNS, squeeze=False).ravel()
            for key, axes in zip(drawn, panels, strict=False):
                draw_loss(self.runs[key], axes, title=self.titles[key])
                for captioned in {key, key.replace("fig5", "fig6")} & CAPTIONED.keys():
                    axes.axvline(self._epoch(captioned), color=COLOURS[2], linewidth=0.9, label="captioned epoch")
            panels[drawn.index("end")].set(xscale="log", xlim=(10, LONG), ylim=(1e-8, 3))
            only_outer(figure, list(panels))
            for k, axes in enumerate(panels):
                axes.set(ylabel="" if k % COLUMNS else "loss / first", xlabel="step" * (k + COLUMNS >= len(drawn)))
                axes.axison = k < len(drawn)
        header = "experiment", "captioned epoch", "loss there (median, range)", "the initial stage ends at (median)"
        rows = tuple(self._row(key) for key in CAPTIONED if key.replace("fig6", "fig5") in self.runs)
        return Drawing(
            caption="Loss over its first value: all seeds (grey) and their median (blue); dashed: 70%, the end of the "
            "initial stage; green: the epochs that the captions name.",
            pictures={"": figure}, tables=(Table("Where the captions stand", header, rows),),
            data=self.columns_of_claims(),
        )  # fmt: skip

    def _row(self, key: str) -> tuple[str, ...]:
        title, epoch = CAPTIONED[key]
        losses, ends = self.loss_at(key), [end for end in self._run(key).initial_stage_end() if end is not None]
        return (
            title, "that of Fig. 2" if key.startswith("fig2") else str(epoch),
            f"{np.median(losses):.2f} ({losses.min():.2f} to {losses.max():.2f})",
            f"{np.median(ends):g}" if len(ends) > len(losses) / 2 else "later than trained",
        )  # fmt: skip
