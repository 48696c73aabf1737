"""FC App. A.3: the losses of all experiments, with the line at 70% that ends the initial stage."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ...drawing import draw_loss, look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...runs import Trajectory
from ...saving import At, Geometric
from .._claims import PerSeed
from .._counts import STAGE, relative_loss
from .._legacy import Claim, Findings, Lab, Recipe, Runs, columns_of
from .._panels import only_outer
from .._tables import Table
from .._variant import Variant
from .experiments import FIG2_RATES, FIG3_RATES, FIG5_ACTIVATIONS, fig3, one_input, resnet, six_layers
from .statements import A3, A3_FIG2, A3_FIG3, A3_FIG5, A3_FIG6, A3_SIX

LONG = 30_000
EPOCHS = {key: epoch for key, (_, epoch) in (A3_FIG3 | A3_SIX | A3_FIG5 | A3_FIG6).items()}
TITLES = {key: title for key, (title, _) in (A3_FIG2 | A3_FIG3 | A3_SIX | A3_FIG5 | A3_FIG6).items()}


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Those of all figures, and one that goes on for long."""
    return {
        **{f"fig2-{name}": resnet(name, scale) for name in FIG2_RATES},
        **{f"fig3-{name}": fig3(name) for name in FIG3_RATES},
        "fig4": six_layers(residual=True),
        "a5": six_layers(residual=False),
        **{f"fig5-{name}": one_input(name) for name in FIG5_ACTIVATIONS},
        "end": fig3("tanh").replace(steps=LONG, save=At(()), record=Geometric(20)),
    }


def _run(runs: Runs, key: str) -> Trajectory | None:
    """The run of a statement; Fig. 6's are those of Fig. 5."""
    return runs.get(key.replace("fig6", "fig5"))


def _at(run: Trajectory, key: str) -> np.ndarray:
    """L/L0 at the captioned epoch: of Fig. 2 at the last step."""
    epoch = EPOCHS.get(key, int(run.saved[-1]))
    return relative_loss(run)[:, np.flatnonzero(run.saved == epoch)[0]]


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """L/L0 at each captioned epoch, and the least that a long training reaches."""
    found = {f"fc-a3-{key}": PerSeed(_at(run, key)) for key in TITLES if (run := _run(runs, key)) is not None}
    end = runs["end"].loss
    return found | {"fc-a3-end": PerSeed(np.nanmin(end / end[:, :1], axis=1))}


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """A panel for each run, and a table of where the initial stage ends."""
    drawn = {key: title for key, title in TITLES.items() if key in runs}
    rows, header = (
        [],
        ("experiment", "captioned epoch", "loss there (median, range)", "the initial stage ends at (median)"),
    )
    with look():
        columns = 4
        lines = -(-(len(drawn) + 1) // columns)
        figure = Figure(figsize=(PAGE, 1.45 * lines + 0.3), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        for (key, title), axes in zip((drawn | {"end": "Fig. 3, tanh, on and on"}).items(), panels, strict=False):
            draw_loss(runs[key], axes, title=title)
            last = int(runs[key].saved[-1]) if key in A3_FIG2 else None
            for epoch in {EPOCHS.get(key, last), EPOCHS.get(key.replace("fig5", "fig6"))} - {None}:
                axes.axvline(epoch, color=COLOURS[2], linewidth=0.9, label="captioned epoch")  # type: ignore[arg-type]
        for axes in panels[len(drawn) + 1 :]:
            axes.set_axis_off()
        panels[len(drawn)].set(xscale="log", xlim=(10, LONG), ylim=(1e-8, 3))
        only_outer(figure, list(panels))
        for k, axes in enumerate(panels):
            axes.set_ylabel("" if k % columns else "loss / first")
            axes.set_xlabel("step" if k + columns > len(drawn) else "")
    for key, title in TITLES.items():
        if (run := _run(runs, key)) is not None:
            at = _at(run, key)
            ends = [end for end in run.initial_stage_end() if end is not None]
            middle = f"{np.median(ends):g}" if len(ends) > len(at) / 2 else "later than trained"
            epoch = str(EPOCHS.get(key, "that of Fig. 2"))
            rows.append((title, epoch, f"{np.median(at):.2f} ({at.min():.2f} to {at.max():.2f})", middle))
    why = {
        key: f"By the captioned epoch the loss has fallen to {claim.measured.median:.2f} of its first "
        f"value (median): the figure is from beyond the initial stage as the paper defines it ({STAGE:g})."
        for key, claim in claims.items()
        if claim.measured is not None and claim.verdict != "reproduced" and key != "fc-a3-end"
    }
    end = claims["fc-a3-end"]
    if end.verdict != "reproduced" and end.measured is not None:
        why["fc-a3-end"] = (
            f"Within {LONG} epochs the least loss is {end.measured.median:.3f} of the first (median): 80 points of a "
            "rough target in five dimensions are not fitted by 50 tanh neurons in that time."
        )
    return Findings(
        caption=(
            "Loss over its first value: all seeds (grey) and their median (blue); dashed: 70%, the end of the "
            "initial stage as the paper defines it; green: the epochs that the captions name."
        ),
        settings={"experiments": "those of the figures, as captioned", "on and on": f"Fig. 3, tanh, for {LONG} epochs"},
        pictures={"fc-a3": figure},
        tables=(Table("Where the captions stand", header, tuple(rows)),),
        data=columns_of(claims),
        why=why,
    )


RECIPE = Recipe(
    "fc-a3",
    "FC App. A.3: the losses of all experiments",
    A3,
    experiments,
    measure,
    show,
    "the experiments of Fig. 2 are those of its quick scale; all others are as captioned",
)
