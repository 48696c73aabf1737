"""The import contract: rooms know only what stands below them, imports inside functions counted."""

import ast
from pathlib import Path

import pytest

import condensation

ROOT = Path(condensation.__file__).parent
LAYERS = (  # from the bottom up; a room imports itself and the layers below its own
    ("errors", "_locks", "_phrases", "_source"),
    ("_captured", "_display", "_memory", "_regular", "_sketch"),
    ("_functions", "_leftovers", "_plain", "_seals"),
    (
        "_dependencies",
        "_files",
        "_formula",
        "_device",
        "_precision",
        "_processes",
        "_serialization",
        "_settings",
        "_templates",
        "_threads",
        "_versions",
    ),
    ("_writing",),
    ("_stored",),
    ("activations", "seeds", "saving", "schedules", "losses"),
    ("_seeds_header",),
    ("networks",),
    ("initialization", "optimizers"),
    ("data",),
    ("derivatives", "experiment", "measure"),
    ("runs", "theory"),
    ("training", "prediction", "reduction"),
    ("sweeps",),
    ("drawing", "verification"),
    ("weights",),
    ("pytorch",),
    ("papers",),
    ("cli", "playground"),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
SHARED = {"", "__init__", "__version__"}  # the package itself: its version
PLAY = ("cli", "playground")  # the command starts the page; the page knows nothing of the command


def imports(path: Path) -> set[tuple[str, int]]:
    """Rooms that a module imports, with the line, at its top or inside functions; annotations only are left out."""
    package = path.relative_to(ROOT).parts[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unused = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    rooms = set()
    for node in ast.walk(tree):
        if node in unused or not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            target = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
        elif (node.module or "").split(".")[0] == "condensation":
            target = node.module.split(".")[1:]
        else:
            continue
        target = [part for part in target if part]
        rooms |= {(target[0], node.lineno)} if target else {(alias.name, node.lineno) for alias in node.names}
    return rooms


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def violations(path: Path) -> list[str]:
    room = room_of(path)
    return [
        f"{path.relative_to(ROOT)}:{line}: {room} imports {other}"
        for other, line in sorted(imports(path))
        if other != room
        and other not in SHARED
        and (room, other) != PLAY
        and not (other in LEVEL and LEVEL[other] < LEVEL[room])
    ]


MODULES = sorted(
    path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in ("__init__.py", "__main__.py")
)


def test_each_module_stands_in_a_room_of_the_contract():
    assert {room_of(path) for path in MODULES} == set(LEVEL)


def test_rooms_import_only_what_stands_below():
    assert [line for path in MODULES for line in violations(path)] == []


def test_an_arrow_that_is_turned_is_found(tmp_path, monkeypatch):
    (tmp_path / "measure").mkdir()
    module = tmp_path / "measure" / "_lines.py"
    module.write_text("def count():\n    from ..training import train\n    from ..errors import InputError\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert violations(module) == ["measure/_lines.py:2: measure imports training"]


@pytest.mark.parametrize("room", sorted({path.parent for path in ROOT.rglob("__init__.pyi")}))
def test_a_public_name_is_no_module(room):
    """A function that shadows the module it stands in could not be told from it."""
    public = {path.stem for path in room.glob("*.py") if not path.stem.startswith("_")}
    stub = ast.parse((room / "__init__.pyi").read_text(encoding="utf-8"))
    names = {
        alias.name
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    assert not names & public
