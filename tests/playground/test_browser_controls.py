"""Every control of the page changes what it says: operated as a user does, held against the library's own start."""

import numpy as np
import pytest
from browser import ActionChains, Keys, Select, until
from reference import check_initialization, initial_model, same, weights_at

from condensation import reduce
from condensation.playground._presets import hello as hello_of
from condensation.playground._settings import OPTIMIZERS, Settings
from condensation.prediction import predict

pytestmark = pytest.mark.browser


def changed(page, act, **settings):
    """Does something that opens a new training: settings, address and initialization are as expected."""
    key = page.state("opened.key")
    act()
    until(lambda: page.state("opened.key") != key, "a new training")
    until(
        lambda: all(page.settings[setting] == value for setting, value in settings.items()),
        f"{settings}, not {page.settings}",
    )
    page.settle()
    in_address(page)
    return check_initialization(page)


def in_address(page):
    """The address has the settings that differ from the defaults, and no others."""
    defaults = Settings().to_text()
    known = {setting: value for setting, value in page.settings.items() if value != defaults[setting]}
    until(lambda: {k: v for k, v in page.hash.items() if k in defaults} == known, f"the address to have {known}")


TYPED = [
    ("formula", "cos(2*x) - 0.1"),
    ("n", "25"),
    ("low", "-2"),
    ("high", "0.75"),
    ("inputs", "2"),
    ("width", "37"),
    ("std_w", "0.02"),
    ("std_a", "1e-4"),
    ("rate", "0.003"),
    ("seed", "1234"),
]


@pytest.mark.parametrize(("setting", "value"), TYPED)
def test_a_field_that_is_typed_in(page, setting, value):
    page.go()
    expected = {setting: Settings.from_text({setting: value}).to_text()[setting]}
    changed(page, lambda: page.type(f"#setting-{setting}", value), **expected)


@pytest.mark.parametrize("optimizer", [name for name in OPTIMIZERS if name != Settings().optimizer])
def test_every_optimizer(page, optimizer):
    page.go()
    assert not page.one("#setting-eps").is_displayed()
    settings = changed(page, lambda: page.choose("#setting-optimizer", optimizer), optimizer=optimizer)
    assert page.one("#setting-eps").is_displayed() == (optimizer == "adam")
    page.reach(5)
    close = 1e-4 if optimizer == "flow" else 2e-6  # a flow's integrator starts anew at each moment
    same(page.weights, weights_at(settings, 5), close)


def test_the_eps_of_adam(page):
    page.go("#optimizer=adam")
    settings = changed(page, lambda: page.type("#setting-eps", "1e-12"), eps="1e-12")
    page.reach(3)
    same(page.weights, weights_at(settings, 3))


@pytest.mark.parametrize("setting", ["width", "std_w", "std_a", "rate", "turn"])
def test_a_slider(page, setting):
    page.go("#inputs=2&n=49" if setting == "turn" else "")
    slider = page.one(f"[data-field={setting}] input[type=range]")
    before = float(page.settings[setting])
    settings = changed(page, lambda: slider.send_keys(Keys.ARROW_RIGHT * 10))
    value = getattr(settings, setting)
    assert value > before
    assert float(page.one(f"#setting-{setting}").get_property("value")) == pytest.approx(value)
    assert float(slider.get_property("value")) == pytest.approx(
        value if setting == "turn" else np.log10(value), abs=0.01
    )


@pytest.mark.parametrize("setting", ["residual", "bias"])
def test_a_tick(page, setting):
    page.go("#inputs=2&n=49&layers=tanh,tanh,tanh&width=20")
    value = "0" if page.settings[setting] == "1" else "1"
    changed(page, lambda: page.click(f"#setting-{setting}"), **{setting: value})


def test_the_spacing(page):
    page.go()
    changed(page, lambda: page.choose("#setting-spacing", "random"), spacing="random")


def test_layers_are_added_chosen_and_taken_away(page):
    page.go("#width=30")
    changed(page, lambda: page.click("button[title='One layer more']"), layers="x_tanh,x_tanh")
    changed(page, lambda: page.choose("[data-setting=layer2]", "sigmoid"), layers="x_tanh,sigmoid")
    changed(page, lambda: page.choose("[data-setting=layer1]", "gelu"), layers="gelu,sigmoid")
    changed(page, lambda: page.click("button[title='One layer less']"), layers="gelu")
    assert not page.one("button[title='One layer less']").is_enabled()


def test_a_wide_layer_becomes_narrower_when_another_comes(page):
    page.go("#width=300")
    changed(page, lambda: page.click("button[title='One layer more']"), layers="x_tanh,x_tanh", width="128")


