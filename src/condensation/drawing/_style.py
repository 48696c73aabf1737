"""One look for all pictures: sizes of a paper's column, colours that colour-blind readers can tell apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

COLUMN = 3.35  # inches, one column of a two-column page
PAGE = 6.9
BEIGE, NAVY = "#f6e7c9", "#0c1f4a"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
FAINT = "#b8b8b8"
INK = "#222222"
SIMILARITY = LinearSegmentedColormap.from_list("condensation", [NAVY, "#2f6690", "#8fb8b0", BEIGE])

_SETTINGS = mpl.rc_params_from_file(Path(__file__).with_name("pictures.mplstyle"), use_default_template=False)


@contextmanager
def look() -> Iterator[None]:
    """Matplotlib's settings for our pictures, while the context lasts."""
    with mpl.rc_context(_SETTINGS):  # pyright: ignore[reportArgumentType]
        yield


def new_axes(width: float = COLUMN, height: float = 2.4) -> Axes:
    """Axes in a new figure of their own, as wide as a column."""
    return Figure(figsize=(width, height), layout="constrained").subplots()


def note(axes: Axes, text: str, at: tuple[Any, Any], shift: tuple[int, int], fontsize: float = 7, **style: Any) -> None:
    """A small text near a place, shifted from it by points."""
    axes.annotate(text, at, xytext=shift, textcoords="offset points", fontsize=fontsize, **style)


def figure_of(axes: Axes) -> Figure:
    """The figure that axes belong to, also inside a subfigure."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def save(picture: Figure | Axes, path: str | Path) -> list[Path]:
    """Write a picture as .pdf, .png, .svg or .eps; another name gives a PDF and a PNG. Returns the files written."""
    figure = picture if isinstance(picture, Figure) else figure_of(picture)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    known = path.suffix in (".pdf", ".png", ".svg", ".eps")
    paths = [path] if known else [path.with_name(path.name + suffix) for suffix in (".pdf", ".png")]
    layout = figure.get_layout_engine()
    with look():
        for target in paths:
            metadata = {"CreationDate": None} if target.suffix == ".pdf" else None
            figure.savefig(target, dpi=200, metadata=metadata)
            figure.set_layout_engine("none")  # the next file has the same layout, which takes long to find
    figure.set_layout_engine(layout)
    return paths
