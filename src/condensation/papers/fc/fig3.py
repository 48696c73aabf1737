"""FC Fig. 3: two-layer networks in six dimensions, five activations."""

from functools import cached_property

import numpy as np

from ..._phrases import least_to_most
from ...activations import label, multiplicity
from ...experiment import Experiment
from ...measure import nearest_lines
from ...theory import cube_directions, stationary_directions
from .._claims import Claim, PerSeed, exactly
from .._figure import Drawing
from .._tables import Table, settings_table
from .._variant import Variant
from .experiments import FIG3_EPOCH, FIG3_RATES, HIGHER, LINES, data_with_bias, fig3
from .wording import LinesByActivation, at_most_2p, by_kind, lines_in_words, with_multiplicity

NEAR = 0.95
A_LINE = "2 neurons and 5% of the norm within a cosine of 0.95; condensed: 90% of the norm on lines"
FLOW = Variant(optimizer="gradient_flow")  # takes long to compile: two panels are enough to tell p = 1 from p = 2
VARIANTS = (
    Variant(threshold=0.8), Variant(threshold=0.99), Variant(eps=1e-30), Variant(rotated=True),
    Variant(init_scale=0.1), Variant(init_scale=0.01), Variant(output_scale=10.0), Variant(output_scale=0.1),
    Variant(optimizer="normalised_gd"), Variant(optimizer="normalised_gd", init_scale=0.01), FLOW,
)  # fmt: skip


def _claims(name: str) -> "tuple[Claim[Fig3] | None, ...]":
    reason = (lambda figure: figure.cube_not_sphere(name)) if name in HIGHER else ""
    not_small = (lambda figure: figure.not_small_enough()) if name == "softplus" else ""
    one_sign = (
        f"{label(name)} is not zero at 0, so the network first learns the mean of the targets. Where that mean is far "
        "from zero the output weights have one sign, and so the line has one direction; other seeds have more lines."
    )
    return Claim(
        name, "Fig. 3",
        f"{with_multiplicity(name)}: 50 neurons in six dimensions condense on {lines_in_words(name)} by epoch "
        f"{FIG3_EPOCH}",
        f"lines at epoch {FIG3_EPOCH}", exactly(LINES[name]), lambda figure: figure.counts[name].lines_found(),
        reason or not_small, (lambda figure: figure.like_the_paper(name)) if name in HIGHER else "",
    ), None if name in HIGHER else Claim(
        f"{name}-orientations", "Sec. 4.3", f"{label(name)}: the line has two opposite directions",
        f"orientations at epoch {FIG3_EPOCH}", exactly(2), lambda figure: figure.counts[name].sides_found(),
        "" if name == "tanh" else one_sign,
    ), at_most_2p(
        name, "Fig. 3", with_multiplicity(name), LINES[name], lambda figure: figure.counts[name], reason
    )  # fmt: skip


