"""The guided tour: every scene plays what it says, and what it claims comes true before the user's eyes."""

import numpy as np
import pytest
from browser import Keys, until
from reference import check_initialization, initial_model, same, weights_at

from condensation.playground._presets import presets
from condensation.playground._settings import Settings

pytestmark = pytest.mark.browser
SCENES = {scene["name"]: scene for scene in presets()["scenes"]}


def frame_at(page, time):
    """What is found and predicted at a time (steps times rate) of what plays."""
    until(lambda: page.state("layer") is not None, "the prediction")
    page.reach(round(time / float(page.settings["rate"])))
    return page.state("frame"), page.state("layer")


def compared(page):
    """Each comparison of a scene, after its button was pressed."""
    for button in page.all("[data-compare]"):
        key = page.state("opened.key")
        button.click()
        until(lambda key=key: page.state("opened.key") != key, button.text)
        yield button.text


def shows(page, scene, settings=None):
    """The scene's settings are open, its card and its picture are marked, and it is to be played."""
    until(lambda: page.settings == (settings or scene["settings"]), f"the settings of {scene['name']}")
    assert page.text("#tour-card h2") == scene["title"]
    assert scene["text"] in page.text("#tour-card")
    assert page.js("return document.querySelector('.card.watched')?.dataset.view") == scene["watch"]
    until(lambda: page.js("return playground.player.going"), "it to play")


def test_next_goes_through_all_scenes_and_back(page):
    page.go().click("#tour")
    for k, scene in enumerate(SCENES.values()):
        shows(page, scene)
        assert page.js("return playground.player.speed") == scene["speed"]
        until(lambda scene=scene: page.hash.get("scene") == scene["name"], "the address to have the scene")
        assert page.all("#tour-card .dot")[k].get_attribute("aria-current") == "step"
        if k + 1 < len(SCENES):
            page.click("#tour-next")
    page.click("#tour-back")
    shows(page, list(SCENES.values())[-2])
    page.all("#tour-card .dot")[-1].click()
    shows(page, list(SCENES.values())[-1])
    page.click("#tour-next")
    until(lambda: not page.one("#tour-card").is_displayed(), "the end of the tour")
    until(lambda: "scene" not in page.hash, "the address without a scene")


def test_who_clicks_through_ends_at_the_last_scene(page):
    page.go("#scene=condensation", still=False)
    for _ in range(len(SCENES) - 1):
        page.click("#tour-next")
    shows(page, list(SCENES.values())[-1])
    page.played(1).key(" ").settle()
    settings, layer = Settings.from_text(list(SCENES.values())[-1]["settings"]), page.state("layer.name")
    same(page.weights, weights_at(settings, page.step, layer), 1e-4)  # a flow


@pytest.mark.parametrize("name", SCENES)
def test_a_link_opens_a_scene_and_its_comparisons_switch(page, name):
    scene = SCENES[name]
    page.go(f"#scene={name}", still=False)
    shows(page, scene)
    until(lambda: page.state("layer") is not None, "the prediction")
    buttons = page.all("[data-compare]")
    assert [button.text for button in buttons] == [other["label"] for other in scene["compare"]]
    for button, other in zip(buttons, scene["compare"], strict=True):
        button.click()
        shows(page, scene, other["settings"])
        assert button.get_attribute("aria-pressed") == "true"
        assert sum(one.get_attribute("aria-pressed") == "true" for one in buttons) == 1
    page.played(1).key(Keys.HOME)  # it plays by itself
    until(lambda: page.step == 0, "step 0")
    check_initialization(page.settle(), page.state("opened.first"))


def test_all_neurons_turn_to_one_line_before_the_loss_has_fallen(page):
    page.go("#scene=condensation", still=False)
    frame, layer = frame_at(page, 10)
    assert (frame["lines"]["condensed"], frame["lines"]["count"], layer["count"]) == (True, 1, 1)
    assert frame["ratio"] > 0.99
    assert frame_at(page, 15)[0]["agree"] > 0.95


def test_one_two_three_lines(page):
    page.go("#scene=multiplicity", still=False)
    for count, _ in enumerate(compared(page), 1):
        frame, layer = frame_at(page, 0.04)
        assert (frame["lines"]["condensed"], frame["lines"]["count"]) == (True, count)
        assert layer["count"] == layer["p"] == frame["poly"]["order"] == count
        assert frame["poly"]["error"] < 0.05
    assert count == 3


