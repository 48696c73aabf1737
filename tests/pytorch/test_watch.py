"""Watching a plain loop: the training stays what it was, the rows are what the weights say, the files go on."""

import copy
import io
import json
import random
import shutil
import sys
import warnings
from dataclasses import asdict

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.tensorboard import SummaryWriter

from condensation import At, Evenly, Every, Geometric, InputError, find_lines, load_run
from condensation._files import read_tensors
from condensation._writing import write_json
from condensation.pytorch import units, watch
from condensation.runs import WatchedRun
from condensation.runs._watched import QUANTITIES, InitialWeights

pytestmark = pytest.mark.pytorch

X = torch.linspace(-2, 2, 320).reshape(64, 5).sin()
Y = X.sum(1, keepdim=True).cos()


def make(seed: int = 0) -> nn.Module:
    """Everything that a careless look would move: dropout, batch norm, spectral norm."""
    torch.manual_seed(seed)
    return nn.Sequential(
        spectral_norm(nn.Linear(5, 30)),
        nn.BatchNorm1d(30),
        nn.Tanh(),
        nn.Dropout(0.3),
        nn.Linear(30, 20),
        nn.ReLU(),
        nn.Linear(20, 1),
    )


def loop(model, watcher=None, steps=30, autocast=False, first=0, optimizer=None):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(first, steps):
        torch.manual_seed(step) if first else None
        batch = torch.randperm(64)[:32]
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = (model(X[batch]) - Y[batch]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if watcher is not None:
            watcher.step(loss)
    return optimizer


def plain(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 30), nn.Tanh(), nn.Linear(30, 4), nn.Linear(4, 1))


def everything(model) -> dict[str, torch.Tensor]:
    state = {name: value.clone() for name, value in model.state_dict().items()}
    return state | {f"grad.{n}": p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def same_state(one, other) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def rows_of(watcher):
    """Rows as they can be compared: NaN is equal to itself here."""
    return [json.dumps(asdict(row)) for row in watcher.rows]


@pytest.mark.usefixtures("unchecked")  # the checker of types draws random numbers, of Python's
@pytest.mark.parametrize("way", ["plain", "compiled", "autocast"])
def test_training_is_bitwise_the_same(way, tmp_path):
    states = []
    for watched in (False, True):
        model = make()
        network = torch.compile(model, backend="eager") if way == "compiled" else model
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        torch.manual_seed(1)
        schedule, keep = Every(1), ["0.weight"]
        watcher = watch(network, tmp_path / way, schedule=schedule, keep=keep, heads=True) if watched else None
        loop(network, watcher, autocast=way == "autocast")
        if watcher:
            watcher.close()
            assert [row.step for row in watcher.rows if row.layer == "0.weight"] == list(range(31))
            assert {row.layer for row in watcher.rows} == {"0.weight", "4.weight", "6.weight"}
        states.append((everything(model), torch.get_rng_state(), np.random.get_state()[1], random.getstate()))  # noqa: NPY002
        assert model.training
        assert not any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in model.modules())
    (ours, torch_rng, numpy_rng, python_rng), (theirs, *rngs) = states
    same_state(ours, theirs)
    assert torch.equal(torch_rng, rngs[0])
    assert np.array_equal(numpy_rng, rngs[1])
    assert python_rng == rngs[2]


def test_a_look_inside_autocast_leaves_its_cache_alone():
    model, grads = make(), []
    for watched in (False, True):
        network = copy.deepcopy(model)
        torch.manual_seed(3)
        with torch.autocast("cpu", torch.bfloat16):
            watcher = watch(network, schedule=Every(1)) if watched else None
            if watcher:
                watcher.step()
            network(X).float().square().mean().backward()
            if watcher:
                watcher.step()
        grads.append(everything(network))
    same_state(*grads)