class Fig3(LinesByActivation):
    """The neurons of two-layer networks, an activation a panel."""

    name, title, epoch = "fc-fig3", "FC Fig. 3: condensation of two-layer networks", FIG3_EPOCH
    claims = by_kind(_claims, FIG3_RATES)

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The five panels."""
        return {name: fig3(name) for name in FIG3_RATES}

    @classmethod
    def evidence(cls, scale: str) -> dict[str, Experiment]:
        """The panels under other settings."""
        panels = {variant: ("tanh", "x_tanh") if variant == FLOW else FIG3_RATES for variant in VARIANTS}
        return {f"{name}, {each}": each.apply(fig3(name)) for each, names in panels.items() for name in names}

    @cached_property
    def elsewhere(self) -> dict[str, dict[str, PerSeed]]:
        """Lines of the panels as captioned and under other settings, by setting and activation."""
        lines = {"as captioned": {name: counts.lines_found() for name, counts in self.counts.items()}}
        for variant in VARIANTS:
            lines[str(variant)] = {
                name: self.count(self.others[setting], "dense1", FIG3_EPOCH, variant).lines_found()
                for name in FIG3_RATES if (setting := f"{name}, {variant}") in self.others
            }  # fmt: skip
        return lines

    @cached_property
    def predicted(self) -> dict[str, np.ndarray]:
        """Attracting lines of gradient flow's sphere and of Adam's cube, shares of neurons on both: 4 x seeds."""
        return {name: self._predict(name) for name in HIGHER if name in self.runs}

    def _predict(self, name: str) -> np.ndarray:
        run, counts, p = self.runs[name], self.counts[name], LINES[name]
        rows = []
        for k, seed in enumerate(run.seeds):
            inputs, y = data_with_bias(run, seed)
            sphere, cube = stationary_directions(inputs, y[:, 0], p), cube_directions(inputs, y[:, 0], p)
            lines = (sphere.directions[sphere.attracts], cube.directions)
            near = (np.mean(nearest_lines(counts.weights[k, counts.column[k]], each)[1] >= NEAR) for each in lines)
            rows.append((sphere.attracts.sum(), cube.count, *near))
        return np.array(rows).T

    def cube_not_sphere(self, name: str) -> str:
        """Why a multiplicity above 1 has other lines than the paper's."""
        sphere, cube, on_sphere, on_cube = self.predicted[name]
        p = multiplicity(name)
        return (
            "Adam moves each coordinate by its sign, so its lines are those of the cube, not the theory's: these data "
            f"have {least_to_most(cube)} attracting lines on the cube (median {np.median(cube):g}), and "
            f"{least_to_most(sphere)} under gradient flow (exactly {p} in {np.sum(sphere == p)} of {len(sphere)} "
            f"seeds). {np.median(on_cube):.0%} of the neurons (median) are within a cosine of {NEAR} of a line of the "
            f"cube, {np.median(on_sphere):.0%} of one of gradient flow's. The table has other settings."
        )

    def like_the_paper(self, name: str) -> str:
        """How many seeds look like the paper's figure, where not most of them do."""
        holds = self.measured(name).holds(self.claim(name).rule)
        count = holds.count(True)
        return f"A seed like the figure's exists: {count} of {len(holds)}." if 0 < count < 0.8 * len(holds) else ""

    def not_small_enough(self) -> str:
        """Why softplus is not on one line."""
        _ = self.others["softplus, init scale 0.1"]
        settings, rule = ("init scale 0.1", "threshold 0.8"), self.claim("softplus").rule
        small, loose = (self.elsewhere[setting]["softplus"].holds(rule) for setting in settings)
        return (
            f"The initial weights are not small enough: from a tenth of them {small.count(True)} of {len(small)} seeds "
            f"are on one line, and {loose.count(True)} as captioned if the threshold is 0.8."
        )

    def draw(self) -> Drawing:
        """Heat maps, lines against time, what the data predict, and what other settings do."""
        rules = [self.claim(name).rule for name in FIG3_RATES]
        cells = {name: [each.get(activation) for activation in FIG3_RATES] for name, each in self.elsewhere.items()}
        header = "lines of gradient flow (the sphere)", "of Adam (the cube)", "neurons on the first", "on the second"
        rows = []
        for name, each in self.predicted.items():
            lines = (" ".join(f"{k:g}" for k in counts) for counts in each[:2])
            rows.append((label(name), *lines, *(f"{np.median(share):.2f}" for share in each[2:])))
        title = (
            "Attracting lines predicted from the data alone, and the share of neurons within a cosine of 0.95 of one"
        )
        settings = [settings_table(cells, list(self.titles.values()), rules)] if self.others else []
        return Drawing(
            caption=f"Cosine similarity of all pairs of the 50 neurons' input weights at epoch {FIG3_EPOCH} (top; "
            "beige: same, navy: opposite direction; the median seed by number of lines), and the number of lines over "
            f"{self.seeds} seeds of data and initialization (bottom).",
            pictures={"": self._draw_maps(), "time": self._draw_times()}, data=self._columns(),
            tables=(Table(title, ("activation", *header), tuple(rows)), *settings), settings_extra={"a line": A_LINE},
        )  # fmt: skip
