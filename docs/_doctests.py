"""Doctests of docstrings as blocks of code: Markdown would take their ``>>>`` for quotations."""

import re

from griffe import Extension

DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(Extension):
    """Fences each doctest."""

    def on_instance(self, *, obj, **kwargs):
        """Called for each object that is read."""
        if obj.docstring:
            obj.docstring.value = DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
