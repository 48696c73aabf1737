"""A page with a recording, opened from a `file:` address."""

import json
import time
from pathlib import Path

from browser import SIZE, Page

CLOSE = 2.0**-15  # of weights in a recording


class RecordedPage(Page):
    """A page with a recording, in which the moment after a pause may still be on its way."""

    def settle(self):
        super().settle()
        time.sleep(0.2)
        return super().settle()


def requests(driver):
    """The addresses of all requests since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    sockets = [one["params"]["url"] for one in messages if one["method"] == "Network.webSocketCreated"]
    return {one["request"]["url"].split("#")[0].split("?")[0] for one in sent} | {*sockets}


def opened_from(driver, path: Path):
    """A page in which nothing may go wrong, and from which no request may go out."""
    driver.set_window_size(*SIZE)
    made = RecordedPage(driver, path.as_uri())
    made.errors()
    requests(driver)
    yield made
    failed, sent = made.errors(), requests(driver)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.get("about:blank")
    assert failed == []
    assert {url for url in sent if not url.startswith(("blob:", "data:", "about:"))} <= {path.as_uri()}
