"""The rooms and their layers as a picture, from the import contract that tests/test_imports.py checks."""

import ast
from pathlib import Path

MARK = "<!-- rooms -->"
TEST = Path(__file__).parents[1] / "tests" / "test_imports.py"
WIDTH, ROW, GAP, LETTER = 860, 30, 8, 7.3  # pixels


def layers():
    """The layers of the contract, from the bottom up."""
    for node in ast.parse(TEST.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            return ast.literal_eval(node.value)
    raise LookupError(f"{TEST.name} has no LAYERS")


def rows_of(rooms):
    """The rooms of a layer in rows that fit the width, each with its width."""
    rows, used = [[]], 0.0
    for room in rooms:
        width = len(room) * LETTER + 18
        if used + width > WIDTH - 40:
            rows, used = [*rows, []], 0.0
        rows[-1].append((room, width))
        used += width + GAP
    return rows


def picture():
    """One band for each layer, the lowest at the bottom."""
    shapes, y = [], GAP
    for layer in reversed(layers()):
        rows = rows_of(layer)
        height = len(rows) * ROW + GAP
        shapes.append(f'<rect class="layer" x="30" y="{y}" width="{WIDTH - 32}" height="{height}" rx="4"/>')
        for number, row in enumerate(rows):
            x, top = 30 + GAP, y + GAP + number * ROW
            for room, width in row:
                kind = "private" if room.startswith("_") else "room"
                shapes.append(f'<rect class="{kind}" x="{x:.0f}" y="{top}" width="{width:.0f}" height="22" rx="3"/>')
                shapes.append(f'<text x="{x + width / 2:.0f}" y="{top + 15.5}">{room}</text>')
                x += width + GAP
        y += height + GAP
    arrow = f'<path class="arrow" d="M14 {GAP} V{y - GAP} m-5 -8 l5 8 l5 -8"/>'
    title = "<title>The rooms in their layers: each imports only what stands below it</title>"
    return f'<svg class="rooms" viewBox="0 0 {WIDTH} {y}" role="img">{title}{arrow}{"".join(shapes)}</svg>'


def on_page_markdown(markdown, page, config, files):
    """Put the picture where a page asks for it."""
    return markdown.replace(MARK, picture()) if MARK in markdown else markdown
