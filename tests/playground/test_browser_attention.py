"""Networks of attention on the page: they are trained by its controls, and their picture has the library's numbers."""

import re

import numpy as np
import pytest
from browser import colours, number, until, visible_views
from reference import check_initialization, loss_at, same, trained

from condensation.measure import effective_rank
from condensation.playground._presets import presets
from condensation.playground._settings import Settings
from condensation.prediction import predict

pytestmark = pytest.mark.browser
FIGURES = {figure["name"]: figure["settings"] for figure in presets()["figures"]}
SMALL = "#data=sequences&n=20&width=6&layers=tanh&optimizer=gd&rate=0.5&std_w=0.1&std_a=0.1&seed=3"
CONTEXT = (
    "#data=context&n=60&tokens=9&eigenvalues=0.2,0.7,0.1&heads=3&optimizer=gd&rate=0.1&std_w=0.1&std_a=0.1&layer=query1"
)


def picture(page):
    return page.js("return document.querySelector('[data-view=attention] canvas').toDataURL()")


def test_the_picture_has_the_numbers_of_the_library(page):
    page.go(SMALL).reach(40)
    settings = Settings.from_text(page.settings)
    until(lambda: page.js("return Boolean(playground.state.frame.arrays.head_pattern)"), "the slow part")
    page.js("playground.player.settle()")
    page.settle()
    run, known = trained(settings, 40), predict(settings.experiment(), settings.seeds)
    row = page.js("const s = playground.state.spectra; return s.columns.map((name) => s[name][s.length - 1])")
    assert row[0] == 40
    for place, name in enumerate(("query", "key", "value")):
        weights = run.weights(f"{name}1", 40)[0]
        same(page.array("frame", f"head_{name}")[0], weights)
        values, axes = np.linalg.svd(weights)[1:]
        same(row[1 + 6 * place : 7 + 6 * place], values, 1e-5)
        line = known[f"{name}1"].directions
        mark = line.directions[line.attracts][0]
        assert np.abs(page.array("layer", f"mark_{name}") @ mark) == pytest.approx(1, abs=1e-6)
        cosine = abs(axes[0] @ mark)
        assert page.array("frame", f"head_cos_{name}")[0, 0] == pytest.approx(cosine, abs=1e-5)
        sentence = page.text("[data-view=attention] .sentence")
        told = re.search(rf"W_{name[0].upper()} has effective rank ([\d.]+) and \|cos\| ([\d.]+) with", sentence)
        assert number(told[1]) == pytest.approx(effective_rank(weights), rel=6e-3)
        assert number(told[2]) == pytest.approx(cosine, abs=6e-4)
    product = np.linalg.svd(run.weights("query1", 40)[0].T @ run.weights("key1", 40)[0], compute_uv=False)
    same(row[19:], product, 1e-5)
    model = run.model(40, settings.seeds)
    pattern = model.network.assemble(model.parameters).patterns(run.data(settings.seeds)[0][:1])[0][0]
    same(page.array("frame", "head_pattern"), pattern, 1e-5)
    assert page.state("frame.loss") == pytest.approx(loss_at(settings, 40), rel=1e-9)
    assert colours(page, "[data-view=attention] canvas") > 50


def test_the_pointer_tells_entries_and_singular_values(page):
    page.go(SMALL).reach(40)
    matrix, spot = page.array("frame", "head_value")[0], "[data-view=attention] canvas"
    page.point(spot, 12, 35)
    until(lambda: "W_V" in page.text("#tip"), "the tip")
    lines = [one.text for one in page.all("#tip div")]
    row, column = (int(part) for part in re.findall(r"\d+", lines[1]))
    assert number(lines[0].split(":")[1]) == pytest.approx(matrix[row - 1, column - 1], rel=6e-3)
    assert page.state("hover.unit") == row - 1  # the other pictures mark this row
    height = page.one(spot).rect["height"]
    page.point(spot, 100, 0.8 * height)
    until(lambda: "singular values" in page.text("#tip"), "the singular values")
    steps = page.js("const { step, length } = playground.state.spectra; return Array.from(step).slice(0, length)")
    step = min(steps, key=lambda known: abs(known - page.state("hover.step")))
    assert 0 <= step < 40
    page.point(spot, 100, 0.8 * height, click=True)
    until(lambda: page.step == step, "that moment")


def test_heads_are_looked_at_one_by_one(page):
    page.go(CONTEXT).reach(5)
    assert page.one("#setting-head").is_displayed()
    before = picture(page)
    page.choose("#setting-head", "2")
    until(lambda: picture(page) != before, "another picture")
    until(lambda: "Head 2: W_Q" in page.text("[data-view=attention] .sentence"), "the sentence of the head")
    until(lambda: page.hash.get("head") == "2", "the address to have the head")
    settings = Settings.from_text(page.settings)
    weights = trained(settings, 5).weights("query1", 5)[0]
    axes = settings.experiment().data.axes(settings.seeds)[[1, 0, 2]]
    cosine = np.abs(axes @ weights[1]) / np.linalg.norm(weights[1])
    page.js("playground.player.settle()")
    page.settle()
    expected = f"eigenvector {cosine.argmax() + 1}"
    until(lambda: expected in page.text("[data-view=attention] .sentence").split(";")[0], expected)
    told = re.search(r"\|cos\| ([\d.]+)", page.text("[data-view=attention] .sentence"))
    assert number(told[1]) == pytest.approx(cosine.max(), abs=6e-4)
    page.go(CONTEXT + "&head=3").settle()
    assert page.one("#setting-head").get_property("value") == "3"
    page.choose("#setting-data", "formula")
    until(lambda: page.settings["data"] == "formula", "a dense network")
    assert not page.settle().one("#setting-head").is_displayed()


