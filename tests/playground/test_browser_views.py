"""Pointing at pictures, going by keys, light and dark, and room on screens of several sizes."""

import numpy as np
import pytest
from browser import Keys, colours, number, until, visible_views
from reference import same, weights_at

from condensation.measure import cosine_similarity
from condensation.playground._settings import Settings

pytestmark = pytest.mark.browser


def found(page, view, wish):
    """Sweeps the pointer over a picture until what is hovered fits; gives what is hovered and what the tip says."""
    box = page.js(
        "const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.width, r.height]",
        f"[data-view={view}] canvas",
    )
    for x, y in wish(*box):
        page.point(f"[data-view={view}] canvas", x, y)
        hover = page.state("hover")
        if hover:
            until(lambda: page.one("#tip").is_displayed(), "the tip")
            return hover, page.text("#tip"), (x, y)
    raise AssertionError(f"nothing is found in {view}")


def places(width, height):
    """The middle first, then around it."""
    yield width / 2, height / 2
    for radius in np.linspace(0.05, 0.45, 12):
        for angle in np.linspace(0, 6, 9):
            yield width * (0.45 + radius * np.cos(angle) / 1.5), height * (0.5 + radius * np.sin(angle))


@pytest.mark.parametrize("view", ["field", "orientation"])
def test_a_neuron_under_the_pointer_tells_its_numbers(page, view):
    page.go("#width=40").reach(10)
    hover, tip, place = found(page, view, places)
    unit = hover["unit"]
    assert f"neuron {unit + 1}" in tip
    lines = [one.text for one in page.all("#tip div")]
    weights = weights_at(Settings(width=40), 10)
    w = next(line for line in lines if line.startswith("w ="))
    told = [number(part) for part in w.split("(")[1].rstrip(")").split(", ")]
    np.testing.assert_allclose(told, weights[unit], rtol=6e-3)
    amplitude = next(line for line in lines if line.startswith("amplitude")).split("=")[1]
    assert number(amplitude.strip()) == pytest.approx(np.linalg.norm(weights[unit]), rel=6e-3)
    # the neuron is marked in every picture, and is let go when the pointer leaves
    without = page.js("return document.querySelector('[data-view=cosine] canvas').toDataURL()")
    page.point("h1", 5, 5)
    until(lambda: page.state("hover") is None, "the neuron to be let go")
    assert not page.one("#tip").is_displayed()
    until(
        lambda: page.js("return document.querySelector('[data-view=cosine] canvas').toDataURL()") != without,
        "the other pictures to be painted without it",
    )
    page.point(f"[data-view={view}] canvas", *place, click=True)  # a click keeps it
    page.point("h1", 5, 5)
    assert page.state("hover.unit") == unit
    page.key(Keys.ESCAPE)
    assert page.state("hover") is None


def test_a_pair_under_the_pointer_in_the_cosines(page):
    page.go("#width=40").reach(10)
    hover, tip, _ = found(page, "cosine", lambda w, h: [(0.3 * w, 0.35 * h)])
    known = cosine_similarity(weights_at(Settings(width=40), 10))[hover["unit"], hover["other"]]
    assert f"neuron {hover['unit'] + 1}" in tip
    assert f"neuron {hover['other'] + 1}" in tip
    assert number(tip.split("cosine")[1].strip()) == pytest.approx(known, abs=0.01)
    assert hover["unit"] != hover["other"]


@pytest.mark.parametrize("view", ["loss", "lines"])
def test_a_click_on_a_moment_goes_there(page, view):
    page.go()
    page.key("3", " ").played(60).key(" ").settle()
    last = page.step
    hover, tip, place = found(page, view, lambda w, h: [(0.55 * w, 0.5 * h)])
    assert 0 < hover["step"] < last
    assert "step" in tip
    page.point(f"[data-view={view}] canvas", *place, click=True)
    until(lambda: page.step != last, "the moment")
    page.settle()
    assert abs(page.step - hover["step"]) <= 5
    same(page.weights, weights_at(Settings(), page.step))


def test_arrow_keys_go_from_neuron_to_neuron(page):
    page.go("#width=12")
    page.js("document.querySelector('[data-view=field] canvas').focus()")
    for unit in (0, 1, 2):
        page.key(Keys.ARROW_RIGHT)
        assert page.state("hover.unit") == unit
    assert "neuron 3" in page.text("#tip")
    assert "neuron 3" in page.text("#speaker")
    page.key(Keys.ARROW_LEFT)
    assert page.state("hover.unit") == 1
    assert page.step == 0  # the player did not take them


