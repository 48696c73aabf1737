"""Signatures as ``help()`` prints them: a parameter is a line, however its type is made."""

import json
import subprocess
import sys

PROGRAM = """
import ast, importlib, inspect, json, pathlib
import condensation

root = pathlib.Path(condensation.__file__).parent
found = {}


def add(name, value):
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # a union of types, an exception
        return
    found[name] = [str(signature), [str(each) for each in signature.parameters.values()]]


for stub in root.rglob("__init__.pyi"):
    room = ".".join(stub.parent.relative_to(root.parent).parts)
    for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8"))):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            value = getattr(importlib.import_module(room), alias.name)
            if inspect.ismodule(value):
                own = [(n, v) for n, v in vars(value).items() if getattr(v, "__module__", "") == value.__name__]
                inner = [(f"{value.__name__}.{n}", v) for n, v in own if n[0] != "_" and callable(v)]
            else:
                inner = [(f"{room}.{alias.name}", value)] if callable(value) else []
            for name, each in inner:
                add(name, each)
                for method in vars(each) if inspect.isclass(each) else ():
                    if method[0] != "_" and inspect.isroutine(getattr(each, method)):
                        add(f"{name}.{method}", getattr(each, method))
print(json.dumps(found))
"""


def test_every_public_signature_can_be_read():
    """In a process of its own, without the checks of types that the other tests put around functions."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 400
    assert {"condensation.theory.fates", "condensation.derivatives.ntk", "condensation.runs.Run.weights"} <= {*found}
    long = [(name, each) for name, (_, parameters) in found.items() for each in parameters if len(each) > 100]
    assert long == [], "from __future__ import annotations in its module keeps the names of types"
    whole = [(name, text) for name, (text, parameters) in found.items() if len(text) > 300 and len(parameters) < 7]
    assert whole == []
    assert max(len(text) for text, _ in found.values()) < 850  # the measures of a row are many
