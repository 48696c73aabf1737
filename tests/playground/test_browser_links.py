"""Links, restarts and pages beside each other: what is shown comes again exactly, and nothing comes from elsewhere."""

import json
from urllib.parse import urlsplit

import numpy as np
import pytest
from browser import Keys, Page, chromium, served, until
from reference import check_initialization, same, weights_at

from condensation.playground._settings import Settings

pytestmark = pytest.mark.browser


@pytest.fixture
def other(page):
    """A second page, in a tab of its own."""
    driver, first = page.driver, page.driver.current_window_handle
    driver.switch_to.new_window("tab")
    made = Page(driver, page.address)
    driver.switch_to.window(first)
    yield made
    driver.switch_to.window(made.handle)
    assert made.errors() == []
    driver.close()
    driver.switch_to.window(first)


def front(page):
    page.driver.switch_to.window(page.handle)
    return page


@pytest.mark.parametrize(
    "fragment",
    [
        "#layers=tanh,x_tanh&width=20&seed=5&layer=dense2&speed=7&theme=dark",
        "#inputs=2&formula=x1*x2%2B0.1*sin(3*x1)&n=50&spacing=random&turn=25&bias=0&optimizer=adam",
        "#data=points&points=1,1,1;-1,-1,1;1,-1,-1;-1,0.5,-1&width=30&reduce=3",
    ],
)
def test_a_link_shows_exactly_the_same_again(page, other, fragment):
    page.go(fragment).reach(45)
    until(lambda: page.hash.get("step") == "45", "the address to have the step")
    address, settings, weights = page.driver.current_url, page.settings, page.weights
    shown = page.state("layerName")
    same(weights, weights_at(Settings.from_text(settings), 45, shown))
    front(other).go("#" + urlsplit(address).fragment)
    until(lambda: other.step == 45, "the step")
    other.settle()
    assert other.settings == settings
    np.testing.assert_array_equal(other.weights, weights)
    assert other.state("layerName") == shown
    until(lambda: other.driver.current_url == address, "the same address")
    speed, theme = other.js("return [playground.player.speed, playground.state.theme]")
    assert str(speed) == other.hash.get("speed", "10")
    assert theme == other.hash.get("theme", "light")