def test_rows_are_what_the_weights_say(tmp_path):
    model = plain()
    starts = {name: p.detach().clone() for name, p in model.named_parameters()}
    watcher = watch(model, tmp_path, schedule=Every(7), keep=["0.weight", "2.weight"])
    seen = {}
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(1, 31):
        optimizer = loop(model, steps=1, optimizer=optimizer)
        watcher.step(loss=torch.tensor(float(step)))
        seen[step] = {name: p.detach().clone() for name, p in model.named_parameters()}
    watcher.close()
    assert [row.step for row in watcher.rows[::3]] == [0, 7, 14, 21, 28, 30]
    found = load_run(tmp_path)
    for row in watcher.rows:
        if row.step == 0 or row.layer == "3.weight":
            assert row.change == 0 or row.reason.startswith("a single unit")
            continue
        name = row.layer.removesuffix(".weight")
        weight, bias = (seen[row.step][f"{name}.{part}"].numpy() for part in ("weight", "bias"))
        w = np.concatenate([weight, bias[:, None]], axis=1)
        w0 = np.concatenate([starts[f"{name}.weight"].numpy(), starts[f"{name}.bias"].numpy()[:, None]], axis=1)
        lines = find_lines(w)
        assert (row.lines, row.orientations, row.condensed) == (lines.count, lines.orientations, lines.condensed)
        assert (row.cover, row.k_eff) == pytest.approx((lines.cover, lines.k_eff), rel=1e-6)
        wide, wide0 = w.astype(float), w0.astype(float)
        assert row.change == pytest.approx(np.linalg.norm(wide - wide0) / np.linalg.norm(wide0), rel=1e-12)
        shares = np.linalg.svd(wide, compute_uv=False)
        shares /= shares.sum()
        assert row.effective_rank == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-5)
        assert row.loss == row.step
        assert np.array_equal(found.weights(row.layer, row.step, 0), w)
        assert np.array_equal(found.history(row.layer)[0, list(found.saved).index(row.step)], w)
    for layer in ("0.weight", "2.weight"):
        for quantity in QUANTITIES:
            steps, values = watcher.history(layer, quantity)
            assert np.array_equal(steps, found.recorded)
            assert np.array_equal(values, found.curves[f"{quantity}/{layer}"][0])
    assert np.isnan(watcher.history("3.weight", "k_eff")[1]).all()
    assert np.isnan(found.loss[0, 0])
    assert found.loss[0, 1:].tolist() == [7, 14, 21, 28, 30]


def test_a_watched_run_is_read_like_any_other_and_says_what_it_lacks(tmp_path):
    with watch(plain(), tmp_path, keep="0.weight") as watcher:
        loop(plain(), watcher)
    found = load_run(tmp_path)
    assert isinstance(found, WatchedRun)
    assert found.watched.model == "Sequential"
    assert [str(layer) for layer in found.watched.layers] == [
        "0.weight (30 x 6)",
        "2.weight (4 x 31)",
        "3.weight (1 x 5)",
    ]
    assert found.recorded.tolist() == Geometric(2).steps(30)
    assert found.layers == ("0.weight",)
    assert found.weights(1, 30).shape == (1, 30, 6)
    assert found.initial_stage_end(2.0) == (1,)
    assert not found.diverged
    for call in (lambda: found.model(30, 0), lambda: found.output(np.zeros((1, 5)), 30, 0), lambda: found.data(0)):
        with pytest.raises(InputError, match="was watched, not trained here"):
            call()
    with pytest.raises(InputError, match=r"2.weight was measured but not kept; kept are 0.weight"):
        found.weights("2.weight", 30)
    with pytest.raises(InputError, match=r"unknown kept layer '0.weigth'; did you mean '0.weight'"):
        found.history("0.weigth")
    with pytest.raises(InputError, match="those that were watched, not 'kernel'"):
        found.history("0.weight", view="kernel")
    with pytest.raises(InputError, match="step 7 was not saved"):
        found.weights("0.weight", 7)