@pytest.mark.parametrize("dice", ["#dice", "[data-field=seed] button", "n"])
def test_the_dice(page, dice):
    page.go()
    roll = (lambda: page.key("n")) if dice == "n" else (lambda: page.click(dice))
    settings = changed(page, roll)
    assert settings == Settings(seed=settings.seed)
    assert settings.seed != 0
    assert page.one("#setting-seed").get_property("value") == str(settings.seed)


def test_points_are_drawn(page):
    page.go("#seed=2")
    changed(page, lambda: page.choose("#setting-data", "points"), data="points")
    buttons = {button.text: button for button in page.all("[data-field=points] button")}
    side = page.one("canvas.pad").rect["width"]
    buttons["Clear"].click()
    until(lambda: "points are needed" in page.text("#setting-points-fault"), "the sentence that there are too few")
    assert page.settings["points"]  # the old run goes on

    def place(x, y, key=None):
        page.point("canvas.pad", (x + 2) / 4 * side, (2 - y) / 4 * side, click=True, with_key=key)

    place(1, 1)
    place(-1, 0.5, Keys.SHIFT)
    place(0, -1.5)
    until(lambda: page.settings["points"].count(";") == 2, "three points")
    buttons["Add −1"].click()
    changed(page, lambda: place(-1, -1))
    settings = check_initialization(page)
    drawn = np.array([[1, 1, 1], [-1, 0.5, -1], [0, -1.5, 1], [-1, -1, -1]])
    np.testing.assert_allclose(settings.points, drawn, atol=4 / side + 0.01)  # a pixel of the pad
    buttons["Erase"].click()
    changed(page, lambda: place(0, -1.5))
    np.testing.assert_allclose(Settings.from_text(page.settings).points, drawn[[0, 1, 3]], atol=4 / side + 0.01)
    page.js("document.querySelector('#setting-points').value = ''")
    typed = "0.5,0.5,1;-0.5,-0.5,1;0.5,-0.5,-0.25"
    changed(page, lambda: page.one("#setting-points").send_keys(typed, Keys.TAB), points=typed)
    changed(page, lambda: page.type("#setting-turn", "30"), turn="30")


def test_digits_become_a_convolution_whose_units_can_be_chosen(page):
    page.go("#data=digits&n=40&layers=tanh&width=5&optimizer=gd&rate=0.2")
    assert page.one("#setting-view").is_displayed()
    check_initialization(page, "conv1")
    for view in ("filter", "kernel"):
        page.choose("#setting-view", view)
        until(lambda view=view: page.state("layer.view") == view, f"the {view}s")
        check_initialization(page.settle(), "conv1", view)
        until(lambda view=view: page.hash.get("view") == view, "the address to have the view")
    page.choose("#setting-data", "formula")
    until(lambda: page.settings["data"] == "formula", "the formula")
    page.settle()
    assert not page.one("#setting-view").is_displayed()
    check_initialization(page)


def test_choosing_digits_begins_with_the_papers_example(page):
    page.go()
    example = next(one for one in hello_of()["figures"] if one["settings"]["data"] == "digits")
    page.choose("#setting-data", "digits")
    until(lambda: page.settings["data"] == "digits", "the digits")
    assert page.settings == example["settings"]
    page.settle()
    check_initialization(page, "conv1")


def test_the_layer_that_is_shown(page):
    page.go("#layers=tanh,x_tanh,tanh&width=20&std_w=0.1&std_a=0.1")
    settings = check_initialization(page, "dense1")
    known = predict(settings.experiment(), settings.seeds)
    for layer in ("dense2", "dense3", "dense1"):
        page.choose("#setting-layer", layer)
        until(lambda layer=layer: page.state("layer.name") == layer, layer)
        until(lambda layer=layer: page.hash.get("layer") == layer, "the address to have the layer")
        check_initialization(page.settle(), layer)
        assert page.state("layer.count") == known[layer].directions.attracts.sum()


def test_the_size_of_the_reduced_network(page):
    page.go()
    model, x, _, _ = initial_model(Settings())
    page.click("#reduce-auto")
    page.type("#setting-reduce", "5")
    until(lambda: page.state("frame.reduced.after") == 5, "five units")
    assert page.state("frame.reduced.error") == pytest.approx(reduce(model, x, units=5).centred_error)
    until(lambda: page.hash.get("reduce") == "5", "the address to have it")
    page.click("#reduce-auto")
    until(lambda: page.state("frame.reduced.after") == 2, "as many as lines are predicted")
    until(lambda: "reduce" not in page.hash, "the address without it")


