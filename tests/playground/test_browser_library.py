"""The user's own runs and sweeps, opened in the page, against the files themselves."""

import shutil

import numpy as np
import pytest
from browser import Keys, Page, Select, number, served, until, visible_views
from reference import same
from saved_runs import AXES, watched_weights

from condensation import At, load_run, train
from condensation.playground._settings import Settings
from condensation.sweeps import open_sweep

pytestmark = pytest.mark.browser


def open_entry(page, name):
    page.click(f"[data-library={name}]")
    until(lambda: page.state("source.name") == name, name)
    return page.settle()


def test_the_shelf_lists_what_the_command_was_given(page):
    page.go()
    assert {one["name"]: one["kind"] for one in page.state("hello.library")} == {
        "dense": "run",
        "digits": "run",
        "watched": "run",
        "swept": "sweep",
    }


def test_bad_runs_and_hostile_names_are_shown_as_text_beside_the_good_one(driver, folders, tmp_path):
    hostile = "<img src=x onerror='window.harmed = 1'>"
    for name in (hostile, "gone", "good"):
        shutil.copytree(folders / "dense", tmp_path / name)
    (tmp_path / hostile / "run.json").write_text('{"a": "<script>window.harmed = 1</script>"}')
    with served(str(tmp_path)) as server:
        page = Page(driver, server.address)
        page.go()
        rows = [row.text for row in page.all("ul.library li")]
        assert hostile in rows[0]
        assert "damaged" in rows[0]
        assert len(rows) == 3
        assert not any("damaged" in row for row in rows[1:])
        page.all("ul.library button")[0].click()
        until(lambda: "damaged" in page.notices, "the reason")
        open_entry(page, "good")
        open_entry(page, "gone")
        shutil.rmtree(tmp_path / "gone")  # while it is shown
        page.key(Keys.END)
        until(lambda: page.step == 40, "the end")
        flip = bytearray(next((tmp_path / "good").glob("*.safetensors")).read_bytes())
        flip[-9] ^= 1
        next((tmp_path / "good").glob("*.safetensors")).write_bytes(flip)
        page.click("[data-library=good]")
        until(lambda: "damaged" in page.notices, "the reason")
        page.go()
        assert ["damaged" in row.text for row in page.all("ul.library li")] == [True, False, True]
        assert page.js("return [window.harmed ?? null, document.querySelectorAll('img').length]") == [None, 0]
        page.errors()
        driver.get("about:blank")


def test_a_saved_run_is_scrubbed_and_its_seeds_are_switched(page, folders):
    run = load_run(folders / "dense")
    page.go()
    open_entry(page, "dense")
    assert page.settings is None
    assert not page.one("#setting-formula").is_displayed()
    steps = [int(step) for step in run.saved]
    assert page.state("opened.steps") == steps == [0, 10, 20, 30, 40]
    for step in (10, 20):  # one saved moment each
        page.key(".")
        until(lambda step=step: page.step == step, f"step {step}")
    same(page.settle().weights, run.weights(1, 20, 3))
    page.choose("#run-seed", "1")
    until(lambda: page.state("opened.seed") == 1, "the other seed")
    until(lambda: page.step == 20, "the same step")
    same(page.settle().weights, run.weights(1, 20, 8))
    for key, step in ((Keys.END, 40), (Keys.ARROW_LEFT, 30), (Keys.HOME, 0)):
        page.key(key)
        until(lambda step=step: page.step == step, f"step {step}")
        same(page.settle().weights, run.weights(1, step, 8))
        loss = run.loss[1, list(run.recorded).index(step)]
        assert page.state("frame.loss") == pytest.approx(loss, rel=1e-9)
    page.key(" ")
    until(lambda: page.step == 40 and not page.js("return playground.player.going"), "the end, played to")
    until(lambda: page.hash == {"run": "dense", "seed": "1", "step": "40"}, "the address")
    fragment = page.driver.current_url.split("#")[1]
    page.go(f"#{fragment}")
    until(lambda: page.step == 40, "the link")
    same(page.settle().weights, run.weights(1, 40, 8))
    page.click("#leave")
    until(lambda: page.settings is not None, "a new training")
    assert page.settle().one("#setting-formula").is_displayed()


