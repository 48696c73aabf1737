"""Pools of processes: what is left of those that were killed as a whole, whose signals they hear."""

import os

from condensation import _leftovers as leftovers


def test_only_what_dead_processes_of_ours_left_is_removed(tmp_path, monkeypatch):
    """Of a living one nothing, of another program nothing, and nothing that is no semaphore of joblib's."""
    monkeypatch.setattr(leftovers, "SHARED", tmp_path / "shared")
    monkeypatch.setattr(leftovers, "own_folder", lambda name: tmp_path / name)
    monkeypatch.setattr(leftovers, "_HELD", [])
    monkeypatch.setattr(leftovers, "_KNOWN", set())
    every = tmp_path / "condensation-pools"
    for folder in (every, leftovers.SHARED):
        folder.mkdir()
    names = {"dead": "sem.loky-1-aaa", "living": "sem.loky-2-bbb", "another": "sem.loky-1-ccc", "other": "sem.mp-1"}
    for name in names.values():
        (leftovers.SHARED / name).touch()
    (tmp_path / "victim").touch()
    for owner in ("dead", "living"):
        (every / owner).mkdir()
        (every / owner / "lock").touch()
    (every / "dead" / "semaphores").write_text(f"{names['dead']}\n../victim\nsem.mp-1\nsem.loky-9-gone\n")
    (every / "living" / "semaphores").write_text(names["living"])
    (every / "file").touch()
    with leftovers.lock_file(every / "living" / "lock"):
        own = leftovers.pool_folder.__wrapped__()
    assert own is not None
    assert {path.name for path in leftovers.SHARED.iterdir()} == {*names.values()} - {names["dead"]}
    assert (tmp_path / "victim").exists()
    assert {path.name for path in every.iterdir()} == {"living", "file", own.name}
    mine = f"sem.loky-{os.getpid()}-ddd"
    (leftovers.SHARED / mine).touch()
    assert leftovers.semaphores() == {mine}
    monkeypatch.setattr(leftovers, "pool_folder", lambda: own)
    leftovers.note()
    leftovers.note()
    assert (own / "semaphores").read_text() == f"{mine}\n"
    leftovers._leave(own)
    assert not own.exists()