def test_a_resumed_run_is_an_uninterrupted_one(tmp_path):
    model = plain()
    states, optimizer = {}, torch.optim.SGD(model.parameters(), 0.1)
    whole = watch(model, tmp_path / "one", schedule=Every(4), keep=["0.weight"])
    part = watch(model, tmp_path / "two", schedule=Every(4), keep=["0.weight"])
    for step in range(1, 31):
        loop(model, steps=1, optimizer=optimizer)
        states[step] = copy.deepcopy(model.state_dict())
        whole.step(float(step))
        if step <= 18:
            part.step(float(step))
    whole.close()
    part.close()  # at step 18, which no schedule asked for
    for again, last in ((11, 22), (23, 30)):  # from a checkpoint before the last step, then after a whole step
        other = plain(5)
        part = watch(other, tmp_path / "two", schedule=Every(4), keep=["0.weight"], resume=True)
        for step in range(again, last + 1):
            other.load_state_dict(states[step])
            part.step(float(step), step=step)
        part.close()
    assert rows_of(part) == rows_of(whole)
    one, two = load_run(tmp_path / "one"), load_run(tmp_path / "two")
    assert one.curves.keys() == two.curves.keys()
    assert all(np.array_equal(one.curves[name], two.curves[name], equal_nan=True) for name in one.curves)
    assert np.array_equal(one.history("0.weight"), two.history("0.weight"))
    counted = watch(other, tmp_path / "two", schedule=Every(4), keep=["0.weight"], resume=True)
    counted.step()
    assert counted.last == 31


def test_a_folder_is_not_overwritten_nor_mixed(tmp_path):
    watch(plain(), tmp_path).close()
    with pytest.raises(InputError, match="already holds a watched run of Sequential: resume=True goes on with it"):
        watch(plain(), tmp_path)
    with pytest.raises(InputError, match=r"the layer 0.weight \(30 x 6\) where this model has 0.weight \(31 x 6\)"):
        watch(nn.Sequential(nn.Linear(5, 31), nn.Linear(31, 2)), tmp_path, resume=True)
    with pytest.raises(InputError, match="its model is 'Sequential', not 'Linear'"):
        watch(nn.Linear(5, 31), tmp_path, resume=True)
    with pytest.raises(InputError, match=r"its schedule is Geometric\(per_decade=2\), not Every\(k=3\)"):
        watch(plain(), tmp_path, schedule=Every(3), resume=True)
    with pytest.raises(InputError, match="it has 3 layers, this model 2"):
        watch(plain(), tmp_path, layers=["0.weight", "2.weight"], resume=True)
    about = json.loads((tmp_path / "run.json").read_text())
    about["watched"]["model"] = "Other"
    write_json(tmp_path / "run.json", about)
    with pytest.raises(InputError, match=r"the watched run in .* was changed"):
        load_run(tmp_path)


def test_weights_that_are_not_finite_are_told_and_training_goes_on(tmp_path):
    model = plain()
    with watch(model, tmp_path, schedule=Every(1), keep=["0.weight"]) as watcher:
        for step in range(1, 7):
            with torch.no_grad():
                model[0].weight[3, 2] = float("nan") if step > 3 else 0.5
            watcher.step(float("nan") if step > 4 else 1.0)
    rows = {row.step: row for row in watcher.rows if row.layer == "0.weight"}
    assert not rows[3].reason
    assert rows[4].reason == "1 of 30 units hold NaN or Inf, first unit 3"
    assert all(not row.reason for row in watcher.rows if row.layer == "2.weight")
    found = load_run(tmp_path)
    assert list(found.diverged.values()) == [4]
    assert np.isnan(found.curves["k_eff/0.weight"][0, 4:]).all()
    with pytest.raises(InputError, match="diverged at step 4; its last saved step is 3"):
        found.weights("0.weight", 5, 0)
    again = watch(model, tmp_path, schedule=Every(1), keep=["0.weight"], resume=True)
    assert rows_of(again) == rows_of(watcher)


def test_a_start_of_zeros_has_no_change_but_lines(tmp_path):
    model = nn.Linear(3, 20, bias=False)
    with torch.no_grad():
        model.weight.zero_()
        watcher = watch(model, tmp_path)
        model.weight.fill_(1.0)
    watcher.step()
    assert "norm zero" in watcher.rows[0].reason
    assert watcher.rows[1].lines == 1
    assert np.isnan(watcher.rows[1].change)


