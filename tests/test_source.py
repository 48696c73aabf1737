"""A user's function is known by what it does, not by its name: an edit of it is another experiment."""

import importlib
import os
import subprocess
import sys
import types
import warnings

import jax.numpy as jnp
import pytest

from condensation import GD, Dense, Experiment, Init, InputError, Normal, load_run, train, two_waves
from condensation._source import SourceUnknown, source_digest

TEXT = """import jax.numpy as jnp
import numpy as np
import own_helpers

SLOPE = 2.0
TABLE = np.array([1.0, 2.0])


def inner(x):
    return jnp.tanh(x)


def activation(x):
    \"\"\"An activation.\"\"\"
    return SLOPE * inner(x) + own_helpers.shift(x) * TABLE[0]
"""
HELPERS = "def shift(x):\n    return 0 * x\n"


class Module:
    """A module of the user's that can be edited."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, text=TEXT, helpers=HELPERS):
        """The module, imported anew from its new text."""
        for name, content in (("own_helpers", helpers), ("own_functions", text)):
            (self.folder / f"{name}.py").write_text(content)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("own_functions").activation


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Module(tmp_path)
    for name in ("own_functions", "own_helpers"):
        sys.modules.pop(name, None)


def experiment(activation):
    return Experiment(Dense((1, 4, 1), activation), Init(Normal(0.1)), two_waves(), GD(0.1), steps=5)


@pytest.mark.parametrize(
    "edit",
    [
        {"text": TEXT.replace("jnp.tanh(x)", "jnp.sin(x)")},
        {"text": TEXT.replace("SLOPE = 2.0", "SLOPE = 3.0")},
        {"text": TEXT.replace("SLOPE * inner(x)", "inner(x)")},
        {"text": TEXT.replace("[1.0, 2.0]", "[1.5, 2.0]")},
        {"helpers": HELPERS.replace("0 * x", "x")},
    ],
    ids=["helper", "constant", "function", "array", "module"],
)
def test_an_edit_of_the_function_or_of_what_it_uses_changes_the_fingerprint(module, edit):
    before = experiment(module.write()).fingerprint()
    assert experiment(module.write()).fingerprint() == before
    assert experiment(module.write(**edit)).fingerprint() != before


@pytest.mark.parametrize(
    "edit",
    [
        TEXT.replace('"""An activation."""', '"""Another docstring."""'),
        "# a comment\n" + TEXT.replace("SLOPE * inner", "SLOPE  *  inner"),
        TEXT + "\n\ndef unused(x):\n    return x\n",
    ],
    ids=["docstring", "comment", "another function"],
)
def test_what_has_no_effect_keeps_the_fingerprint(module, edit):
    before = experiment(module.write()).fingerprint()
    assert experiment(module.write(edit)).fingerprint() == before


def test_sets_and_tables_of_functions_are_the_same_in_every_process(module, tmp_path):
    """A set has no order, and a function no address, that a fingerprint could depend on."""
    text = TEXT + "\nNAMES = {'a', 'b', 'c', 'd'}\nTABLE_OF = {'inner': inner, 'sin': [jnp.sin, jnp.cos]}\n"
    text = text.replace("return SLOPE *", "return len(NAMES) * TABLE_OF['inner'](x) + SLOPE *")
    script = "from own_functions import activation; from condensation._source import source_digest as d; "
    script += "print(d(activation))"
    module.write(text)
    digests = set()
    for seed in ("1", "2", "3"):
        own = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        digests.add(subprocess.run([sys.executable, "-c", script], env=own, capture_output=True, check=True).stdout)
    assert len(digests) == 1
    edits = ("'d'", "'e'"), ("[jnp.sin, jnp.cos]", "[jnp.cos, jnp.sin]"), ("return jnp.tanh", "return jnp.arctan")
    changed = {source_digest(module.write(text.replace(*edit))) for edit in (("a", "a"), *edits)}
    assert len(changed) == 1 + len(edits)


def test_an_edited_function_is_trained_again_and_its_old_run_is_refused(module, tmp_path):
    out = tmp_path / "runs"
    first = train(experiment(module.write()), out=out)
    (folder,) = out.iterdir()
    edited = experiment(module.write(TEXT.replace("jnp.tanh(x)", "jnp.sin(3 * x)")))
    second = train(edited, out=out)
    assert second.loss[0, -1] != first.loss[0, -1]
    assert len([*out.iterdir()]) == 2
    with pytest.raises(InputError, match="is not the one that was run"):
        load_run(folder)
    module.write()
    assert load_run(folder).loss[0, -1] == first.loss[0, -1]


def test_functions_of_installed_packages_are_known_by_name():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert source_digest(jnp.tanh) == ""
        assert source_digest(experiment) != ""


def test_a_function_without_a_source_says_so(monkeypatch):
    made = types.ModuleType("made_at_run_time")
    exec("def activation(x):\n    return x", made.__dict__)
    monkeypatch.setitem(sys.modules, "made_at_run_time", made)
    with pytest.warns(SourceUnknown, match="known by its name alone"):
        assert experiment(made.activation).fingerprint()
