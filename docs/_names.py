"""The names at the top of the package as a table, from its stub, each linked to the room that documents it."""

import ast
from pathlib import Path

MARK = "<!-- names -->"
STUB = Path(__file__).parents[1] / "src" / "condensation" / "__init__.pyi"


def table():
    """A row for each room that gives names to the package."""
    rooms = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("_"):
            rooms.setdefault(node.module, []).extend(alias.name for alias in node.names)
    rows = [
        f"| `{room}` | " + ", ".join(f"[`{name}`][condensation.{room}.{name}]" for name in names) + " |"
        for room, names in sorted(rooms.items())
    ]
    return "\n".join(["| room | names |", "| --- | --- |", *rows])


def on_page_markdown(markdown, page, config, files):
    """Put the table where a page asks for it."""
    return markdown.replace(MARK, table()) if MARK in markdown else markdown
