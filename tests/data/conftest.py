"""No test of data touches the user's cache, folder or network by accident."""

import pytest

from condensation.data import _images as images


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CONDENSATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CONDENSATION_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    images._all.cache_clear()
    return tmp_path / "cache"