def test_the_share_button_copies_the_address(page):
    allowed = {"origin": page.address.rstrip("/"), "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    page.driver.execute_cdp_cmd("Browser.grantPermissions", allowed)
    page.go("#seed=6").reach(20)
    page.click("#share")
    until(lambda: "copied" in page.notices, "the page to say so")
    assert page.js("return navigator.clipboard.readText()") == page.driver.current_url
    assert page.hash == {"seed": "6", "step": "20"}


def test_where_the_clipboard_is_refused_the_link_is_shown_or_copied_otherwise(page):
    refused = {"origin": page.address.rstrip("/"), "permission": {"name": "clipboard-write"}, "setting": "denied"}
    page.driver.execute_cdp_cmd("Browser.setPermission", refused)
    try:
        page.go("#seed=6")
        page.click("#share")
        until(lambda: page.notices, "the page to say something")
        assert "copied" in page.notices or page.driver.current_url in page.notices
    finally:
        page.driver.execute_cdp_cmd("Browser.resetPermissions", {})


@pytest.mark.parametrize(
    ("fragment", "said"),
    [
        ("#width=9999", "width must be from 1 to 400"),
        ("#layers=evil", "evil"),
        ("#formula=__import__('os')", ""),
        ("#nonsense=3", "nonsense"),
        ("#run=nothing", "unknown run"),
        ("#sweep=nothing", "unknown sweep"),
        ("#scene=nothing", "nothing"),
        ("#points=1,2&data=points", "points"),
        ("#seed=<b id=evil>x</b>", "seed must be a number"),
    ],
)
def test_a_broken_link_is_told_and_the_page_lives(page, fragment, said):
    page.go(fragment)
    until(lambda: page.notices, "a notice")
    assert said in page.notices
    assert page.all("#evil") == []
    assert page.settings == Settings().to_text()
    check_initialization(page)
    page.key(" ").played(20).key(" ").settle()
    same(page.weights, weights_at(Settings(), page.step))


@pytest.mark.parametrize(
    "fragment", ["#%%%", "#", "#&&==", "#step=-3", "#step=abc&speed=1e99", "#theme=pink", "#layer=nowhere&view=upside"]
)
def test_what_means_nothing_in_a_link_is_as_if_it_were_not_there(page, fragment):
    page.go(fragment)
    check_initialization(page)
    page.key(".")
    until(lambda: page.step == 1, "a step")


def test_an_address_that_is_typed_in_an_open_page_is_followed(page):
    page.go()
    page.js("location.hash = '#width=12&step=6'")
    until(lambda: page.settings["width"] == "12" and page.step == 6, "what the address says")
    same(page.settle().weights, weights_at(Settings(width=12), 6))


def test_two_pages_are_independent(page, other):
    page.go("#width=20&seed=1").reach(12)
    front(other).go("#width=20&seed=2").reach(31)
    other.type("#setting-std_w", "0.1")
    until(lambda: other.settings["std_w"] == "0.1", "the change")
    other.settle()
    check_initialization(other)
    front(page)
    assert (page.step, page.settings["std_w"]) == (12, "0.005")
    page.key(".")
    until(lambda: page.step == 13, "a step")
    same(page.settle().weights, weights_at(Settings(width=20, seed=1), 13))


def test_a_server_that_comes_back_is_gone_on_with(page, other):
    still, going = Settings(width=20, seed=3), Settings(width=20, seed=4)
    with served() as first:
        page.address = other.address = first.address
        front(page).go("#width=20&seed=3").reach(25)
        front(other).go("#width=20&seed=4")
        other.key("2", " ").played(30)
    until(lambda: "Reconnecting" in other.notices, "the page to say so")
    at = other.step
    front(page)
    until(lambda: "Reconnecting" in page.notices, "the other page to say so")
    page.key("1")  # nothing can be asked for now, and nothing breaks
    with served(port=first.port):
        until(lambda: "Reconnecting" not in page.notices, "the connection")
        until(lambda: page.step == 25, "the step of before")
        assert page.settle().settings == still.to_text()
        same(page.weights, weights_at(still, 25))
        page.key(".")
        until(lambda: page.step == 26, "one step on")
        front(other)
        until(lambda: "Reconnecting" not in other.notices, "the connection")
        other.played(at + 10).key(" ").settle()  # what played goes on playing
        assert other.settings == going.to_text()
        same(other.weights, weights_at(going, other.step))
        for closing in (other, page):
            assert all("WebSocket" in message for message in front(closing).errors())  # of the time without a server
            closing.driver.get("about:blank")  # before the server stops


def test_a_way_to_a_far_step_can_be_left(page):
    page.go("#step=5000000", still=False).played(100)
    until(lambda: "training to step 5000000" in page.text("#horizon"), "the page to say where it is going")
    page.key(" ")  # not so far, then
    assert 100 <= page.settle().step < 5000000
    page.key(Keys.HOME)
    until(lambda: page.step == 0, "step 0")
    check_initialization(page.settle())


def test_a_page_for_others_needs_its_token_once(driver):
    with served("--host", "0.0.0.0", "--token", "sesame") as other:
        address = f"http://127.0.0.1:{other.port}/"
        driver.delete_all_cookies()
        driver.get(address)
        assert "token" in driver.find_element("tag name", "body").text
        page = Page(driver, f"{address}?token=sesame").go("#width=12&seed=2")  # what a link says is not lost on the way
        assert page.settings == Settings(width=12, seed=2).to_text()
        assert "sesame" not in driver.current_url
        check_initialization(page)
        page = Page(driver, address).go("#width=13")
        assert page.settings["width"] == "13"
        page.errors()  # of the first visit
        driver.get("about:blank")


def test_nothing_is_asked_of_other_hosts(running, downloads):
    with chromium(downloads, network=True) as driver:
        page = Page(driver, running.address).go("#scene=condensation", still=False).played(5)
        page.key(" ").settle()
        page.click("#theme")
        assert page.errors() == []
        asked = set()
        for entry in driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.add(message["params"]["request"]["url"])
            elif message["method"] == "Network.webSocketCreated":
                asked.add(message["params"]["url"])
    hosts = {urlsplit(url).netloc for url in asked if urlsplit(url).scheme in ("http", "https", "ws", "wss")}
    assert hosts == {urlsplit(running.address).netloc}
    assert {urlsplit(url).scheme for url in asked} <= {"http", "ws", "data", "blob", "about"}
    assert any(urlsplit(url).path == "/live" for url in asked)
    assert len([url for url in asked if url.endswith(".js")]) > 20