def test_names_with_slashes_and_brackets_return(tmp_path):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("a/b [c]", nn.Linear(4, 8))
            self.add_module("ü", nn.MultiheadAttention(8, 2))

    model = Odd()
    with watch(model, tmp_path, heads=True, keep=["a/b [c].weight", "ü.in_proj_weight"]) as watcher:
        watcher.step(0.5)
    found = load_run(tmp_path)
    listed = {one.name: one for one in units(model) if not one.reason}
    assert {row.layer for row in watcher.rows} == listed.keys()
    assert len(found.layers) == 7  # the layer, and two heads of q, k and v
    for name in found.layers:
        assert np.array_equal(found.weights(name, 1, 0), listed[name].weights())
    assert found.curves["k_eff/a/b [c].weight"].shape == (1, 2)
    again = watch(model, tmp_path, heads=True, keep=["a/b [c].weight", "ü.in_proj_weight"], resume=True)
    assert rows_of(again) == rows_of(watcher)
    start = InitialWeights(tmp_path)
    assert all(np.array_equal(start.read(name), one.weights()) for name, one in listed.items())


def test_the_start_is_held_once(tmp_path):
    model = nn.Linear(100, 50)
    in_memory, on_disk = watch(model), watch(model, tmp_path)
    assert isinstance(on_disk._writer._start, InitialWeights)
    start = in_memory._writer._start
    assert sum(array.nbytes for array in start.values()) == 50 * 101 * 4
    with torch.no_grad():
        model.weight.zero_()
    assert start["weight"].any()  # a copy, no view
    in_memory.step()
    on_disk.step()
    assert read_tensors(tmp_path / "initial.safetensors")[1]["weight"].any()
    assert not list(tmp_path.glob(".*"))


def test_numbers_go_to_loggers(tmp_path):
    class Log:
        def __init__(self):
            self.told = []

        def log(self, numbers, step=None):
            self.told.append((step, numbers))

    class Metrics(Log):
        def log_metrics(self, metrics, step):
            self.log(metrics, step)

        log = Log.log

    class Positional(Log):
        def log(self, numbers, at):
            self.told.append((at, numbers))

    told, log, metrics, positional = [], Log(), Metrics(), Positional()
    writer = SummaryWriter(tmp_path)
    model = plain()
    function = lambda numbers, step: told.append((step, numbers))  # noqa: E731
    with watch(model, to=[writer, log, metrics, positional, function]) as watcher:
        loop(model, watcher, steps=10)
    writer.close()
    assert told == log.told == metrics.told == positional.told
    assert [step for step, _ in told] == Geometric(2).steps(10)
    events = EventAccumulator(str(tmp_path)).Reload()
    for layer in ("0.weight", "2.weight"):
        for quantity in QUANTITIES:
            name = f"condensation/{layer}/{quantity}"
            steps, values = watcher.history(layer, quantity)
            assert [numbers[name] for _, numbers in told] == values.tolist()
            assert [event.step for event in events.Scalars(name)] == steps.tolist()
            np.testing.assert_allclose([event.value for event in events.Scalars(name)], values, rtol=1e-6)
    assert not any("3.weight" in name for name in told[0][1])  # a single unit has no lines


def test_a_budget_leaves_steps_out():
    model = nn.Linear(300, 300)
    with watch(model, schedule=Every(1), budget=0.02) as watcher:
        for _ in range(200):
            watcher.step()
    steps = [row.step for row in watcher.rows]
    assert steps[0] == 0
    assert steps[-1] == 200
    assert len(steps) < 100


def test_steps_as_they_are_told():
    watcher = watch(plain(), schedule=Every(10))
    for step in (4, 4, 9, 13, 19, 20, 41):
        watcher.step(step=step)
    assert sorted({row.step for row in watcher.rows}) == [0, 13, 20, 41]
    with pytest.raises(InputError, match="step 40 was told after step 41, but steps only go forwards"):
        watcher.step(step=40)
    watcher.close()
    watcher.close()
    with pytest.raises(InputError, match="this watcher was closed"):
        watcher.step()
    with pytest.raises(InputError, match="loss must be one number, not a tensor of shape"):
        watch(plain()).step(torch.ones(3))


