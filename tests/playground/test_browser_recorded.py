"""A recording from a `file:` address: it plays without a server, and shows what the library computes."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import Keys, colours, until, visible_views
from PIL import Image
from recorded_page import CLOSE
from reference import same, weights_at

from condensation import Experiment, train
from condensation.measure import cosine_similarity, find_lines
from condensation.playground._presets import presets
from condensation.playground._settings import Settings

pytestmark = pytest.mark.browser
SCENES = {scene["name"]: scene for scene in presets()["scenes"]}
VIEWS = ["field", "orientation", "cosine", "loss", "lines", "output"]


def saved(downloads, act):
    """The file that something gives to the user."""
    for old in downloads.iterdir():
        old.unlink()
    act()
    kinds = (".png", ".svg", ".toml", ".py")
    (path,) = until(lambda: [p for p in downloads.iterdir() if p.suffix in kinds and p.stat().st_size], "the file")
    return path


def check_numbers(page):
    """What the page shows of its moment is what the library computes for its settings."""
    settings = Settings.from_text(page.settings)
    weights = weights_at(settings, page.step)
    close = 1e-3 if settings.optimizer == "flow" else CLOSE  # the integrator starts anew at each moment
    same(page.weights, weights, close)
    same(page.array("frame", "amplitude"), np.linalg.norm(weights, axis=1), close)
    off = np.abs(page.array("frame", "cos") / 127 - cosine_similarity(weights))
    assert off.max() < 0.5 / 127 + 3 * close
    same(page.array("frame", "xy"), weights @ page.array("layer", "basis").T, close)
    if settings.optimizer != "flow":
        lines = find_lines(weights)
        assert (page.state("frame.lines.count"), page.state("frame.lines.condensed")) == (lines.count, lines.condensed)
        assert page.state("frame.lines.k_eff") == pytest.approx(lines.k_eff, rel=1e-6)


# -- the tour


def test_it_opens_with_the_first_scene_and_plays(tour):
    tour.go(still=False).played(5)
    assert tour.text("#tour-card h2") == SCENES["condensation"]["title"]
    assert [*visible_views(tour)] == VIEWS
    assert all(colours(tour, f"[data-view={view}] canvas") > 3 for view in VIEWS)
    tour.key(" ").settle()
    check_numbers(tour)
    assert tour.text("#read-step") == str(tour.step)


def test_it_plays_to_its_end_and_again_from_its_beginning(tour):
    tour.go("#scene=reduction", still=False)
    tour.key("9")
    until(lambda: tour.state("frame.ended"), "the end")
    tour.settle()
    last = tour.step
    assert last == tour.state("opened.last")
    check_numbers(tour)
    tour.key("1", " ")
    until(lambda: tour.step < last and tour.js("return playground.player.playing"), "it to play again")
    tour.key(" ").settle()


@pytest.mark.parametrize("step", [0, 100, 250, 10**6])
def test_the_slider_goes_to_the_nearest_moment_and_its_numbers_are_those_of_train(tour, step):
    tour.go("#seed=0")
    steps = tour.state("opened.steps")
    script = """
        const scrub = document.querySelector("#scrub");
        scrub.value = String(Math.sqrt(Math.min(1, arguments[0] / arguments[1])));
        scrub.dispatchEvent(new Event("input"));
        scrub.dispatchEvent(new Event("change"));
    """
    tour.js(script, step, tour.state("opened.last"))
    nearest = min(steps, key=lambda known: abs(known - step))
    until(lambda: tour.step == nearest, f"step {nearest}")
    check_numbers(tour.settle())


def test_keys_go_from_moment_to_moment(tour):
    tour.go("#seed=0")
    steps = tour.state("opened.steps")
    tour.key(".").settle()
    assert tour.step == steps[1]
    tour.key(Keys.END).settle()
    assert tour.step == steps[-1]
    tour.key(Keys.ARROW_LEFT).settle()
    assert tour.step == steps[-2]
    tour.key(Keys.HOME).settle()
    assert tour.step == 0


def test_a_link_opens_the_same_moment_again(tour):
    tour.go("#scene=adam&step=300&optimizer=adam&rate=2e-05")
    check_numbers(tour)
    until(lambda: tour.hash.get("step") == str(tour.step), "the address")
    step, weights, fragment = tour.step, tour.weights, tour.driver.current_url.split("#")[1]
    tour.go(f"#{fragment}")
    assert tour.step == step
    np.testing.assert_array_equal(tour.weights, weights)


def test_the_pointer_finds_a_neuron_in_all_pictures_and_a_click_keeps_it(tour):
    tour.go("#seed=0&step=200")
    xy = tour.js(
        """
        const canvas = document.querySelector("[data-view=orientation] canvas");
        const r = canvas.getBoundingClientRect();
        const at = (x, y) => ({ clientX: r.left + x, clientY: r.top + y });
        const move = (x, y) => canvas.dispatchEvent(new PointerEvent("pointermove", at(x, y)));
        const found = {};
        for (let x = 0; x < r.width; x += 2) for (let y = 0; y < r.height; y += 2) {
          move(x, y);
          const { hover } = playground.state;
          if (hover?.unit !== undefined) (found[hover.unit] ??= []).push([x, y]);
        }
        const places = Object.values(found).sort((a, b) => b.length - a.length)[0];
        return [0, 1].map((k) => places.reduce((sum, place) => sum + place[k], 0) / places.length);
        """
    )
    tour.point("[data-view=orientation] canvas", *xy, click=True)
    unit = tour.state("hover.unit")
    assert f"neuron {unit + 1}" in tour.text("#tip")
    tour.point("h1", 5, 5)
    assert tour.state("hover.unit") == unit
    tour.key(Keys.ESCAPE)
    assert tour.state("hover") is None


def test_a_click_on_the_loss_goes_to_its_moment(tour):
    tour.go("#seed=0")
    box = tour.one("[data-view=loss] canvas").rect
    tour.point("[data-view=loss] canvas", 0.55 * box["width"], 0.5 * box["height"], click=True)
    until(lambda: tour.step > 0, "the moment")
    check_numbers(tour.settle())


def test_all_scenes_and_all_their_comparisons_are_recorded(tour):
    tour.go("#scene=condensation", still=False)
    for number, scene in enumerate(SCENES.values()):
        until(lambda scene=scene: tour.settings == scene["settings"], f"the settings of {scene['name']}")
        assert tour.text("#tour-card h2") == scene["title"]
        for button, other in zip(tour.all("[data-compare]"), scene["compare"], strict=True):
            button.click()
            until(lambda other=other: tour.settings == other["settings"], other["label"])
            tour.played(1)
            assert button.get_attribute("aria-pressed") == "true"
        assert tour.notices == ""
        if number + 1 < len(SCENES):
            tour.click("#tour-next")
    tour.key(" ").settle()


@pytest.mark.parametrize(("label", "count"), [("tanh: p = 1", 1), ("x tanh x: p = 2", 2), ("x² tanh x: p = 3", 3)])
def test_what_a_scene_says_comes_true(tour, label, count):
    tour.go("#scene=multiplicity", still=False)
    key = tour.state("opened.key")
    next(button for button in tour.all("[data-compare]") if button.text == label).click()
    until(lambda: tour.state("opened.key") != key and tour.state("layer") is not None, label)
    tour.js("playground.seek(400 * 1e-4 / arguments[0])", float(tour.settings["rate"]))
    tour.settle()
    assert (tour.state("frame.lines.condensed"), tour.state("frame.lines.count")) == (True, count)
    assert tour.state("layer.count") == tour.state("frame.poly.order") == count
    assert f"{count} / {count}" in tour.text("#read-lines")
    check_numbers(tour)


def test_the_list_opens_what_was_recorded(tour):
    tour.go("#seed=0")
    own = SCENES["beyond"]["compare"][0]
    key = tour.state("opened.key")
    button = next(one for one in tour.all("[data-library]") if own["label"] in one.text)
    tour.js("arguments[0].scrollIntoView()", button)
    button.click()
    until(lambda: tour.state("opened.key") != key, "another training")
    tour.played(1).key(" ").settle()
    assert tour.settings == own["settings"]
    check_numbers(tour)


# -- what a recording cannot do


def test_settings_are_shown_but_cannot_be_changed_and_the_page_says_why(tour):
    tour.go("#seed=0")
    assert tour.one("#setting-formula").get_attribute("value") == Settings().formula
    assert not any(field.is_enabled() for field in tour.all(".settings input, .settings select, .settings button"))
    assert "condensation play" in tour.text(".note")
    assert "cannot be changed" in tour.text(".note")
    assert not tour.one("#dice").is_enabled()
    assert "condensation play" in tour.one("#dice").get_attribute("title")
    assert not tour.one("#reduce-auto").is_enabled()
    key = tour.state("opened.key")
    tour.key("n").settle()
    assert tour.state("opened.key") == key
    assert tour.one("#setting-layer").is_enabled()


def test_a_link_to_what_was_not_recorded_says_so_and_opens_the_first_scene(tour):
    tour.go("#width=33")
    assert "condensation play" in tour.notices
    assert tour.settings == SCENES["condensation"]["settings"]
    tour.go("#scene=nothing")
    assert "no scene nothing" in tour.notices


@pytest.mark.parametrize("message", ["{do: 'sweep', name: 'x'}", "{do: 'cell', name: 'x', cell: 0}", "{do: 'wish'}"])
def test_other_requests_are_refused_in_a_sentence(tour, message):
    tour.go("#seed=0")
    assert "condensation play" in tour.js(f"return playground.request({message}).catch((error) => error.message)")


# -- exports


def test_pictures_are_exported(tour, downloads):
    tour.go("#seed=0&step=200")
    path = saved(downloads, lambda: tour.click("#export").click("[data-export=png]"))
    assert path.name == f"condensation-step{tour.step}.png"
    picture = Image.open(io.BytesIO(path.read_bytes()))
    assert len(picture.convert("RGB").getcolors(2**24)) > 50
    text = saved(downloads, lambda: tour.click("#export").click("[data-export=svg]")).read_text()
    said = " ".join("".join(one.itertext()) for one in ElementTree.fromstring(text).iter())
    assert f"step {tour.step}" in said
    path = saved(downloads, lambda: tour.click("[data-view=loss] .save"))
    assert path.name == f"condensation-loss-step{tour.step}.png"


def test_the_exported_experiment_trains_to_the_weights_on_the_page(tour, downloads):
    tour.go("#seed=0&step=60")
    path = saved(downloads, lambda: tour.click("#export").click("[data-export=toml]"))
    experiment = Experiment.from_toml(path.read_text())
    assert experiment.steps == tour.step
    same(tour.weights, train(experiment, seeds=[0]).weights("dense1", tour.step, 0), CLOSE)
    program = saved(downloads, lambda: tour.click("#export").click("[data-export=python]")).read_text()
    assert f"steps={tour.step}" in program
    compile(program, "program", "exec")