def test_a_change_while_it_plays_goes_on_playing(page):
    page.go()
    page.click("#play").played(20)
    page.choose("[data-setting=layer1]", "tanh")
    until(lambda: page.settings["layers"] == "tanh", "the activation")
    page.played(10)
    page.key(" ").settle()
    settings = Settings.from_text(page.settings)
    same(page.weights, weights_at(settings, page.step))


# -- what is typed wrong, and what diverges


@pytest.mark.parametrize(
    ("setting", "text", "said"),
    [
        ("formula", "sin(3*x", "formula"),
        ("formula", "__import__('os').system('true')", ""),
        ("formula", "x3", "x3"),
        ("width", "9999", "width must be from 1 to 400"),
        ("width", "ten", "width must be a number"),
        ("std_w", "0", "std_w must be from"),
        ("rate", "-1", "rate must be from"),
        ("seed", "-5", "seed must be from"),
        ("n", "1", "n must be from"),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(page, setting, text, said):
    page.go()
    key = page.state("opened.key")
    page.type(f"#setting-{setting}", text)
    fault = f"#setting-{setting}-fault"
    until(lambda: page.one(fault).is_displayed() and page.text(fault), "the sentence")
    assert said in page.text(fault)
    assert page.one(f"#setting-{setting}").get_attribute("aria-invalid") == "true"
    assert page.state("opened.key") == key
    good = {"formula": "x**2", "rate": "0.5", "std_w": "0.5"}.get(setting, "20")
    page.type(f"#setting-{setting}", good)
    until(lambda: page.settings[setting] == good, "the good one")
    assert not page.one(fault).is_displayed()
    page.settle()
    check_initialization(page)


def test_the_old_run_goes_on_while_a_formula_is_broken(page):
    page.go().reach(30)
    before = page.weights
    page.type("#setting-formula", "sin(3*x")
    until(lambda: page.text("#setting-formula-fault"), "the sentence")
    np.testing.assert_array_equal(page.weights, before)
    page.js("document.activeElement.blur()")
    page.key(" ").played(60).key(" ").settle()
    same(page.weights, weights_at(Settings(), page.step))


def test_a_formula_is_taken_when_the_user_rests(page):
    page.go()
    changed(page, lambda: page.type("#setting-formula", "x - x**3", end=""), formula="x - x**3")
    assert page.one("#setting-formula").get_property("value") == "x - x**3"


def test_a_training_that_diverges_says_so_and_the_page_lives(page):
    page.go("#optimizer=gd&rate=100&std_w=1&std_a=1&formula=100*x&layers=relu&width=50")
    page.key(" ")
    until(lambda: "diverged" in page.notices, "the message")
    until(lambda: page.state("frame.diverged") is not None and not page.js("return playground.player.going"), "the end")
    page.settle()
    assert np.isfinite(page.weights).all()
    settings = changed(page, lambda: page.type("#setting-rate", "1e-7"), rate="1e-07")
    until(lambda: "diverged" not in page.notices, "the message to go")
    page.js("document.activeElement.blur()")
    page.key(".")
    until(lambda: page.step == 1, "a step")
    same(page.settle().weights, weights_at(settings, 1))


def test_many_changes_at_once_end_with_the_last(page):
    page.go()
    slider = page.one("[data-field=std_w] input[type=range]")
    ActionChains(page.driver).click(slider).perform()
    for _ in range(6):
        slider.send_keys(Keys.ARROW_LEFT * 3)
    wished = lambda: float(page.one("#setting-std_w").get_property("value"))  # noqa: E731
    until(lambda: float(page.settings["std_w"]) == wished(), "the last value")
    page.settle()
    check_initialization(page)


def test_every_target(page):
    page.go()
    broken = {}
    for target in page.state("hello.targets"):
        page.choose("#preset-target", target["name"])
        until(lambda target=target: target["settings"].items() <= page.settings.items(), target["name"])
        page.settle()
        check_initialization(page)
        layer = page.state("layer")
        if (layer["count"] is None) == (not layer["why"]) or page.notices:
            broken[target["name"]] = (layer["count"], layer["why"], page.notices)
        if Select(page.one("#preset-target")).first_selected_option.get_attribute("value") != target["name"]:
            broken[target["name"]] = "the choice does not show it"
    assert broken == {}


def test_every_figure(page):
    page.go()
    broken = {}
    for figure in page.state("hello.figures"):
        page.choose("#preset-figure", figure["name"])
        until(lambda figure=figure: page.settings == figure["settings"], figure["name"])
        page.settle()
        check_initialization(page, page.state("opened.first"))
        layer = page.state("layer")
        if (layer["count"] is None) == (not layer["why"]) or page.notices:
            broken[figure["name"]] = (layer["count"], layer["why"], page.notices)
        if figure["about"] not in page.text("#panel"):
            broken[figure["name"]] = "what it is about is not said"
    assert broken == {}