def test_an_exception_leaves_what_was_measured(tmp_path):
    model = plain()

    def fails():
        with watch(model, tmp_path, schedule=Every(4)) as watcher:
            loop(model, watcher, steps=6)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert load_run(tmp_path).recorded.tolist() == [0, 4]
    assert json.loads((tmp_path / "run.json").read_text())["seeds"]


def test_a_disk_that_fills_up_does_not_stop_a_training(tmp_path, monkeypatch):
    from condensation.runs import RunFolder

    model = plain()
    watcher = watch(model, tmp_path, schedule=Every(1))
    watcher.step()

    def full(*_):
        raise InputError("no space is left")

    monkeypatch.setattr(RunFolder, "write", full)
    monkeypatch.setattr("condensation.runs._watch_writer.WRITING", 1.0)
    with pytest.warns(UserWarning, match="no space is left; the training goes on"):
        watcher.step()
    with warnings.catch_warnings(action="error"):
        watcher.step()  # said once
    with pytest.raises(InputError, match="no space is left"):
        watcher.close()
    assert len(watcher.rows) == 12
    assert load_run(tmp_path).recorded.tolist() == [0, 1]


def test_a_live_table_shows_each_measured_step(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    terminal = sys.stderr
    with watch(plain(), schedule=Every(2), live=True) as watcher:
        for _ in range(5):
            watcher.step(0.25)
    shown = [f"Sequential, step {step}, loss 0.25" in terminal.getvalue() for step in (1, 2, 3, 4, 5)]
    assert shown == [False, True, False, True, True]
    assert sys.stderr is terminal


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layers": ["0.wieght"]}, "unknown layer '0.wieght'; did you mean '0.weight'"),
        ({"layers": ["1.weight"]}, "the layer 1.weight has no units: "),
        ({"layers": []}, "layers names no layer"),
        ({"keep": ["9.weight"]}, "unknown layer to keep '9.weight'"),
        ({"layers": ["3.weight"], "keep": ["0.weight"]}, "unknown layer to keep '0.weight'"),
        ({"schedule": 10}, r"is Geometric\(per_decade\), Every\(k\) or At\(steps\), which need no last step, not 10"),
        ({"schedule": Evenly(10)}, r"which need no last step, not Evenly\(count=10\)"),
        ({"budget": 1.5}, "budget is a share of the time between 0 and 1, not 1.5"),
        ({"threshold": 0}, "threshold is a cosine between 0 and 1, not 0"),
        ({"view": "rows"}, "unknown view of convolution layers 'rows'"),
        ({"to": 3}, "to must be tensorboard, wandb, mlflow, a SummaryWriter"),
        ({"out": __file__}, "cannot be made"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_one_sentence(options, said):
    model = nn.Sequential(nn.Linear(5, 30), nn.BatchNorm1d(30), nn.Tanh(), nn.Linear(30, 4))
    with pytest.raises(InputError, match=said):
        watch(model, **options)


@pytest.mark.usefixtures("unchecked")
def test_models_without_units_are_refused():
    with pytest.raises(InputError, match="the model LayerNorm has no units to watch; "):
        watch(nn.LayerNorm(3))
    with pytest.raises(InputError, match="the model Tanh has no parameters"):
        watch(nn.Tanh())
    with pytest.raises(InputError, match=r"a model must be a torch.nn.Module, not list"):
        watch([])


def test_listed_steps():
    with watch(plain(), schedule=At((3, 5))) as watcher:
        for _ in range(8):
            watcher.step()
    assert sorted({row.step for row in watcher.rows}) == [0, 3, 5, 8]
    watcher = watch(plain(), schedule=Every(7))
    watcher.step(step=10**12)  # a jump is not walked
    assert sorted({row.step for row in watcher.rows}) == [0, 10**12]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ZeroDivisionError])
