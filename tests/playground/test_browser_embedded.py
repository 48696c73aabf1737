"""The live page inside of another page: only where its owner allows that; and on a phone."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from browser import Page, served, until
from reference import same, weights_at

from condensation.playground._settings import Settings

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server of somebody's lecture: its folder and its origin."""
    folder = tmp_path_factory.mktemp("lecture")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def lecture(site, address):
    """The address of a page that has the playground in a frame."""
    folder, origin = site
    frame = f'<iframe src="{address}?embed&hide=settings#width=20" width="900" height="600"></iframe>'
    (folder / "index.html").write_text(f"<!doctype html><link rel='icon' href='data:,'>{frame}")
    return f"{origin}/index.html"


def test_a_site_that_the_owner_names_shows_the_live_page(driver, site):
    with served("--embed-from", site[1]) as server:
        driver.get(lecture(site, server.address))
        driver.switch_to.frame(0)
        page = Page(driver, server.address)
        until(lambda: page.js("return window.playground && playground.frames > 0"), "the first picture")
        assert not page.one("#panel").is_displayed()
        assert not page.one("h1").is_displayed()
        page.click("#step")
        until(lambda: page.step == 1, "a step")
        same(page.weights, weights_at(Settings(width=20), 1))
        driver.switch_to.default_content()
        driver.get("about:blank")


def test_no_other_site_shows_it(driver, running, site):
    driver.get(lecture(site, running.address))
    driver.switch_to.frame(0)
    page = Page(driver, running.address)
    refused = until(lambda: [text for text in page.errors() if "frame-ancestors" in text], "the refusal")
    assert refused
    assert not page.js("return Boolean(window.playground)")
    driver.switch_to.default_content()
    driver.get("about:blank")


def test_on_a_phone_the_pictures_come_first_and_the_settings_are_reached(page):
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        page.go("#width=20")
        field = page.js("return document.querySelector('[data-view=field]').getBoundingClientRect()")
        assert field["top"] < 250
        page.click("#fold")
        until(lambda: page.one("#setting-formula").is_displayed(), "the settings")
        top = page.js("return document.querySelector('#panel').getBoundingClientRect().top")
        assert 0 < top < PHONE["height"] - 100
        assert page.js("return document.querySelector('#cards').getBoundingClientRect().bottom") <= top + 1
        page.js("document.querySelector('#setting-width').scrollIntoView({block: 'center'})")
        key = page.state("opened.key")
        page.type("#setting-width", "15").reopened(key)
        assert page.settings["width"] == "15"
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