@pytest.mark.parametrize(("data", "example"), [("sequences", "attn-stages"), ("context", "icl-staircase")])
def test_choosing_sequences_begins_with_the_figures_experiment_and_formula_leaves_it(page, data, example):
    page.go()
    page.choose("#setting-data", data)
    until(lambda: page.settings["data"] == data, data)
    assert page.settings == FIGURES[example]
    page.settle()
    check_initialization(page, page.state("opened.first"))
    assert page.one("#preset-figure").get_property("value") == example
    fields = {
        one: page.one(f"[data-field={one}]").is_displayed() for one in ("tokens", "heads", "rank", "width", "bias")
    }
    assert fields == {
        "tokens": True,
        "heads": True,
        "rank": data == "context",
        "width": data == "sequences",
        "bias": False,
    }
    page.choose("#setting-data", "formula")
    until(lambda: page.settings["data"] == "formula", "the formula")
    assert page.settings == Settings().to_text()
    check_initialization(page.settle())


@pytest.mark.parametrize("name", [name for name in FIGURES if name.startswith(("attn", "icl"))])
def test_an_example_of_attention_is_opened_and_trains(page, name):
    page.go()
    page.choose("#preset-figure", name)
    until(lambda: page.settings == FIGURES[name], name)
    check_initialization(page.settle(), page.state("opened.first"))
    loss = page.state("frame.loss")
    page.click("#play").played(30).click("#play").settle()
    assert page.state("frame.loss") <= loss
    assert page.notices == ""
    assert visible_views(page)[0] == "attention"


def test_pictures_that_make_no_sense_say_so(page):
    page.go("#width=20")
    until(lambda: page.text("#absent"), "what is not shown")
    assert "attention, as the network has no heads" in page.text("#absent")
    assert "attention" not in visible_views(page)
    page.go(SMALL)
    until(lambda: "kernels" in page.text("#absent"), "what is not shown")
    assert "attention" not in page.text("#absent")
    assert "sign of their label" in page.text("[data-view=output] .sentence")
    assert "not reduced" in page.text("[data-view=output] .sentence")
    assert "for dense networks" in page.text("[data-view=loss] .sentence")
    assert not page.one("[data-field=reduce]").is_displayed()
    page.go(CONTEXT)
    until(lambda: "level" in page.text("[data-view=loss] .sentence"), "the levels")
    assert "no lines are predicted" in page.text("[data-view=field] .sentence")
    assert all(colours(page, f"[data-view={view}] canvas") > 3 for view in visible_views(page))


def test_what_cannot_be_trained_says_so_at_its_field(page):
    page.go(SMALL)
    page.choose("#setting-optimizer", "normalised_gd")
    until(lambda: "neuron-normalised descent" in page.text("#setting-optimizer-fault"), "the reason")
    page.choose("#setting-optimizer", "adam")
    until(lambda: page.settings["optimizer"] == "adam", "Adam")
    until(
        lambda: "for gradient flow, not for Adam" in page.text("[data-view=field] .sentence"),
        "why no line is predicted",
    )
    until(lambda: "predicts no vectors" in page.text("[data-view=attention] .sentence"), "the sentence")


def test_the_exported_experiment_is_the_one_on_the_page(page):
    page.go(SMALL).reach(10)
    text = page.js("return playground.request({ do: 'export' }).then(({ python }) => python)")
    assert "RandomSequences(" in text
    assert "Attention(" in text
    space = {}
    exec(compile(text, "program", "exec"), space)
    same(page.array("frame", "head_query")[0], space["trajectory"].weights("query1", 10)[0])


def test_on_a_phone_nothing_sticks_out(page):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.go(SMALL).reach(20)
        sizes = page.js("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
        assert sizes[0] <= sizes[1] == 390
        assert page.one("[data-view=attention] canvas").rect["height"] > 800  # panels stand below each other
        assert colours(page, "[data-view=attention] canvas") > 50
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_recorded_tour_has_the_picture(tour):
    tour.go("#scene=attention", still=False)
    until(lambda: tour.state("layer.attention") is not None, "the layer")
    assert tour.js("return document.querySelector('.card.watched').dataset.view") == "attention"
    tour.key(" ").settle()
    tour.js("playground.seek(600)")
    until(lambda: (tour.step or 0) > 500, "a later moment")
    tour.settle()
    settings = Settings.from_text(tour.settings)
    run = trained(settings, tour.step)
    for name in ("query", "key", "value"):
        weights = run.weights(f"{name}1", tour.step)[0]
        same(tour.array("frame", f"head_{name}")[0], weights, 1e-3)  # a flow, and weights of 14 bits
    same(tour.weights, run.weights("value1", tour.step)[0], 1e-3)
    steps = tour.js("return Array.from(playground.state.spectra.step).slice(0, playground.state.spectra.length)")
    assert steps == tour.state("opened.steps")
    place = steps.index(tour.step)
    row = tour.js("const s = playground.state.spectra; return s.columns.map((name) => s[name][arguments[0]])", place)
    same(row[1:9], np.linalg.svd(run.weights("query1", tour.step)[0], compute_uv=False), 1e-3)
    tour.choose("#setting-layer", "key1")
    until(lambda: tour.state("layer.name") == "key1", "the keys")
    same(tour.settle().weights, run.weights("key1", tour.step)[0], 1e-3)
    assert colours(tour, "[data-view=attention] canvas") > 50