def test_a_step_is_measured_whole_or_not_at_all(kind, tmp_path, monkeypatch):
    module, model, options = (
        sys.modules["condensation.pytorch._watch"],
        plain(),
        {"schedule": Every(2), "keep": ["0.weight"]},
    )
    measured, left = module.measure_units, [3 + 3 + 1]  # the start, step 2, and the first of three layers

    def interrupted(*args, **more):
        left[0] -= 1
        if left[0] == -1:
            raise kind
        return measured(*args, **more)

    monkeypatch.setattr(module, "measure_units", interrupted)
    with pytest.raises(kind), watch(model, tmp_path, **options) as watcher:
        loop(model, watcher, steps=6)
    steps = [0, 2, 4] if kind is KeyboardInterrupt else [0, 2]  # one is measured at the end, the other is not
    assert [row.step for row in watcher.rows] == [step for step in steps for _ in range(3)]
    assert load_run(tmp_path).history("0.weight").shape == (1, len(steps), 30, 6)
    with watch(model, tmp_path, resume=True, **options) as again:
        again.step(step=5)
    assert load_run(tmp_path).recorded.tolist() == [*steps, 5]


def test_a_logger_that_fails_is_told_once_and_files_are_written(tmp_path):
    class Broken:
        def log(self, numbers, step):
            raise ConnectionError("no network")

    def last(numbers, step):
        if step == 4:
            raise ValueError("at the end")

    model, told = plain(), []
    with (
        warnings.catch_warnings(record=True, action="always") as said,
        watch(model, tmp_path, schedule=Every(3), to=[Broken(), last, lambda _, step: told.append(step)]) as watcher,
    ):
        loop(model, watcher, steps=4)
    broken, ended = [str(one.message) for one in said]
    assert "Broken failed: ConnectionError('no network'); the training goes on" in broken
    assert "last failed: ValueError('at the end'); the training goes on" in ended
    assert told == load_run(tmp_path).recorded.tolist() == [0, 3, 4]
    assert json.loads((tmp_path / "run.json").read_text())["seeds"]


def test_a_live_table_that_fails_is_told(monkeypatch):
    monkeypatch.setattr("condensation.drawing._terminal.LiveTable.show", lambda *_: 1 / 0)
    with (
        pytest.warns(UserWarning, match="the live table failed: ZeroDivisionError"),
        watch(plain(), live=True) as watcher,
    ):
        watcher.step()
    assert len(watcher.rows) == 6


def test_a_loss_that_is_none_leaves_the_files(tmp_path):
    watcher = watch(plain(), tmp_path, schedule=At((9,)))
    watcher.step(torch.ones(3))  # nobody looks at it yet
    with pytest.raises(InputError, match="the loss must be one number"):
        watcher.close()
    assert load_run(tmp_path).recorded.tolist() == [0]
    assert json.loads((tmp_path / "run.json").read_text())["seeds"]


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_folder_that_is_deleted_does_not_stop_a_training(tmp_path, when):
    model = plain()
    watcher = watch(model, tmp_path / "run", schedule=Every(1), keep=["0.weight"])
    with warnings.catch_warnings(record=True, action="always") as said:
        optimizer = None if when == "before" else loop(model, watcher, steps=2)
        shutil.rmtree(tmp_path / "run")
        loop(model, watcher, steps=3, optimizer=optimizer)
        watcher.close()
    assert len(said) == 1
    assert "the training goes on, the change of its layers is NaN from here on" in str(said[0].message)
    change = watcher.history("0.weight", "change")[1]
    assert np.isnan(change[-3:]).all()
    assert not np.isnan(watcher.history("0.weight", "k_eff")[1]).any()
    found = load_run(tmp_path / "run")
    assert np.array_equal(found.curves["change/0.weight"][0], change, equal_nan=True)


def test_a_layer_that_cannot_be_read_has_a_reason(tmp_path):
    torch.manual_seed(0)
    model = nn.ModuleDict({name: nn.Linear(6, 20) for name in ("resized", "meta", "deleted", "whole")})
    options = {"schedule": Every(1), "keep": ["meta.weight", "whole.weight"]}
    with watch(model, tmp_path, **options) as watcher:
        watcher.step()
        model["resized"].weight = nn.Parameter(torch.ones(7, 6))
        model["resized"].bias = nn.Parameter(torch.ones(7))
        model["meta"].to("meta")
        del model["deleted"].weight
        watcher.step()
    reasons = {row.layer: row.reason for row in watcher.rows if row.step == 2}
    assert all(reasons[f"{name}.weight"].startswith("cannot be read: ") for name in ("resized", "meta", "deleted"))
    assert "meta tensor" in reasons["meta.weight"]
    assert reasons["whole.weight"] == ""
    assert not any(row.reason for row in watcher.rows if row.step < 2)
    found = load_run(tmp_path)
    assert not found.diverged
    assert np.isnan(found.weights("meta.weight", 2, 0)).all()
    assert np.isfinite(found.history("whole.weight")).all()
    again = watch(nn.ModuleDict({n: nn.Linear(6, 20) for n in model}), tmp_path, **options, resume=True)
    assert rows_of(again) == rows_of(watcher)