def test_quick_steps_in_a_saved_run_are_not_lost(page):
    page.go("#run=dense")
    page.key(*"...")
    until(lambda: page.step == 30, "three moments on", 5)
    page.settle().key(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    until(lambda: page.step == 10, "two moments back", 5)


def test_a_run_of_a_convolution_shows_its_kernels(page, folders):
    run = load_run(folders / "digits")
    page.go()
    open_entry(page, "digits")
    until(lambda: "kernels" in visible_views(page), "the kernels")
    assert "output" in visible_views(page)
    page.key(Keys.END)
    until(lambda: page.step == 10, "the end")
    for view in ("filter", "kernel"):
        page.choose("#setting-view", view)
        until(lambda view=view: page.state("layer.view") == view, view)
        same(page.settle().weights, run.weights("conv1", 10, view=view)[0])
    assert page.state("frame.accuracy") is not None
    assert page.text("#read-accuracy").endswith("%")


def test_a_watched_run_is_shown_without_a_prediction(page):
    page.go()
    open_entry(page, "watched")
    assert "watched" in page.state("layer.why")
    assert "output" not in visible_views(page)
    for step in range(1, 4):
        page.key(".")
        until(lambda step=step: page.step == step, f"step {step}")
        same(page.settle().weights, watched_weights(step))
        assert page.state("frame.loss") == pytest.approx(1 / (1 + step))
    assert page.state("frame.lines.count") >= 1
    page.click("#export")
    page.click("[data-export=toml]")
    until(lambda: "watched run has no experiment" in page.notices, "the sentence that there is nothing to export")


def test_a_sweep_is_a_map_whose_cells_are_trained(page, folders):
    table = open_sweep(folders / "swept")
    page.go()
    page.click("[data-library=swept]")
    until(lambda: page.all("#map canvas"), "the map")
    quantity = Select(page.one("[data-map=quantity]")).first_selected_option.text
    answer = page.js(
        "return playground.request({do: 'sweep', name: 'swept'}).then((m) => [[...m.arrays.values], m.shapes.values, "
        "[...m.arrays.cells], m.x, m.y, m.quantity])"
    )
    values, shape, cells, x, y, shown = answer
    assert (x, y, shown) == (*AXES, quantity)
    cells = np.reshape(cells, shape)
    known, xs, ys = table.map(quantity, x, y)
    same(np.reshape(values, shape), known)
    made = list(table.sweep.cells())
    for column, row in ((2, 0), (0, 1)):
        value = choose_cell(page, xs, ys, column, row)
        assert value == pytest.approx(known[row, column], rel=6e-3)
        cell = int(cells[row, column])
        until(lambda cell=cell: page.state("source.cell") == cell, "the cell")
        page.played(1).key(" ").settle()  # it plays by itself
        assert page.state("opened.fingerprint") == made[cell].fingerprint
        run = train(made[cell].experiment.replace(steps=page.step, save=At((page.step,))), seeds=[table.sweep.seeds[0]])
        same(page.weights, run.weights(1, page.step)[0])
    other = "dense1.k_eff"
    page.choose("[data-map=quantity]", other)
    until(lambda: Select(page.one("[data-map=quantity]")).first_selected_option.text == other, "the other quantity")
    page.click("[aria-label='Close the map']")
    until(lambda: not page.all("#map canvas"), "the map to go")
    until(lambda: page.settings == Settings().to_text(), "a training by the settings")
    page.settle()


def choose_cell(page, xs, ys, column, row):
    """Points at the map until the tip names the cell, and clicks there; gives the value that the tip tells."""
    box = page.js("const r = document.querySelector('#map canvas').getBoundingClientRect(); return [r.width, r.height]")
    for x in np.linspace(0.15, 0.85, 8):
        for y in np.linspace(0.8, 0.2, 4):
            page.point("#map canvas", x * box[0], y * box[1])
            told = [one.text for one in page.all("#tip div")]
            values = [number(one.split(" = ")[1]) for one in told if " = " in one]
            if values == [pytest.approx(xs[column]), pytest.approx(ys[row])]:
                page.point("#map canvas", x * box[0], y * box[1], click=True)
                return number(told[-1].split(": ")[1])
    raise AssertionError(f"the map has no cell {column}, {row}")
