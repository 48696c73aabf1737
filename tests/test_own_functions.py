"""Functions that no module has (of a notebook's cell, lambdas, closures) are known by their source."""

import functools
import importlib
import itertools
import json
import linecache
import pickle
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import condensation as c
from condensation._captured import _read
from condensation._functions import KEPT, function_at, function_fingerprint, function_path, received, sent
from condensation._writing import write_json
from condensation.runs import run_folder
from condensation.runs._store import ExperimentFolder
from condensation.sweeps._rows import measure_rows
from condensation.sweeps._run import pairs_of
from condensation.sweeps._task import Task
from condensation.sweeps._worker import pack

CELL = """
import jax, jax.numpy as jnp
import numpy as np
SLOPE, TABLE, UNUSED = 2.0, np.array([1.0, 2.0]), 1
x, run = "a global that the function does not use", object()

def inner(x):
    return jnp.tanh(x)

def bump(x, power=2):
    '''An activation.'''
    run = x ** power
    return SLOPE * inner(x) + TABLE[0] * run
"""


class Kernel:
    """A notebook as IPython has it: cells are run in ``__main__``, and their lines are known to ``linecache``."""

    numbers = itertools.count()

    def __init__(self, monkeypatch):
        self.main = types.ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", self.main)

    def run(self, text):
        name = f"/tmp/ipykernel_0/{next(self.numbers)}.py"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        exec(compile(text, name, "exec"), self.main.__dict__)
        return self

    def __getattr__(self, name):
        return self.main.__dict__[name]


@pytest.fixture
def kernel(monkeypatch):
    return lambda text="": Kernel(monkeypatch).run(text)


def of(activation, **changes):
    network, data = c.Dense((1, 4, 1), activation), c.two_waves(n=8)
    return c.Experiment(network, c.Init(c.Normal(0.1)), data, c.GD(0.1), 3).replace(**changes)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("", "", True),
        ("An activation.", "Another docstring.", True),
        ("TABLE[0] * run", "TABLE[0]  *  run  # a comment", True),
        ("np.array([1.0, 2.0]), 1", "np.array([1.0, 2.0]), 7", True),
        ('x, run = "a global', 'x, run = "another global', True),
        ("SLOPE, TABLE, UNUSED = 2.0", "SLOPE, TABLE, UNUSED = 3.0", False),
        ("[1.0, 2.0]", "[1.0, 2.5]", False),
        ("[1.0, 2.0]", "[1, 2]", False),
        ("jnp.tanh", "jnp.sin", False),
        ("SLOPE * inner", "-SLOPE * inner", False),
        ("power=2", "power=3", False),
    ],
)
def test_a_restarted_kernel_gives_the_same_fingerprint_and_an_edit_another(kernel, old, new, same):
    first = of(kernel(CELL).bump).fingerprint()
    assert (of(kernel("print\n\n" + CELL.replace(old, new)).bump).fingerprint() == first) is same


def test_functions_of_one_line_and_of_one_text_are_told_apart_by_what_they_do(kernel):
    cell = kernel(
        "pair = (lambda x: x + 1), (lambda x: x + 2)\n"
        "nested = lambda: lambda x: x\n"
        "made = [(lambda k: lambda x: k * x)(k) for k in (1, 2, 1)]\n"
        "given = [lambda x, k=k: k * x for k in (1, 2, 1)]\n"
        "late = [lambda x: k * x for k in (1, 2)]\n"
        "lines = (lambda\n  x: (x\n  * 3))\n"
    )
    names = [function_path(each) for each in (*cell.pair, cell.nested, cell.nested(), *cell.made, *cell.given)]
    assert len({*names}) == 8
    assert names[4] == names[6] != names[5]
    assert names[7] == names[9] != names[8]
    assert function_path(cell.late[0]) == function_path(cell.late[1])  # both are 2 x
    assert [function_at(name)(5) for name in names[:2]] == [6, 7]
    assert function_at(function_path(cell.lines))(5) == 15


