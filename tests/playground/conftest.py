"""For the tests in a browser: one server and one Chromium for all of them, a fresh page for each. For attacks: a server
in a thread, which must be well after each.
"""

import logging

import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    from saved_runs import fill

    return fill(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="session")
def running(folders):
    from browser import served

    with served(str(folders)) as server:
        yield server


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def driver(downloads):
    from browser import chromium

    with chromium(downloads) as started:
        yield started


@pytest.fixture
def page(driver, running):
    """A page that no test has opened yet; nothing may have gone wrong in it."""
    from browser import SIZE, Page

    driver.set_window_size(*SIZE)
    made = Page(driver, running.address)
    made.errors()
    yield made
    failed = made.errors()
    driver.get("about:blank")
    assert failed == []


@pytest.fixture(scope="session")
def recorded_driver(downloads):
    """A Chromium that notes every request."""
    from browser import chromium

    with chromium(downloads, network=True) as started:
        yield started


@pytest.fixture(scope="session")
def tour_file(tmp_path_factory):
    """The recorded tour, in a folder whose name an address has to quote."""
    from recordings import TOUR

    from condensation.playground._bundle import page

    path = tmp_path_factory.mktemp("a tour, #1") / "index.html"
    path.write_text(page(TOUR.read_text(encoding="utf-8")), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def runs_file(tmp_path_factory, folders):
    """The recorded runs of the library."""
    from condensation.playground._bundle import page
    from condensation.playground._library import Library
    from condensation.playground._recorder import record

    path = tmp_path_factory.mktemp("runs") / "index.html"
    path.write_text(page(record(Library([folders]), (), tour=False)), encoding="utf-8")
    return path


@pytest.fixture
def tour(recorded_driver, tour_file):
    from recorded_page import opened_from

    yield from opened_from(recorded_driver, tour_file)


@pytest.fixture
def runs(recorded_driver, runs_file):
    from recorded_page import opened_from

    yield from opened_from(recorded_driver, runs_file)


@pytest.fixture(scope="module")
def lines():
    """What the servers write into their log."""
    written = []

    class Lines(logging.Handler):
        def emit(self, record):
            written.append(logging.Formatter("%(message)s").format(record))

    handler = Lines(logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio", "condensation")]
    for logger in loggers:
        logger.addHandler(handler)
    yield written
    for logger in loggers:
        logger.removeHandler(handler)


def _started(access):
    from serving import Running

    from condensation.playground import _server

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_server, "warm", lambda: None)
        running = Running(access)
        running.is_well()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def local_server(lines):
    from condensation.playground._access import Access

    yield from _started(Access("127.0.0.1"))


@pytest.fixture(scope="module")
def network_server(lines):
    from condensation.playground._access import Access

    yield from _started(Access("0.0.0.0", "secret"))


def _attacked(running, lines):
    """No attack takes the page away, or leaves a traceback."""
    lines.clear()
    yield running
    assert running.is_well()
    assert not [line for line in lines if "Traceback" in line]


@pytest.fixture
def log(lines):
    """What the servers wrote since the test began."""
    lines.clear()
    return lines


@pytest.fixture
def server(local_server, lines):
    yield from _attacked(local_server, lines)


@pytest.fixture
def guarded(network_server, lines):
    """A server as it is on a network, with the token ``secret``."""
    yield from _attacked(network_server, lines)