def test_a_card_can_fill_the_page(page):
    page.go()
    page.click("[data-view=loss] .enlarge")
    until(lambda: not page.one("[data-view=field]").is_displayed(), "one picture alone")
    assert page.one("[data-view=loss]").is_displayed()
    until(lambda: colours(page, "[data-view=loss] canvas") > 3, "its picture")
    page.key(Keys.ESCAPE)
    until(lambda: page.one("[data-view=field]").is_displayed(), "all pictures")


def test_tab_reaches_everything_in_order(page):
    page.go()
    reached = []
    for _ in range(90):
        page.key(Keys.TAB)
        name, outlined = page.js(
            """
            const e = document.activeElement, s = getComputedStyle(e);
            const view = e.closest("[data-view]")?.dataset.view;
            const name = e.id || e.dataset.setting || `${view} ${e.tagName.toLowerCase()}`;
            return [name, s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none"];
            """
        )
        reached.append(name)
        assert outlined or name.startswith(("BODY", "undefined")), f"{name} has the focus and does not show it"
        if "output canvas" in reached:
            break
    order = ["skip", "play", "scrub", "setting-formula", "layer1", "setting-std_w", "setting-optimizer", "setting-seed"]
    order += [f"{view} canvas" for view in visible_views(page)]
    assert [reached.index(name) for name in order] == sorted(reached.index(name) for name in order)


def test_the_page_is_played_by_keys_alone(page):
    page.go()
    for _ in range(10):
        page.key(Keys.TAB)
        if page.js("return document.activeElement.id") == "play":
            break
    page.key(" ").played(15).key(" ").settle()
    same(page.weights, weights_at(Settings(), page.step))


def test_help_opens_and_closes(page):
    page.go()
    page.key("?")
    until(lambda: page.one("#keys").is_displayed(), "the help")
    step = page.step
    page.key(".")  # belongs to the dialog
    page.key(Keys.ESCAPE)
    until(lambda: not page.one("#keys").is_displayed(), "the help to close")
    assert page.step == step
    page.click("#help")
    assert "new initialization" in page.text("#keys")
    page.click("#keys button")
    assert not page.one("#keys").is_displayed()


def test_keys_do_nothing_while_the_user_types(page):
    page.go()
    page.one("#setting-formula").send_keys(" .n?t1")
    assert page.step == 0
    assert not page.js("return playground.player.going")
    assert not page.one("#keys").is_displayed()
    assert page.settings["seed"] == "0"


def test_settings_fold_away(page):
    page.go()
    wide = page.one("[data-view=field] canvas").rect["width"]
    page.key("c")
    until(lambda: not page.one("#panel").is_displayed(), "the settings to go")
    assert page.one("#fold").get_attribute("aria-expanded") == "false"
    until(lambda: page.one("[data-view=field] canvas").rect["width"] > wide, "the pictures to grow")
    page.click("#fold")
    until(lambda: page.one("#panel").is_displayed(), "the settings to come back")


def ground(page):
    return page.js("return getComputedStyle(document.body).backgroundColor")


def test_light_and_dark(page):
    page.go()
    page.js("localStorage.clear()")
    page.go()
    first, colour = page.state("theme"), ground(page)
    picture = page.js("return document.querySelector('[data-view=loss] canvas').toDataURL()")
    page.click("#theme")
    other = {"light": "dark", "dark": "light"}[first]
    assert page.state("theme") == other == page.js("return document.documentElement.dataset.theme")
    assert ground(page) != colour
    until(
        lambda: page.js("return document.querySelector('[data-view=loss] canvas').toDataURL()") != picture, "it drawn"
    )
    page.driver.refresh()
    until(lambda: page.js("return window.playground && playground.frames > 0"), "the page again")
    assert page.state("theme") == other
    page.settle()
    page.js("localStorage.clear()")
    page.go(f"#theme={first}")
    assert page.state("theme") == first


@pytest.mark.parametrize("size", [(1024, 768), (1440, 900), (1920, 1080)])
@pytest.mark.parametrize("fragment", ["", "#scene=multiplicity&step=5", "#data=points&points=1,1,1;-1,-1,-1&width=20"])
def test_nothing_sticks_out_at_the_side(page, size, fragment):
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.go(fragment)
        assert page.js("return innerWidth") == size[0]
        sizes = page.js("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
        assert sizes[0] <= sizes[1]
        script = """
            const wide = [...document.querySelectorAll("header *, .panel *, main *, .tour *")];
            const out = wide.filter((e) => {
              const r = e.getBoundingClientRect();
              return r.width && r.height && r.right > innerWidth + 1 && getComputedStyle(e).visibility !== "hidden";
            });
            return out.map((e) => e.tagName + "#" + e.id + "." + e.className);
        """
        assert page.js(script) == []
        assert all(page.one(f"#{name}").is_displayed() for name in ("play", "scrub", "export", "help"))
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