def test_a_decorated_function_is_known_with_its_decorator(kernel):
    text = "import jax\nrate = 2.0\ndef scaled(k):\n    return lambda f: jax.jit(lambda x: k * f(x))\n"
    plain = kernel(text + "@jax.jit\ndef f(x):\n    return x\n")
    assert function_path(plain.f) == function_path(kernel(text + "@jax.jit\ndef f(x):\n    return x\n").f)
    assert function_path(plain.f) != function_path(kernel("def f(x):\n    return x\n").f)
    with pytest.raises(c.InputError, match=r"f was wrapped .* where its source does not show it: write that as"):
        function_path(jax.grad(kernel("def f(x):\n    return x\n").f))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f = eval('lambda x: x')", r"the source of the function <lambda> cannot be read \(it was typed at a prompt"),
        (
            "import numpy\nrng = numpy.random.default_rng(0)\ndef f(x):\n    return rng",
            "f uses rng, a Generator",
        ),
        ("class Own:\n    pass\ndef f(x):\n    return Own", "f uses Own, the class Own, whose content cannot be told"),
        ("own = [object()]\ndef f(x):\n    return own", r"f uses own\[0\], a object, whose content"),
        ("import functools\nf = functools.partial(max, 1)", "is no plain function, .* write it with def"),
    ],
)
def test_what_has_no_digest_is_refused_in_one_sentence_and_trains_all_the_same(kernel, text, said):
    with pytest.raises(c.InputError, match=said):
        function_path(kernel(text).f)


def test_a_function_that_cannot_be_read_trains_without_a_folder():
    own = of(eval("lambda x: 2 * x", {}))
    np.testing.assert_array_equal(c.train(own).loss, c.train(of(lambda x: 2 * x)).loss)
    with pytest.raises(c.InputError, match="define it in a cell of a notebook, in a script or in a module"):
        own.fingerprint()


def test_values_of_many_kinds_are_captured(kernel):
    text = "import jax.numpy as jnp, numpy as np, functools, condensation as c\nfrom numpy import sin\n"
    text += "OWN = {'a': [1, (2.0, None)], 'b': {3, 4}, 'c': jnp.ones(2), 'd': np.float32(1), 'e': c.Normal(0.1)}\n"
    text += "OWN['self'] = OWN\npart = functools.partial(jnp.power, 2)\n"
    text += "def f(x):\n    return OWN, sin, part, len, f\n"
    first = function_path(kernel(text).f)
    assert function_path(kernel(text).f) == first
    edits = ("None", "0"), ("3, 4", "3, 5"), ("jnp.ones", "jnp.zeros"), ("float32", "float64")
    others = {function_path(kernel(text.replace(*edit)).f) for edit in (*edits, ("(0.1", "(0.2"))}
    others.add(function_path(kernel(text.replace("import sin", "import cos as sin")).f))
    assert len(others - {first}) == 6


