"""The page as it comes, and its player, in a real Chromium: numbers held against ``train`` and the measures."""

import numpy as np
import pytest
from browser import ActionChains, Keys, colours, until, visible_views
from reference import check_initialization, loss_at, same, weights_at

from condensation import find_lines
from condensation.playground._settings import Settings
from condensation.prediction import predict

pytestmark = pytest.mark.browser


def check_moment(page, settings=None):
    """The weights and the loss shown are those of ``train`` at the step shown."""
    settings = settings or Settings.from_text(page.settings)
    step = page.step
    same(page.weights, weights_at(settings, step))
    assert page.state("frame.loss") == pytest.approx(loss_at(settings, step), rel=1e-9)
    return step


def test_the_first_picture_is_the_librarys_start(page):
    page.go()
    settings = check_initialization(page)
    assert settings == Settings()
    assert page.settings == Settings().to_text()
    lines = find_lines(weights_at(settings, 0))
    shown = page.data
    assert shown["step"] == "0"
    assert float(shown["loss"]) == pytest.approx(loss_at(settings, 0), rel=1e-9)
    assert int(shown["count"]) == lines.count
    assert float(shown["keff"]) == pytest.approx(lines.k_eff)
    known = predict(settings.experiment(), settings.seeds)["dense1"].directions
    assert int(shown["predicted"]) == known.attracts.sum() == page.state("layer.count")
    same(page.array("layer", "lines"), known.directions)
    np.testing.assert_array_equal(page.array("layer", "attracts").any(axis=1), known.attracts)
    assert page.text("#read-step") == "0"
    assert not lines.condensed
    assert page.text("#read-lines") == f"– / {known.attracts.sum()}"


def test_no_picture_is_blank(page):
    page.go()
    assert visible_views(page) == ["field", "orientation", "cosine", "loss", "lines", "output"]
    for name in visible_views(page):
        assert colours(page, f"[data-view={name}] canvas") > 3, name
        assert page.text(f"[data-view={name}] .sentence")


@pytest.mark.parametrize("by", ["button", "space"])
def test_played_and_paused_it_shows_what_train_gives(page, by):
    page.go()
    toggle = (lambda: page.click("#play")) if by == "button" else (lambda: page.key(" "))
    toggle()
    page.played(25)
    assert page.one("#play").get_attribute("aria-label") == "Pause"
    toggle()
    page.settle()
    assert page.one("#play").get_attribute("aria-label") == "Play"
    step = check_moment(page)
    assert page.data["step"] == page.text("#read-step") == str(step)


@pytest.mark.parametrize("by", ["button", ".", Keys.ARROW_RIGHT])
def test_one_step_is_one_step(page, by):
    page.go()
    for step in (1, 2, 3):
        page.click("#step") if by == "button" else page.key(by)
        until(lambda step=step: page.step == step, f"step {step}")
    page.settle()
    assert check_moment(page) == 3


def test_quick_steps_are_not_lost(page):
    page.go()
    page.key(*"....")
    until(lambda: page.step == 4, "step 4")
    assert page.settle().step == 4


@pytest.mark.parametrize("keys", [Keys.HOME + " ", " " + Keys.HOME])
def test_quick_keys_do_what_they_say_one_after_the_other(page, keys):
    page.go().reach(30)
    page.key(*keys)
    if keys[0] == Keys.HOME:  # to the start, and play from there
        until(lambda: page.js("return playground.player.going"), "it to play", 5)
        page.key(" ").settle()
    else:
        until(lambda: page.step == 0, "step 0", 5)
        assert not page.js("return playground.player.going")
    page.settle()
    check_moment(page)


def frames_of(page, count):
    """Steps between the moments that were played, but for the first, which find out how long a step takes."""
    page.key(" ")
    until(lambda: page.js("return playground.state.curve.length") > count, f"{count} moments")
    page.key(" ")
    page.settle()
    curve = page.js("const { curve } = playground.state; return Array.from(curve.step.subarray(0, curve.length))")
    return np.diff(curve)[3:].tolist()


def test_the_speed_is_steps_a_frame(page):
    page.go()
    page.key("3")
    assert page.text("#speed-text") == "5 / frame"
    assert set(frames_of(page, 9)) == {5}
    page.go()
    page.js("document.querySelector('#speed').focus()")
    page.one("#speed").send_keys(Keys.HOME, Keys.ARROW_RIGHT * 8)
    speed = round(5000 ** (8 / 100))
    assert page.text("#speed-text") == f"{speed} / frame"
    assert set(frames_of(page, 9)) == {speed}
    until(lambda: page.hash.get("speed") == str(speed), "the address to have the speed")


def test_rewinding_gives_the_same_start_and_the_same_way(page):
    page.go()
    first = page.weights
    page.key("3", " ").played(40).key(" ").settle()
    last, far = page.step, page.weights
    for back in (lambda: page.key(Keys.HOME), lambda: page.click("#rewind")):
        back()
        until(lambda: page.step == 0, "step 0")
        page.settle()
        np.testing.assert_array_equal(page.weights, first)
        assert page.state("frame.end") == last
        page.key(Keys.END)
        until(lambda: page.step == last, "the latest moment")
        np.testing.assert_array_equal(page.settle().weights, far)
    page.key(Keys.ARROW_LEFT)
    until(lambda: page.step == last - 5, "the moment before")
    page.settle()
    check_moment(page)
    page.key(Keys.HOME).settle()
    page.key(" ").played(last).key(" ").settle()  # through what is known, and on
    check_moment(page)


def test_the_scrubber_goes_to_known_moments(page):
    page.go()
    page.key("3", " ").played(60).key(" ").settle()
    known = page.js("const { curve } = playground.state; return Array.from(curve.step.subarray(0, curve.length))")
    box = page.one("#scrub").rect
    for share in (0.3, 0.6):
        page.point("#scrub", share * box["width"], box["height"] / 2, click=True)
        until(lambda: page.js("return playground.player.wish") is None, "the step")
        page.settle()
        horizon = 100 if known[-1] <= 100 else 200
        wish = horizon * share**2
        assert page.step in known
        assert abs(page.step - wish) < 0.1 * horizon
        check_moment(page)
    page.one("#scrub").send_keys(Keys.END)
    until(lambda: page.step == known[-1], "the end by a key on the scrubber")
    page.one("#scrub").send_keys(Keys.ARROW_LEFT)
    until(lambda: page.step == known[-2], "the moment before by a key on the scrubber")


def test_the_scrubber_is_dragged(page):
    page.go()
    page.key("3", " ").played(60).key(" ").settle()
    last, scrub = page.step, page.one("#scrub")
    width = scrub.rect["width"]
    drag = ActionChains(page.driver, duration=20).move_to_element_with_offset(scrub, 0, 0).click_and_hold()
    for _ in range(6):
        drag.move_by_offset(round(-0.05 * width), 0)
    drag.release().perform()
    until(lambda: page.step < 0.2 * last, "an early moment")
    assert check_moment(page.settle()) > 0
    page.key(Keys.END)  # the keys belong to the player again
    until(lambda: page.step == last, "the latest moment")


def test_far_ahead_is_trained_to(page):
    page.go().reach(150)
    assert check_moment(page) == 150
    page.point("#scrub", page.one("#scrub").rect["width"] - 12, 8, click=True)
    until(lambda: page.step > 150, "more to be trained")
    until(lambda: page.js("return playground.player.wish") is None, "the step to be reached")
    assert check_moment(page.settle()) > 170
