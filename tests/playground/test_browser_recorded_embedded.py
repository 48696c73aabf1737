"""A recording inside of another page, on a phone, and with saved runs in it."""

import pytest
from browser import Keys, until, visible_views
from recorded_page import CLOSE, requests
from recordings import Opened
from reference import same
from saved_runs import watched_weights

from condensation.playground._presets import presets
from condensation.runs import load_run

pytestmark = pytest.mark.browser
SCENES = [scene["name"] for scene in presets()["scenes"]]
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


def is_seen(page, selector):
    return any(element.is_displayed() for element in page.all(selector))


def test_embedded_it_shows_less(tour):
    tour.go("?embed", still=False).played(1)
    assert not any(is_seen(tour, one) for one in ("h1", "#share", "#theme", "#help", "#panel"))
    assert all(is_seen(tour, one) for one in ("#play", "#scrub", "#tour", "#export", "#fold", "#full", "#tour-card"))
    tour.click("#fold")
    assert is_seen(tour, "#panel")
    tour.key(" ").settle()


def test_what_hide_names_is_away_and_its_keys_do_nothing(tour):
    names = {"settings": "#fold", "tour": "#tour-card", "seed": "#dice", "speed": ".speed", "numbers": ".readout"}
    names |= {"cosine": "[data-view=cosine]", "export": ".menu", "full": "#full"}
    tour.go(f"?embed&hide={','.join(names)}#scene=adam&step=100")
    assert not any(is_seen(tour, selector) for selector in names.values())
    assert not is_seen(tour, "#panel")
    assert not is_seen(tour, "#tour")
    assert is_seen(tour, "[data-view=field]")
    tour.key("c", "t").settle()
    assert not is_seen(tour, "#panel")
    assert tour.state("frame.step") > 0
    tour.go("?hide=player,slider#seed=0")
    assert is_seen(tour, "h1")
    tour.key(" ", ".", Keys.END).settle()
    assert tour.step == 0


def test_hide_names_that_are_none_are_told(tour):
    tour.go("?hide=setings, <b>x</b>,constructor#seed=0")
    assert "There is no setings, <b>x</b>, constructor to hide." in tour.notices
    assert "settings" in tour.notices


@pytest.mark.parametrize("attributes", ["", 'sandbox="allow-scripts"'])
def test_in_a_frame_of_another_page_it_plays_and_leaves_that_page_where_it_is(tour, tour_file, attributes):
    around = tour_file.with_name("lecture.html")
    frame = f'<iframe {attributes} src="index.html?embed&hide=settings#scene=beyond" width="700" height="500"></iframe>'
    around.write_text(
        f"<!doctype html><p>A lecture</p><div style='height: 600px'></div>{frame}<div style='height: 3000px'>"
    )
    tour.driver.get(around.as_uri())
    tour.driver.switch_to.frame(0)
    until(lambda: tour.js("return window.playground && playground.frames > 20"), "it to play")
    assert tour.js("return document.querySelector('.card.watched').dataset.view") == "lines"
    assert tour.js("return document.querySelector('.page').scrollTop + document.querySelector('main').scrollTop") > 0
    tour.driver.switch_to.default_content()
    assert tour.js("return scrollY") == 0
    tour.driver.get("about:blank")
    requests(tour.driver)  # those of the page around


def test_on_a_phone_the_pictures_come_before_the_settings(tour):
    tour.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    tour.go("#seed=0&step=100")
    assert not is_seen(tour, "#panel")
    tour.click("#fold")
    until(lambda: is_seen(tour, "#panel"), "the settings")
    place = "return document.querySelector(arguments[0]).getBoundingClientRect()"
    pictures, panel = tour.js(place, "#cards"), tour.js(place, "#panel")
    assert pictures["bottom"] <= panel["top"] + 1
    assert panel["top"] < PHONE["height"] - 50  # the button goes there
    sizes = tour.js("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
    assert sizes[0] <= sizes[1] == PHONE["width"]
    script = """
        return [...document.querySelectorAll("header *, .panel *, main *, .tour *")].filter((e) => {
          const r = e.getBoundingClientRect();
          return r.width && r.height && r.right > innerWidth + 1;
        }).map((e) => e.tagName + "#" + e.id + "." + e.className);
    """
    assert tour.js(script) == []
    assert all(is_seen(tour, one) for one in ("#play", "#scrub", "#tour"))


def test_on_a_phone_the_tour_leaves_room_for_its_picture(tour):
    tour.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    for name in SCENES:
        tour.go(f"#scene={name}", still=False).played(1)
        place = "return document.querySelector(arguments[0]).getBoundingClientRect()"
        bar, card, tour_card = (tour.js(place, one) for one in (".bar", ".card.watched", "#tour-card"))
        seen = min(card["bottom"], tour_card["top"]) - max(card["top"], bar["bottom"])
        assert seen > 200, name
        assert tour.one("#tour-next").is_displayed()
    tour.key(" ").settle()


# -- saved runs


def test_a_saved_run_is_shown_without_a_server(runs, folders):
    runs.go()
    run = load_run(folders / "dense")
    assert runs.state("opened.seeds") == ["3", "8"]
    for step in run.saved.tolist():
        runs.reach(step)
        same(runs.weights, run.weights("dense1", step)[0], CLOSE)
    key = runs.state("opened.key")
    runs.key("n").reopened(key)
    same(runs.weights, run.weights("dense1", runs.step)[1], CLOSE)
    assert "condensation play" in runs.text(".note")
    assert not runs.one("#leave").is_enabled()


def test_watched_units_and_kernels_and_filters(runs, folders):
    runs.go("#run=watched").reach(2)
    same(runs.weights, watched_weights(2), CLOSE)
    runs.go("#run=digits").reach(10)
    run = load_run(folders / "digits")
    name = runs.state("layerName")
    assert "kernels" in visible_views(runs)
    same(runs.weights, run.weights(name, 10, view="kernel")[0], CLOSE)
    runs.choose("#setting-view", "filter").settle()
    until(lambda: runs.state("layer.view") == "filter", "the filters")
    same(runs.settle().weights, run.weights(name, 10, view="filter")[0], CLOSE)


def test_a_sweep_is_listed_and_cannot_be_opened(runs):
    runs.go()
    assert not runs.one("[data-library=swept]").is_enabled()
    assert "condensation play" in runs.text(".library .problem")
    assert not runs.one("#tour").is_displayed()


def test_a_watched_run_has_no_experiment_to_export(runs):
    runs.go("#run=watched").click("#export").click("[data-export=toml]")
    until(lambda: "no experiment" in runs.notices, "the reason")


def test_the_recording_in_the_page_is_the_one_that_was_made(tour_file):
    recording = Opened(tour_file.read_text(encoding="utf-8"))
    assert len(recording.hello["recorded"]) == len(recording.hello["library"]) > 10
