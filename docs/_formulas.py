r"""Formulas between dollar signs as MathML, which browsers draw without any script or font from elsewhere."""

import html
import re

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content, page, config, files):
    """What the extension arithmatex marked, of pages and of docstrings."""
    return FORMULA.sub(
        lambda found: convert(html.unescape(found[2]), display="inline" if found[1] == "span" else "block"), content
    )
