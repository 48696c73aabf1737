"""The report in a real Chromium, opened from a folder."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "playground"))
pytest.importorskip("selenium")

from browser import Page, chromium, until
from selenium.webdriver.common.keys import Keys
from whole_report import fill

from condensation.papers._pages import write_pages

pytestmark = pytest.mark.browser
SHOWN = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility()).map((e) => e.id)"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report 100% #1")
    sections = fill(folder)
    write_pages(sections, folder)
    return sections, folder


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("downloads"), network=True) as started:
        yield started


@pytest.fixture
def page(driver, whole):
    """The first page on a wide screen; nothing may go wrong in it, and no host may be asked."""
    resize(driver, 1360, 860)
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    made = Page(driver, (whole[1] / "index.html").as_uri())
    made.errors()
    yield made
    assert made.errors() == []
    logged = [entry["message"] for entry in driver.get_log("performance")]
    asked = [message for message in logged if "Network.requestWillBeSent" in message]
    assert asked
    assert not [message for message in asked if '"url":"http' in message]


def resize(driver, width, height):
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )


def go(page, fragment=""):
    page.driver.get("about:blank")
    page.driver.get(page.address + fragment)
    return page


def contents(page):
    """The figures that the contents name."""
    script = "return [...document.querySelectorAll('#contents [data-figure]')].filter((e) => e.checkVisibility())"
    return page.js(script + ".map((e) => e.dataset.figure)")


def expected(sections, verdict=None, paper=None, words=""):
    """The claims that fit, by figure; figures without any are left out."""
    fitting = {
        section.name: [
            f"claim-{claim['id']}"
            for claim in section.claims
            if verdict in (None, claim["verdict"])
            and paper in (None, claim["paper"])
            and words in f"{section.title} {claim['statement']} {claim['why']}".lower()
        ]
        for section in sections
    }
    return {name: claims for name, claims in fitting.items() if claims}


def total(sections):
    """How many claims there are."""
    return sum(len(section.claims) for section in sections)


def holds(page, fitting):
    """Whether exactly these claims, figures and entries are shown."""
    assert page.js(SHOWN, ".claim") == [claim for claims in fitting.values() for claim in claims]
    assert page.js(SHOWN, "article.figure") == contents(page) == [*fitting]


def test_filters_hide_claims_figures_papers_and_their_entries(page, whole):
    sections, _ = whole
    go(page)
    holds(page, expected(sections))
    page.click("label:has(#show-not-reproduced)")
    holds(page, expected(sections, "not reproduced"))
    assert page.hash == {"verdict": "not reproduced"}
    page.click("label:has([value=CNN])")
    fitting = expected(sections, "not reproduced", "CNN")
    holds(page, fitting)
    assert page.js(SHOWN, "h2") == ["paper-cnn"]
    count = sum(map(len, fitting.values()))
    assert (
        page.text("#filters [data-count]")
        == f"{count} of {total(sections)} claims, {len(fitting)} of {len(sections)} figures"
    )
    page.click("#filters button[type=reset]")
    holds(page, expected(sections))
    page.one("#filters [name=words]").send_keys("x tanh x")
    holds(page, expected(sections, words="x tanh x"))


def test_filters_that_leave_nothing_say_so_and_an_address_brings_them_back(page, whole):
    sections, _ = whole
    go(page, "#words=no+such+claim&paper=FC")
    assert page.js(SHOWN, ".claim") == contents(page) == []
    assert page.js(SHOWN, "#nothing") == ["nothing"]
    assert page.text("#filters [data-count]").startswith(f"0 of {total(sections)} claims")
    page.click("#nothing button")
    holds(page, expected(sections))
    assert page.js(SHOWN, "#nothing") == []
    go(page, "#verdict=partly&verdict=not+decided")
    fitting = [expected(sections, verdict) for verdict in ("partly", "not decided")]
    assert {*page.js(SHOWN, ".claim")} == {name for some in fitting for names in some.values() for name in names}
    page.js("location.hash = 'claim-fc-fig3-tanh'")  # one that is reproduced, and so hidden
    until(lambda: "claim-fc-fig3-tanh" in page.js(SHOWN, ".claim"), "the claim that was asked for")


def test_the_contents_stay_in_sight_and_lead_to_a_claims_page(page, whole):
    go(page)
    page.click("#contents [data-figure='cnn-fig3'] a")
    until(lambda: page.js("return document.getElementById('cnn-fig3').getBoundingClientRect().top < 60"), "the figure")
    until(lambda: page.js("return document.querySelector('[aria-current]')?.hash") == "#cnn-fig3", "the mark")
    assert page.js("return document.getElementById('contents').getBoundingClientRect().top") == 0
    marked = (
        "const box = document.querySelector('[aria-current]').getBoundingClientRect(); return [box.top, box.bottom]"
    )
    top, bottom = page.js(marked)
    assert 0 <= top < bottom <= 860
    page.click("#claim-cnn-fig3-final-conv1 a")
    assert page.driver.current_url.endswith("pages/cnn-fig3.html#cnn-fig3-final-conv1")
    assert 0 <= page.js("return document.getElementById('cnn-fig3-final-conv1').getBoundingClientRect().top") < 400
    page.click(".brand a")
    assert page.js("return location.hash") == "#cnn-fig3"


def test_a_phone_has_the_contents_behind_a_bar(page):
    resize(page.driver, 390, 844)
    go(page)
    assert contents(page) == []
    page.click(".topbar button")
    until(lambda: "fc-fig3" in contents(page), "the contents")
    page.click("#contents [data-figure='fc-fig3'] a")
    until(lambda: contents(page) == [], "the contents to close")
    assert 0 <= page.js("return document.getElementById('fc-fig3').getBoundingClientRect().top") < 200
    assert page.js("return document.querySelector('.topbar').getBoundingClientRect().top") == 0
    assert page.js("return document.documentElement.scrollWidth") <= 390


def test_keys_reach_filters_and_command(page, whole):
    sections, _ = whole
    go(page)
    page.one("#filters [name=words]").send_keys("sigmoid")
    for value in ("reproduced", "partly", "not reproduced"):
        page.key(Keys.TAB)
        assert page.js("return document.activeElement.value") == value
    page.key(Keys.SPACE)
    holds(page, expected(sections, "not reproduced", words="sigmoid"))


def test_toml_and_command_are_copied(page, whole):
    sections, folder = whole
    page.driver.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    go(page)
    page.address = (folder / "pages" / "fc-reset.html").as_uri()
    go(page)
    page.click("#again ~ .copied .copy")
    until(lambda: page.text("#again ~ .copied .copy") == "Copied", "the copy")
    assert page.js("return navigator.clipboard.readText()") == "condensation reproduce fc-reset --scale paper"
    page.click("details.experiment summary")
    page.click("details.experiment .copy")
    until(lambda: page.text("details.experiment .copy") == "Copied", "the copy")
    section = next(section for section in sections if section.name == "fc-reset")
    assert page.js("return navigator.clipboard.readText()") == (folder / section.experiments[0]["file"]).read_text()


def test_without_scripts_all_is_there_but_filters_and_copying(page, whole):
    sections, _ = whole
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    go(page)
    holds(page, expected(sections))
    assert page.js(SHOWN, "#filters, #nothing, .copy") == []
    resize(page.driver, 390, 844)
    page.click(".topbar button")
    until(lambda: "fc-fig3" in contents(page), "the contents")