def test_with_large_initial_weights_they_hardly_turn(page):
    page.go("#scene=initialization", still=False)
    found = {name: frame_at(page, 0.1)[0] for name in compared(page)}
    assert [frame["lines"]["condensed"] for frame in found.values()] == [True, False, False, False]
    assert all(frame["ratio"] < 0.7 for frame in found.values())  # the initial stage has ended
    assert found["std 1"]["lines"]["k_eff"] > 3 * found["std 0.0005"]["lines"]["k_eff"]


def test_adam_stays_where_the_flow_turns(page):
    """The flow's line turns by 20 degrees with the data; Adam's is a diagonal, the same or another."""
    page.go("#scene=adam", still=False)
    angles = {}
    for name in compared(page):
        frame, layer = frame_at(page, 12.5 if name.startswith("flow") else 0.01)
        assert (frame["lines"]["condensed"], frame["lines"]["count"], layer["count"]) == (True, 1, 1)
        assert frame["agree"] > 0.9
        line = page.array("layer", "lines")[page.array("layer", "attracts").any(axis=1)][0]
        angles[name] = np.degrees(np.arctan2(line[1], line[0])) % 180
    assert (angles["flow, turned 20°"] - angles["flow"]) % 180 == pytest.approx(20, abs=1e-3)
    assert angles["Adam"] == angles["Adam, turned 20°"] == pytest.approx(45)
    assert angles["Adam, turned -30°"] == pytest.approx(135)


def test_three_neurons_do_the_work_of_a_hundred(page):
    page.go("#scene=reduction", still=False)
    for count, _ in zip((3, 2, 1), compared(page), strict=True):
        frame, _ = frame_at(page, 10 if page.settings["optimizer"] == "flow" else 0.1)
        reduced = frame["reduced"]
        assert (reduced["before"], reduced["after"], reduced["step"]) == (100, count, frame["step"])
        assert reduced["error"] < 0.01
        assert f"{count}" in page.text("[data-view=output] .sentence")


def test_four_lines_where_the_rule_allows_three(page):
    page.go("#scene=beyond", still=False)
    for name in compared(page):
        frame, layer = frame_at(page, 0.02 if name == "normalised descent" else 0.04)
        assert (layer["p"], layer["count"], layer["orientations"]) == (3, 4, 8)
        assert (frame["lines"]["condensed"], frame["lines"]["count"], frame["lines"]["orientations"]) == (True, 4, 8)
        assert frame["agree"] > 0.95


def singular_values(page, name):
    """The two largest singular values of a matrix at the moment shown, and the largest one before training."""
    page.js("playground.player.settle()")
    page.settle()
    first = np.linalg.svd(initial_model(Settings.from_text(page.settings))[0].weights(f"{name}1"), compute_uv=False)
    return *np.linalg.svd(page.array("frame", f"head_{name}")[0], compute_uv=False)[:2], first[0]


def test_values_condense_and_then_queries_and_keys_grow_along_the_vectors_of_F(page):
    page.go("#scene=attention", still=False)
    for gap, name in zip((True, False, None, None), compared(page), strict=True):
        if gap is None:
            frame, layer = frame_at(page, 600 if "stairs" in name else 400)
            level = layer["attention"]["levels"][-2 if "stairs" in name else -1]
            assert frame["loss"] == pytest.approx(level, abs=0.03)
            continue
        frame_at(page, 77 if gap else 65)  # the loss has fallen by less than a tenth
        large, small, _ = singular_values(page, "value")
        assert large > 4 * small
        assert page.array("frame", "head_cos_value")[0, 0] > 0.95
        now, _, first = singular_values(page, "query")
        assert now == pytest.approx(first, rel=0.1)
        frame_at(page, 89 if gap else 79)
        large, small, first = singular_values(page, "query")
        assert large > 2.5 * first
        assert (large > 2.5 * small) == gap
        assert page.array("frame", "head_cos_query")[0, 0] > 0.8
        assert page.array("frame", "head_cos_key")[0, 0] > 0.7
