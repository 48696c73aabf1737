"""Keep-probability and start: where dropout, and R1 in its place, leave few lines (after Zhang and Xu)."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import spearmanr

from ...drawing import draw_phase_maps
from ...initialization import Init, WidthPower
from ...saving import At
from ...seeds import as_seeds
from ...sweeps import Sweep
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._figure import Drawing, PaperFigure
from ..phases._diagram import by_cell
from ._noise import WHERE
from .few import Few

SHARES = {"quick": (0.0, 0.1, 0.5), "paper": (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)}
GAMMAS = {"quick": (0.0, 0.5, 2.0), "paper": (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)}
STEPS, SEEDS = {"quick": 5000, "paper": 50_000}, {"quick": 3, "paper": 10}
HALF, ORDINARY, SMALL = 0.5, 0.5, 2.0  # a share that is left out, and exponents of the start
FEW = 10  # lines
FITTED = 0.1  # of the first loss
NARROW = (
    "With γ = 1/2 both layers have std 0.1, which of ten inputs is a small start for the first one: PyTorch's default "
    "has 0.18 there and leaves most lines (dropout-few), and so do γ = 0 and 1/4 here."
)
KINDS = {"dropout-map": "dropout", "dropout-map-r1": "R1"}


class Map(PaperFigure):
    """Effective lines at the end over what is left out and the exponent of the start, of two sweeps."""

    name, title, paper = "dropout-map", "Dropout against the start: a map, and that of R1", "DROPOUT"
    has_variants, on_request = False, True
    seed_count: ClassVar = SEEDS
    titles: ClassVar = KINDS
    chosen = (
        "the network and the data of dropout-few, weights of std m^-γ with m = 100 from γ = 0 to 2 (γ = 1/2 is "
        "ordinary), "
        "the shares and the steps. Few is at most ten effective lines of a hundred neurons, fitted 10% of the first "
        "loss, which with γ = 0 is large. dropout-few had been seen before the rules were written; that every start "
        "condenses, which the text does not say, was made "
        "a question of ours after a trial with two seeds"
    )
    claims = (
        Claim(
            "half", f"{WHERE}, Figs 4 and 7", "with a half left out an ordinary start (γ = 1/2) ends on few lines",
            "k_eff at the end", at_most(FEW),
            lambda figure: figure.ends("dropout-map", HALF, ORDINARY), lambda figure: figure.in_words(),
        ),
        Claim(
            "half-r1", WHERE, "and so it does with R1 in the place of dropout", "k_eff at the end", at_most(FEW),
            lambda figure: figure.ends("dropout-map-r1", HALF, ORDINARY), lambda figure: figure.in_words(),
        ),
        Claim(
            "none", f"{WHERE}, Figs 4 and 7", "without it nothing condenses from an ordinary start (γ = 1/2)",
            "k_eff at the end over that at the start", at_least(0.8),
            lambda figure: figure.ends("dropout-map", 0.0, ORDINARY, over_first=True),
            lambda figure: f"{NARROW} {figure.in_words()}",
        ),
        question(
            "every", "with a half left out every start, from γ = 0 to 2, ends on few lines",
            "largest k_eff at the end over the starts", at_most(FEW),
            lambda figure: figure.most("dropout-map", HALF), lambda figure: figure.in_words(),
        ),
        question(
            "small", "without it a small start (γ = 2) does what dropout does", "k_eff at the end", at_most(FEW),
            lambda figure: figure.ends("dropout-map", 0.0, SMALL),
            lambda figure: figure.in_words(),
        ),
        question(
            "order", "from an ordinary start there are the fewer lines the more is left out",
            "rank correlation of k_eff at the end with the share", at_most(-0.8),
            lambda figure: PerSeed(figure.order), lambda figure: figure.in_words(),
        ),
        question(
            "same", "the map of R1 is that of dropout",
            "factor between their k_eff at the end, its median over the cells", at_most(1.5),
            lambda figure: figure.apart, lambda figure: f"{figure.fewer_in_words()} {figure.in_words()}",
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Sweep]:
        """A sweep with dropout, and one with R1."""
        ends = At((0, STEPS[scale]))
        law = WidthPower(ORDINARY)
        base = Few.experiments(scale)["none"].replace(init=Init(law, law), steps=STEPS[scale], save=ends, record=ends)
        exponents = {"init.hidden.gamma": "gamma", "init.output.gamma": "gamma"}
        paths = {"dropout-map": "network.dropout", "dropout-map-r1": "dropout_penalty"}
        return {
            name: Sweep(
                base.replace(dropout_penalty=HALF) if name == "dropout-map-r1" else base,
                {path: [share for share in SHARES[scale] if share or name == "dropout-map"], "gamma": GAMMAS[scale]},
                exponents, as_seeds(SEEDS[scale]), ("lines",), at="saved",
            )
            for name, path in paths.items()
        }  # fmt: skip

    def axes(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The shares that are left out, and the exponents of the start."""
        shares, gammas = (np.array(values, float) for values in self.tables[name].sweep.axes.values())
        return shares, gammas

    @cached_property
    def k_eff(self) -> dict[str, Float[np.ndarray, "shares gammas seeds 2"]]:
        """The effective number of lines at the start and at the end, by sweep."""
        return {name: table.array("dense1.k_eff") for name, table in self.tables.items()}

    @cached_property
    def fitted(self) -> dict[str, Bool[np.ndarray, "shares gammas seeds"]]:
        """Whether the loss has fallen to a tenth."""
        losses = {name: table.array("loss") for name, table in self.tables.items()}
        return {name: loss[..., -1] <= FITTED * loss[..., 0] for name, loss in losses.items()}

    def _place(self, name: str, share: float, gamma: float) -> tuple[int, int]:
        shares, gammas = self.axes(name)
        return int(np.abs(shares - share).argmin()), int(np.abs(gammas - gamma).argmin())

    def ends(self, name: str, share: float, gamma: float, over_first: bool = False) -> PerSeed:
        """k_eff of a cell at the end, or over that at the start; it counts where the data are fitted."""
        place = self._place(name, share, gamma)
        first, last = self.k_eff[name][place].T
        return PerSeed(last / first if over_first else last, valid=self.fitted[name][place])

    def most(self, name: str, share: float) -> PerSeed:
        """The largest k_eff at the end over the starts; it counts where all have fitted the data."""
        place = self._place(name, share, 0)[0]
        return PerSeed(self.k_eff[name][place, ..., -1].max(axis=0), valid=self.fitted[name][place].all(axis=0))

    @property
    def order(self) -> Float[np.ndarray, " seeds"]:
        """The rank correlation of k_eff with the share at the ordinary start; NaN where nothing varies."""
        shares, gammas = self.axes("dropout-map")
        ends = self.k_eff["dropout-map"][:, int(np.abs(gammas - ORDINARY).argmin()), :, -1]
        return np.array(
            [np.nan if np.ptp(own) < 1e-9 else spearmanr(shares, own).statistic for own in ends.T]  # type: ignore[union-attr]
        )

    @property
    def apart(self) -> PerSeed:
        """The median factor between the two maps; it counts where most cells of both are fitted."""
        one, other = (self.k_eff[name][..., -1] for name in KINDS)
        factors = np.exp(np.abs(np.log(one[1:] / other)))
        fitted = np.minimum(self.fitted["dropout-map"][1:].mean((0, 1)), self.fitted["dropout-map-r1"].mean((0, 1)))
        return PerSeed(np.median(factors, axis=(0, 1)), valid=fitted > 0.5)

    def fewer_in_words(self) -> str:
        """Which of the two leaves fewer lines."""
        one, other = (np.median(self.k_eff[name][..., -1], axis=-1) for name in KINDS)
        fewer = other < one[1:]
        return f"R1 leaves fewer lines than dropout, in the medians of {fewer.sum()} of {fewer.size} cells."

    def in_words(self) -> str:
        """Medians over the seeds, a row for each share."""
        told = []
        for name, title in KINDS.items():
            shares, gammas = self.axes(name)
            medians = np.median(self.k_eff[name][..., -1], axis=-1)
            rows = (
                f"{share:g}: {', '.join(f'{k:.3g}' for k in own)}" for share, own in zip(shares, medians, strict=True)
            )
            told.append(f"{title}, γ = {', '.join(f'{gamma:g}' for gamma in gammas)}: {'; '.join(rows)}")
        return f"k_eff at the end by the share that is left out, medians. {'. '.join(told)}."

    def draw(self) -> Drawing:
        """Both maps."""
        shares, gammas = self.axes("dropout-map")
        none = np.median(self.k_eff["dropout-map"][..., -1], axis=-1)
        same = np.vstack([none[:1], np.median(self.k_eff["dropout-map-r1"][..., -1], axis=-1)])  # no R1 is no dropout
        cells = {"share": shares, "gamma": gammas, "seed": range(self.k_eff["dropout-map"].shape[2])}
        picture = draw_phase_maps(
            {"dropout": none, "R1 in its place": same}, gammas, [f"{share:g}" for share in shares],
            quantity="k_eff at the end", labels=("exponent γ of the start, m^(-γ)", "share left out"), logarithmic=True,
        )  # fmt: skip
        return Drawing(
            caption="Effective lines of 100 neurons at the end of training on 30 samples of one tanh neuron, over the "
            "exponent of the start and the share of the neurons that a step leaves out (keep-probability is one less "
            "it), medians over the seeds. Right: R1, its mean effect, in the place of dropout.",
            pictures={"": picture},
            data=by_cell(**cells) | {"k_eff": self.k_eff["dropout-map"][..., -1].ravel()},
        )
