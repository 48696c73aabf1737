"""The HTML page on a checkpoint, and its pictures."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from safetensors.numpy import save_file

from condensation import InputError
from condensation.drawing import draw_beside_null, draw_layers, draw_steps
from condensation.drawing._layers import MOST_UNITS
from condensation.measure import Row, cosine_similarity, measure_units
from condensation.weights import measure_path
from condensation.weights._measured import cell_with_error, record
from condensation.weights._report import GLOSSARY, report_page, write_report


def arrays(step=9):
    rng = np.random.default_rng(0)
    start, line = rng.normal(size=(60, 20)), np.outer(rng.normal(size=60), rng.normal(size=20))
    found = {"<a&b>.weight": start + step * line, "free.weight": rng.normal(size=(300, 20)), "norm.weight": np.ones(60)}
    return {name: array.astype(np.float32) for name, array in found.items()}


class Page(HTMLParser):
    """Tags that are open, sources, and the text of cells."""

    def __init__(self, text):
        super().__init__()
        self.open, self.sources, self.cells = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "link", "br"):
            self.open.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "code") and self.cells:
            self.cells[-1] += data


def test_the_page_has_errors_where_they_were_measured(tmp_path):
    save_file(arrays(), tmp_path / "m.safetensors")
    measured = measure_path(tmp_path / "m.safetensors", errors=True)
    page = report_page(measured)
    assert "<dt>±</dt>" in page
    row = next(row for row in measured.rows if row.units >= 8)
    assert cell_with_error(record(row, 0), "stable_rank") in Page(page).cells


def test_the_page_of_a_checkpoint_is_whole_and_by_itself(tmp_path):
    save_file(arrays(), tmp_path / "m.safetensors")
    page = report_page(measure_path(tmp_path / "m.safetensors"))
    read = Page(page)
    assert read.open == []
    assert len(read.sources) == 3
    assert all(source.startswith(("data:image/svg+xml;base64,", "data:image/png;base64,")) for source in read.sources)
    assert not re.search(r"https?://", page)
    assert "<a&b>.weight" in read.cells
    assert "<a&b>" not in page
    assert "condensed on 1 line" in page
    assert "norm.weight" in page
    assert "one number a channel is no direction" in page.replace("&#39;", "'")
    assert "prefers-color-scheme: dark" in page
    assert "±" not in page
    for word in GLOSSARY.keys() - {"RD", "±"}:
        assert f"<dt>{word}</dt>" in page
    assert "Over training" not in page


def test_the_page_of_a_series_has_steps(tmp_path):
    for step in (0, 1, 9):
        save_file(arrays(step), tmp_path / f"step_{step}.safetensors")
    path = write_report(measure_path(tmp_path), tmp_path / "sub" / "page.html")
    page = path.read_text()
    assert len(Page(page).sources) == 4
    assert "Over training" in page
    assert "<dt>RD</dt>" in page
    with pytest.raises(InputError, match=r"its name should end in \.html, not 'page\.pdf'"):
        write_report(measure_path(tmp_path), tmp_path / "page.pdf")


def test_the_page_of_a_series_that_went_bad_shows_what_was_good(tmp_path):
    for step in (0, 9):
        save_file(arrays(step), tmp_path / f"step_{step}.safetensors")
    save_file({name: np.full_like(own, np.nan) for name, own in arrays().items()}, tmp_path / "step_12.safetensors")
    page = report_page(measure_path(tmp_path))
    assert len(Page(page).sources) == 4
    assert "condensed on 1 line" in page
    assert "NaN" in page
    assert "(at step 12)" in page


def test_the_page_of_nothing_is_refused(tmp_path):
    save_file({"b": np.ones(3)}, tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="there is nothing to report"):
        report_page(measure_path(tmp_path / "m.safetensors"))


def test_all_layers_are_drawn_with_their_null():
    rows = [measure_units(n, w, "neuron", with_null=True) for n, w in arrays().items() if w.ndim > 1]
    axes = draw_layers([*rows, Row("none", reason="a vector")], numbered=[rows[0].layer])
    marks = [line for line in axes.lines if len(line.get_xdata())]
    plain, centred = (np.asarray(line.get_ydata()) for line in marks)
    np.testing.assert_allclose(plain, [row.k_eff / row.units for row in rows])
    np.testing.assert_allclose(centred, [row.centred_k_eff / row.units for row in rows])
    bars = [path.vertices[0, 1] for path in axes.collections[0].get_paths()]
    np.testing.assert_allclose(bars, [row.null_k_eff / row.units for row in rows])
    assert [text.get_text() for text in axes.texts] == ["1"]
    with pytest.raises(InputError, match="nothing to draw"):
        draw_layers([Row("none", reason="a vector")])


def test_a_layer_beside_its_null_draws_some_units_of_many():
    left, right = draw_beside_null(arrays()["<a&b>.weight"]).axes[:2]
    shown = np.asarray(left.images[0].get_array())
    full = cosine_similarity(arrays()["<a&b>.weight"])
    np.testing.assert_allclose(np.sort(shown.ravel()), np.sort(full.ravel()), atol=1e-6)
    assert np.abs(np.asarray(right.images[0].get_array())).mean() < 0.5 < np.abs(shown).mean()
    many = draw_beside_null(np.vstack([np.zeros((5, 20)), arrays()["free.weight"]])).axes[0]
    assert np.asarray(many.images[0].get_array()).shape == (MOST_UNITS, MOST_UNITS)
    with pytest.raises(InputError, match="all weights are zero"):
        draw_beside_null(np.zeros((4, 4)))


def test_layers_against_the_step():
    history = {
        "a": {
            step: measure_units("a", arrays(step)["<a&b>.weight"], start=arrays(0)["<a&b>.weight"]) for step in (0, 9)
        }
    }
    figure = draw_steps(history)
    values = {axes.get_ylabel(): list(axes.lines[0].get_ydata()) for axes in figure.axes}
    assert values["lines"] == [row.lines for row in history["a"].values()]
    assert values["RD"] == [row.change for row in history["a"].values()]
    with pytest.raises(InputError, match="nothing to draw"):
        draw_steps({})
