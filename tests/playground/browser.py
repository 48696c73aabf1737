"""The playground's command in a process of its own, a headless Chromium, and a page in it as a user meets it."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

webdriver = pytest.importorskip("selenium.webdriver")

from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402

COUNT = """
if (window.unanswered === undefined) {
  window.unanswered = 0;
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", () => { if (window.unanswered) window.unanswered--; });
      this.addEventListener("close", () => { window.unanswered = 0; });
    }
    send(data) { window.unanswered++; super.send(data); }
  };
}
"""  # requests under way: the first message is the server's own
PATIENCE = 60.0  # seconds; what a user would wait for on a busy machine
SIZE = (1440, 900)


class Served:
    """``condensation play``, started and stopped."""

    def __init__(self, *arguments: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "condensation", "play", "--no-browser", "--port", str(port), *arguments]
        own = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        address = re.search(r"http://\S+", line)
        assert address, f"the command printed {line!r}"
        self.address = address[0]

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def served(*arguments: str, port: int = 0) -> Iterator[Served]:
    server = Served(*arguments, port=port)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def chromium(downloads: Path, network: bool = False) -> Iterator[Any]:
    """A driver; ``network`` keeps a log of all requests."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size={},{}".format(*SIZE)):
        options.add_argument(argument)
    # a program is a file that Chromium would ask about
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(downloads), "safebrowsing.enabled": True}
    )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"} | ({"performance": "ALL"} if network else {}))
    started = webdriver.Chrome(options=options, service=Service(driver))
    started.set_script_timeout(PATIENCE)
    try:
        yield started
    finally:
        started.quit()


def until(true: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Waits for something, and gives it."""
    end = time.monotonic() + patience
    while not (value := true()):
        assert time.monotonic() < end, f"waited {patience:g} s for {what}"
        time.sleep(0.03)
    return value


class Page:
    """One page; everything is done by its own controls, and read from it."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver, self.address = driver, address
        self.handle = driver.current_window_handle
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNT})

    def go(self, fragment: str = "", still: bool = True) -> "Page":
        """Opens the page afresh and waits for its first picture (and, where it does not play, for its prediction)."""
        self.driver.get("about:blank")
        self.driver.get(self.address + fragment)
        until(lambda: self.js("return window.playground && playground.frames > 0"), "the first picture")
        return self.settle() if still else self

    # -- reading

    def js(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.js("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def state(self, path: str) -> Any:
        """A part of the page's state, such as ``frame.step``."""
        return self.js(f"return playground.state.{path.replace('.', '?.')} ?? null")

    def array(self, place: str, name: str) -> np.ndarray:
        """An array of ``frame``, ``layer`` or ``opened``."""
        script = (
            "const { arrays, shapes } = playground.state[arguments[0]]; const name = arguments[1];"
            "return [Array.from(arrays[name], (v) => Number.isFinite(v) ? v : null), shapes[name]]"
        )
        values, shape = self.js(script, place, name)
        return np.array(values, float).reshape(shape)

    @property
    def step(self) -> int:
        return self.state("frame.step")

    @property
    def weights(self) -> np.ndarray:
        return self.array("frame", "w")

    @property
    def settings(self) -> dict[str, str]:
        return self.state("opened.settings")

    @property
    def data(self) -> dict[str, str]:
        """The ``data-*`` attributes of <main>."""
        return self.js("return {...document.querySelector('main').dataset}")

    @property
    def hash(self) -> dict[str, str]:
        """What the address says."""
        return dict(parse_qsl(urlsplit(self.driver.current_url).fragment))

    @property
    def notices(self) -> str:
        return self.text("#notices")

    def errors(self) -> list[str]:
        """Errors in the console since it was last read."""
        texts = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        own = urlsplit(self.address).netloc  # a page complains of a server that its test has stopped
        return [text for text in texts if "WebSocket connection" not in text or own in text]

    # -- waiting

    def settle(self) -> "Page":
        """Waits until the page rests: it has drawn what is open, with its prediction, and asks for nothing."""
        script = """
            const { state, player } = playground;
            const { opened, layer, frame } = state;
            if (!opened || !layer || !frame || player.going || player.wish !== null || unanswered) return false;
            const drawn = document.querySelector("main").dataset;
            return layer.key === opened.key && frame.key === opened.key && player.frame === frame &&
              drawn.key === String(opened.key) && drawn.step === String(frame.step);
        """
        until(lambda: self.js(script), "the page to rest")
        return self

    def reach(self, step: int) -> "Page":
        """Goes to a step by the page's own player."""
        until(lambda: self.step is not None, "a first frame")
        self.js("playground.seek(arguments[0])", step)
        until(lambda: (self.step or 0) >= step, f"step {step}")
        return self.settle()

    def played(self, step: int) -> "Page":
        """Waits until the player has come to a step."""
        until(lambda: (self.step or 0) >= step, f"step {step} to be played")
        return self

    def reopened(self, key: int) -> "Page":
        """Waits until something else is open than what had this key."""
        until(lambda: self.state("opened.key") != key, "something else to be opened")
        return self.settle()

    # -- doing

    def key(self, *keys: str) -> "Page":
        """Keys for the page as a whole."""
        ActionChains(self.driver).send_keys(*keys).perform()
        return self

    def click(self, selector: str) -> "Page":
        self.one(selector).click()
        return self

    def type(self, selector: str, text: str, end: str = Keys.ENTER) -> "Page":
        """Writes a text in place of the one that is there."""
        self.one(selector).send_keys(Keys.CONTROL + "a" + Keys.NULL, text, end)
        return self

    def choose(self, selector: str, value: str) -> "Page":
        Select(self.one(selector)).select_by_value(value)
        return self

    def point(self, selector: str, x: float, y: float, click: bool = False, with_key: str | None = None) -> "Page":
        """Moves the pointer to a place in an element (CSS pixels from its upper left corner), and clicks."""
        element = self.one(selector)
        self.js("arguments[0].scrollIntoView({block: 'nearest'})", element)
        left, top = self.js("const r = arguments[0].getBoundingClientRect(); return [r.left, r.top]", element)
        actions = ActionChains(self.driver, duration=30)
        if with_key:
            actions.key_down(with_key)
        actions.w3c_actions.pointer_action.move_to_location(round(left + x), round(top + y))
        if click:
            actions.click()
        if with_key:
            actions.key_up(with_key)
        actions.perform()
        return self


def colours(page: Page, selector: str) -> int:
    """How many colours a canvas has (counted to 100)."""
    script = """
        const canvas = document.querySelector(arguments[0]);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const found = new Set();
        for (let k = 0; k < data.length && found.size < 100; k += 4)
          found.add((data[k] << 24) | (data[k + 1] << 16) | (data[k + 2] << 8) | data[k + 3]);
        return found.size;
    """
    return page.js(script, selector)


def visible_views(page: Page) -> Sequence[str]:
    """The names of the pictures on the page."""
    return page.js(
        "return [...document.querySelectorAll('#cards [data-view]:not([hidden])')].map((e) => e.dataset.view)"
    )


def number(text: str) -> float:
    """A number as the page writes it, such as 1.3 × 10⁻⁴."""
    text = text.replace("−", "-").strip()
    if "×" in text or ("10" in text and any(one in text for one in "⁰¹²³⁴⁵⁶⁷⁸⁹")):
        head, _, power = text.rpartition("10")
        raised = int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
        head = head.replace("×", "").strip()
        return float(head or 1) * 10.0**raised
    return float(text)
