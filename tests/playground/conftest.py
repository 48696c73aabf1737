"""For the tests in a browser: one server and one Chromium for all of them, a fresh page for each."""

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