def test_a_file_that_was_edited_under_its_functions_is_said(tmp_path, monkeypatch):
    """A script, or a module that makes functions: what runs is not what the file has now."""
    text = "def make(k):\n    def f(x):\n        return k * x + 1\n    return f\n\ndef g(x):\n    return x\n"
    (tmp_path / "own_maker.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import own_maker  # type: ignore[import-not-found]

    assert function_path(own_maker.make(2)) == function_path(own_maker.make(2)) != function_path(own_maker.make(3))
    edited, old = own_maker.make(2), own_maker.g
    (tmp_path / "own_maker.py").write_text(text.replace("+ 1", "+ 2"))
    _read.cache_clear()
    with pytest.raises(c.InputError, match=r"the function f cannot be read \(.*own_maker.py was edited since\)"):
        function_path(edited)
    importlib.reload(own_maker)
    assert function_path(own_maker.g) == "own_maker:g"
    with pytest.raises(c.InputError, match="g is not the one that the module own_maker has under this name"):
        function_path(old)
    sys.modules.pop("own_maker")


def test_what_changes_under_a_function_is_said(kernel):
    """Compiled code has the old value, the source the new one."""
    cell = kernel(CELL)
    own = of(cell.bump)
    own.fingerprint()
    cell.run("SLOPE = 3.0")
    with pytest.raises(c.InputError, match=r"what the function bump uses has changed .*'SLOPE: 3.0'.*run its cell"):
        own.fingerprint()
    cell.run("SLOPE = 2.0")
    own.fingerprint()
    cell.run("def inner(x):\n    return x")
    with pytest.raises(c.InputError, match=r"what the function bump uses has changed .*def inner"):
        own.fingerprint()


def test_a_run_is_found_again_where_its_function_is_defined_as_it_was(kernel, tmp_path):
    own = of(kernel(CELL).bump)
    trained = c.train(own, out=tmp_path)
    folder = run_folder(tmp_path, own)
    name = json.loads((folder / "run.json").read_text())["experiment"]["network"]["activation"]
    assert name == function_path(own.network.activation)
    assert name.startswith("__main__:bump#")
    assert c.load_run(folder).experiment == own
    restarted = kernel(CELL)
    again = c.load_run(folder)
    assert again.experiment.network.activation is restarted.bump
    np.testing.assert_array_equal(again.loss, trained.loss)
    (file,) = folder.glob("data*.safetensors")
    before = file.stat().st_mtime_ns
    np.testing.assert_array_equal(c.train(of(restarted.bump), out=tmp_path).loss, trained.loss)
    assert [*folder.glob("*.safetensors")] == [file]
    assert file.stat().st_mtime_ns == before  # nothing was trained again
    model = trained.model(3, 0)
    model.save(tmp_path / "model.safetensors")
    assert c.Model.load(tmp_path / "model.safetensors").network == again.experiment.network


def test_a_longer_training_goes_on_from_a_shorter_one(kernel, tmp_path):
    own = of(kernel(CELL).bump)
    c.train(own, out=tmp_path)
    longer = of(kernel(CELL).bump).extended(3)
    assert [*ExperimentFolder.make(tmp_path, longer).from_shorter({c.Seed(0, 0)})] == [c.Seed(0, 0)]
    went_on = c.train(longer, out=tmp_path)
    np.testing.assert_array_equal(went_on.loss, c.train(longer).loss)
    (first, *_), (second, *_) = c.train(own, out=tmp_path).loss, went_on.loss
    np.testing.assert_array_equal(second[: len(first)], first)


def test_a_run_whose_function_is_not_here_is_refused_and_nothing_runs(kernel, tmp_path, monkeypatch):
    own = of(kernel(CELL).bump)
    c.train(own, out=tmp_path)
    folder, digest = run_folder(tmp_path, own), function_path(own.network.activation).partition("#")[2]
    monkeypatch.setattr("condensation._functions._DEFINED", {})  # another session
    for text in ("", CELL.replace("SLOPE * inner", "-SLOPE * inner"), "bump = 3", "class bump:\n    pass"):
        kernel(text)
        said = rf"'__main__:bump' is not defined here as it was \(source {digest}\), and no file has its code: run the"
        for trust in (False, True):
            with pytest.raises(c.InputError, match=said):
                c.load_run(folder, trust=trust)


@pytest.mark.parametrize("name", ["os:system#0", "builtins:exec#0", "__main__:<lambda>#0", "json:dumps#", "a:b#c#d"])
def test_a_digest_opens_no_other_functions(tmp_path, name):
    own = of("tanh")
    c.train(own, out=tmp_path)
    file = run_folder(tmp_path, own) / "run.json"
    plain = json.loads(file.read_text())
    plain["experiment"]["network"]["activation"] = name
    write_json(file, plain)
    with pytest.raises(c.InputError, match=r"is not imported, and opening data|is not defined here|is no function"):
        c.load_run(file.parent)


@pytest.mark.parametrize(
    "field", ["network.activation", "init.hidden", "init.output", "data", "test", "loss", "loss.name"]
)
@pytest.mark.parametrize("name", ["subprocess:run", "no_such_module:f"])
def test_no_field_of_a_run_imports_what_it_names(tmp_path, field, name):
    own = of("tanh")
    c.train(own, out=tmp_path)
    file = run_folder(tmp_path, own) / "run.json"
    plain = json.loads(file.read_text())
    *path, last = field.split(".")
    functools.reduce(dict.__getitem__, path, plain["experiment"])[last] = name
    write_json(file, plain)
    with pytest.raises(c.InputError, match=f"the function '{name}' is not imported, and opening data runs no code"):
        c.load_run(file.parent)


def test_a_link_to_the_page_names_no_function():
    from condensation.playground._settings import Settings

    with pytest.raises(c.InputError, match=r"unknown activation 'jax\.nn:relu'"):
        Settings.from_text({"layers": "jax.nn:relu"})


def test_a_file_of_settings_names_functions_of_modules_only(kernel):
    with pytest.raises(c.InputError, match=r"bump cannot be named as module:function, .*: move it to the top level"):
        of(kernel(CELL).bump).to_toml()
    assert 'activation = "jax.nn:relu"' in of("jax.nn:relu").to_toml().replace("jax._src.nn.functions", "jax.nn")


def test_a_function_goes_to_another_process_and_is_the_same_there_each_time(kernel, monkeypatch):
    cell = kernel(CELL)
    name, content = sent(cell.bump)[1]
    kernel()
    monkeypatch.setattr("condensation._functions._DEFINED", {})
    there = received(name, content)
    assert there is not cell.bump
    assert there(1.0) == cell.bump(1.0)
    assert function_path(there) == function_fingerprint(there) == name
    assert received(name, content) is there
    assert sent(json.dumps) is None


def test_a_task_goes_to_a_worker_with_what_it_trained(kernel, tmp_path):
    cell = kernel(CELL + "def last(run, step):\n    return SLOPE * step\n")
    sweep = c.sweeps.Sweep(of(cell.bump), {"optimizer.learning_rate": [0.1]}, measure=cell.last)
    task = Task(tmp_path, "", tuple(pairs_of(sweep)), sweep.measuring, sweep.measuring.key)
    content = task.pairs, [c.train(of(cell.bump))], task.measuring
    pairs, runs, measuring = pickle.loads(pack(content, tmp_path))
    assert measure_rows(pairs, runs, measuring).table["last"].to_pylist() == [6.0]
    assert pairs[0].experiment.network.activation is cell.bump


def test_old_functions_are_forgotten(kernel):
    for k in range(KEPT + 9):
        function_path(eval_cell(k))
    from condensation import _functions

    assert len(_functions._DEFINED) <= KEPT


def eval_cell(k):
    return lambda x: k * x


def test_partial_functions_train_and_have_no_fingerprint():
    own = of(functools.partial(jax.nn.leaky_relu, negative_slope=0.5))
    assert np.isfinite(c.train(own).loss).all()
    with pytest.raises(c.InputError, match="write it with def"):
        own.fingerprint()
    assert jnp.tanh is function_at(function_path(jnp.tanh))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (jax.nn.softmax, "given one, failed: ValueError"),
        (lambda z: z / (1 + jnp.sum(z**2)), "depends on the others beside it"),
        (lambda z: z.sum(), r"gives an array of shape \(\) for one of \(2, 3\)"),
        (lambda z: z if z > 0 else 0 * z, "failed: ValueError: The truth value"),
        (lambda z: np.tanh(np.asarray(z)), "failed: TracerArrayConversionError"),
    ],
    ids=["softmax", "normalised", "summed", "branches", "numpy"],
)
@pytest.mark.parametrize("network", [c.Dense((1, 4, 1)), c.Attention(2, 3, 1, feed_forward=4)], ids=["dense", "heads"])
def test_an_activation_that_mixes_units_or_samples_is_refused(network, function, said):
    x = np.random.default_rng(0).normal(size=(5, *network.input_shape))
    own = c.Experiment(network, c.Init(c.Normal(0.5)), c.Arrays(x, x.reshape(5, -1)[:, 0]), c.GD(0.1), 2)
    kinked = own.replace(**{"network.activation": lambda z: jnp.where(z > 0, z, 0.1 * z)})
    assert np.isfinite(c.train(kinked).loss).all()
    with pytest.raises(c.InputError, match=rf"must be a function of one number written with jax\.numpy: it.*{said}"):
        c.train(own.replace(**{"network.activation": function}))