def test_a_folder_is_watched_by_one_watcher(tmp_path):
    first = watch(plain(), tmp_path)
    with pytest.raises(InputError, match="another watcher of this process writes to"):
        watch(plain(), tmp_path)
    first.step()
    with pytest.raises(InputError, match="another watcher of this process writes to"):
        watch(plain(), tmp_path, resume=True)
    first.close()
    watch(plain(), tmp_path, resume=True).close()
    forgotten = watch(plain(), tmp_path / "other")
    del forgotten
    assert not list((tmp_path / "other").iterdir())
    watch(plain(), tmp_path / "other").close()


def test_a_resumed_watcher_that_is_told_nothing_changes_nothing(tmp_path):
    model = plain()
    watcher = watch(model, tmp_path, schedule=Every(4))
    loop(model, watcher, steps=7)
    watcher.close(measure=False)  # as after an error
    look = lambda: {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}  # noqa: E731
    before = look()
    watch(plain(3), tmp_path, schedule=Every(4), resume=True).close()
    with pytest.raises(ZeroDivisionError), watch(plain(3), tmp_path, schedule=Every(4), resume=True):
        raise ZeroDivisionError
    assert look() == before


def test_heads_are_named_as_they_are_listed(tmp_path):
    model = nn.MultiheadAttention(8, 2)
    whole, heads = ([one.name for one in units(model, heads=heads) if not one.reason] for heads in (False, True))
    head = "in_proj_weight[q, head 1]"
    assert head in heads
    assert head not in whole
    layers = lambda **options: [row.layer for row in watch(model, **options).rows]  # noqa: E731
    assert layers() == whole
    assert layers(layers=head) == [head]
    assert layers(layers=heads) == layers(heads=True) == heads
    assert layers(heads=True, layers=["in_proj_weight[q]"]) == ["in_proj_weight[q]"]
    assert layers(keep=iter([head])) == [*whole, head]
    with watch(model, tmp_path, layers=[head], keep=[head]) as watcher:
        watcher.step()
    weights = next(one.weights() for one in units(model) if one.name == head)
    assert np.array_equal(load_run(tmp_path).weights(head, 1, 0), weights)
    with pytest.raises(InputError, match=r"unknown layer 'in_proj_weight\[q, head 2\]'"):
        watch(model, layers=["in_proj_weight[q, head 2]"])


def test_layers_without_a_size_yet_are_told():
    """They would be left out of the whole training without a word."""
    model = nn.Sequential(nn.LazyLinear(5), nn.Linear(5, 3))
    with pytest.warns(UserWarning, match=r"left out: 0\.weight and 1 more, not initialised: the model has to see"):
        watcher = watch(model)
    assert {row.layer for row in watcher.rows} == {"1.weight"}
    watcher.close()
    with watch(model, layers=["1.weight"]):  # asked for: nothing is said
        pass


def test_layers_are_named_with_and_without_weight(tmp_path):
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    with watch(model, tmp_path, layers=["0"], keep=["0"]) as watcher:
        watcher.step(0.5)
    assert [row.layer for row in watcher.rows] == ["0.weight"] * 2
    assert all(map(np.array_equal, watcher.history("0", "k_eff"), watcher.history("0.weight", "k_eff")))
    assert load_run(tmp_path).history("0.weight").shape == (1, 2, 6, 5)
    with pytest.raises(InputError, match=r"unknown layer '1'; known: 0\.weight, 2\.weight"):
        watch(model, layers=["1"])
    with pytest.raises(InputError, match="the layer 0 has no units: a norm"):
        watch(nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 5)), layers=["0"])
