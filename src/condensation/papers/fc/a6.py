"""FC App. A.6: several steps of each example during its initial stage."""

from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from ...activations import label
from ...drawing import draw_similarity, look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...measure import LineHistory
from ...runs import Trajectory
from .._claims import Claim, PerSeed, at_most
from .._counts import cosine_of, in_stage, median_seed
from .._figure import Drawing, PaperFigure
from .._tables import Table
from .experiments import FIG3_RATES, FIG4_LAYERS, FIG5_ACTIVATIONS, synthetic
from .fig4 import COSINES

MOMENTS = 5  # steps that are shown of each example
DEEP = enumerate(zip(FIG4_LAYERS, COSINES, strict=True), 1)
EXAMPLES: dict[str, tuple[str, int, float | None]] = {  # title, layer, and the cosine that decides there
    **{f"fig3-{name}": (f"Fig. 3, {label(name)}", 1, None) for name in FIG3_RATES},
    **{f"fig4-layer{k}": (f"Fig. 4, layer {k}, {label(name)}", k, cosine) for k, (name, cosine) in DEEP},
    **{f"fig5-{name}": (f"Figs. 5 and 6, {label(name)}", 1, None) for name in FIG5_ACTIVATIONS},
}


def _experiment(key: str) -> str:
    return key.partition("-layer")[0]


def _condenses(key: str) -> "Claim[A6]":
    title, layer, _ = EXAMPLES[key]
    title = f"Fig. 4, layer {layer}" if _experiment(key) == "fig4" else title
    return Claim(
        key, "Sec. 4.4, App. A.6", f"{title}: the layer condenses within the initial stage",
        "first condensed step over the last step of the initial stage", at_most(1),
        lambda figure: PerSeed((steps := figure.steps(key))[0] / np.maximum(steps[1], 1)),
        "In the seeds that fail, the layer is not condensed at any saved step of the initial stage (see the table).",
    )  # fmt: skip


class A6(PaperFigure):
    """Heat maps at steps that go through the initial stage, a row an example."""

    name, title, paper = "fc-a6", "FC App. A.6: several steps of the initial stage", "FC"
    chosen = "which steps of the initial stage are shown: the appendix is not in the text"
    titles: ClassVar = {_experiment(key): title for key, (title, _, _) in EXAMPLES.items()} | {"fig4": "Fig. 4"}
    claims = tuple(map(_condenses, EXAMPLES))

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The synthetic examples."""
        return {name: experiment for name, experiment in synthetic().items() if name != "a5"}

    def _lines(self, key: str) -> tuple[Trajectory, LineHistory]:
        run, (_, layer, cosine) = self.runs[_experiment(key)], EXAMPLES[key]
        return run, self._line_history(run, layer, cosine_of(run, layer, self.variant, cosine))

    def steps(self, key: str) -> tuple[np.ndarray, np.ndarray]:
        """For each seed the first condensed step (NaN if none) and the last saved step of its initial stage."""
        run, history = self._lines(key)
        condensed = history.condensed & (run.saved > 0)
        first = np.where(condensed.any(axis=1), run.saved[condensed.argmax(axis=1)].astype(float), np.nan)
        return first, np.array([run.saved[inside].max() for inside in in_stage(run)], float)

    def draw(self) -> Drawing:
        """The maps on two pictures, and the steps in a table."""
        trained = [key for key in EXAMPLES if _experiment(key) in self.runs]
        half, pictures = -(-len(trained) // 2), {}
        for part, keys in {"": trained[:half], "2": trained[half:]}.items():
            with look():
                pictures[part] = Figure(figsize=(PAGE, 1.18 * len(keys)), layout="constrained")
                for row, key in zip(pictures[part].subplots(len(keys), MOMENTS, squeeze=False), keys, strict=True):
                    self._draw_row(row, key)
        rows = tuple((EXAMPLES[key][0], *map(_in_words, self.steps(key))) for key in trained)
        title = "First condensed step, and last step of the initial stage, seed by seed"
        return Drawing(
            caption="Cosine similarity of the neurons' input weights at five saved steps from initialization to the "
            "end of the initial stage (loss at 70%, or the last step); the median seed by lines at the last of them. "
            "Below each map: the step and the lines, in brackets where the layer is not condensed.",
            pictures=pictures, tables=(Table(title, ("example", "condensed from", "stage until"), rows),),
            data=self.columns_of_claims(),
            settings_extra={"a line": "cosine 0.95, as in Fig. 4 in its layers, in two dimensions modes of a density"},
        )  # fmt: skip

    def _draw_row(self, row: Any, key: str) -> None:
        (run, history), (title, layer, _) = self._lines(key), EXAMPLES[key]
        last = np.array([np.flatnonzero(inside).max() for inside in in_stage(run)])
        at = np.arange(len(last)), last
        k = median_seed(history.lines[at], history.k_eff[at])
        end = max(int(run.saved[last[k]]), 1)
        wanted = [0, *np.geomspace(max(end / 100, 1), end, MOMENTS - 1)]
        for axes, step in zip(row, wanted, strict=True):
            column = int(np.abs(run.saved[: last[k] + 1] - step).argmin())
            draw_similarity(run.history(layer)[k, column], axes, bar=False)
            count = f"{history.lines[k, column]:g}"
            lines = count if history.condensed[k, column] else f"({count})"
            axes.set(xlabel=f"step {run.saved[column]}: {lines}", ylabel="", xticks=[], yticks=[])
        row[0].set_ylabel("\n".join(title.replace(" and", ",").rsplit(", ", 1)), fontsize=7)


def _in_words(steps: np.ndarray) -> str:
    return " ".join("-" if np.isnan(step) else f"{step:g}" for step in steps)
