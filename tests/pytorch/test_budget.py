"""What watching may take, what waits to be measured, and the trainings of which it is asked."""

import copy
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from condensation import Every, InputError, load_run
from condensation.pytorch import _budget, units, watch
from condensation.pytorch._copies import Copier
from condensation.runs._watched import compact

pytestmark = pytest.mark.pytorch


def plain(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 30), nn.Tanh(), nn.Linear(30, 4))


class Training:
    """A training on a clock of its own: a step takes a second, a measurement ``cost`` of them."""

    def __init__(self, monkeypatch, cost, share=0.03, model=None, **options):
        self.now, module = 0.0, sys.modules["condensation.pytorch._watch"]
        monkeypatch.setattr(module, "Budget", lambda _: _budget.Budget(share, lambda: self.now))
        measured = module.measure_units

        def measure(name, *args, **more):
            self.now += cost if name == "0.weight" else 0
            return measured(name, *args, **more)

        monkeypatch.setattr(module, "measure_units", measure)
        self.model = plain() if model is None else model
        self.cost, self.watcher, self.seen = cost, watch(self.model, keep=["0.weight"], **options), {}

    def steps(self, first, last, seconds=1.0):
        for step in range(first, last + 1):
            self.now += seconds
            with torch.no_grad():
                self.model[0].weight.add_(0.01 * step)
            self.seen[step] = units(self.model)[0].weights()
            self.watcher.step(float(step))
        return self

    def measured(self):
        return sorted({row.step for row in self.watcher.rows})


@pytest.mark.parametrize("cost", [0.3, 1, 4])
def test_all_that_is_spent_stays_within_the_share_at_every_moment(monkeypatch, cost):
    training = Training(monkeypatch, cost, schedule=Every(10))
    for step in range(1, 1001):
        training.steps(step, step)
        spent = cost * len(training.measured())
        assert len(training.measured()) == 1 or spent + cost <= 0.03 * step + 1e-9  # the last one is laid by
    training.watcher.close()
    steps = training.measured()
    assert steps[0] == 0
    assert steps[-1] == 1000
    assert len(steps) == min(101, int(30 / cost))  # all that can be paid for


def test_a_due_step_is_measured_late_with_the_weights_that_it_had(monkeypatch):
    training = Training(monkeypatch, 1, schedule=Every(20)).steps(1, 400)
    training.watcher.close()
    assert training.measured() == [*range(0, 220, 20), 400]  # twelve seconds of 400
    run = training.watcher.trajectory
    for step in training.measured()[1:]:
        assert np.array_equal(run.weights("0.weight", step, 0), training.seen[step])
        assert all(row.loss == step for row in training.watcher.rows if row.step == step)


def test_a_compilation_or_a_validation_pays_for_nothing(monkeypatch):
    training = Training(monkeypatch, 1, schedule=Every(5)).steps(1, 1, seconds=1000).steps(2, 10)
    training.steps(11, 11, seconds=1000).steps(12, 60)
    assert training.measured() == [0]
    assert training.steps(61, 110).measured() == [0, 5]


def test_where_no_copy_can_wait_a_later_step_is_measured(monkeypatch):
    monkeypatch.setattr("condensation.pytorch._copies.MOST", 100)
    training = Training(monkeypatch, 1, schedule=Every(10)).steps(1, 250)
    training.watcher.close()
    assert not training.watcher._waiting
    assert training.measured() == [0, 100, 134, 167, 200, 234, 250]


def test_the_default_and_none(monkeypatch):
    monkeypatch.setattr("condensation.pytorch._watch.BUDGET", 0.03)
    assert watch(plain())._budget.share == 0.03
    assert Training(monkeypatch, 50, share=None, schedule=Every(2)).steps(1, 9).measured() == [0, 2, 4, 6, 8]


@pytest.mark.usefixtures("unchecked")
def test_weights_are_the_same_with_copies(monkeypatch):
    states = []
    for watched in (False, True):
        model = plain(3)
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        watcher = Training(monkeypatch, 2, model=model, schedule=Every(3)).watcher if watched else None
        for step in range(60):
            loss = model(torch.linspace(-1, 1, 40).reshape(8, 5).add(step).sin()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if watcher is not None:
                watcher.step(loss)
        states.append(copy.deepcopy(model.state_dict()))
    assert watcher is not None
    assert watcher._waiting
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_copies_are_read_in_the_place_of_the_model():
    model = nn.Sequential(nn.Linear(6, 8), nn.MultiheadAttention(8, 2)).to(torch.bfloat16)
    listed = [layer for layer in units(model) if not layer.reason]
    before = [layer.weights() for layer in listed]
    copies = Copier(listed).take(3, 0.5)
    assert copies is not None
    with torch.no_grad():
        for value in model.parameters():
            value.zero_()
    with copies.read():
        assert all(np.array_equal(layer.weights(), old) for layer, old in zip(listed, before, strict=True))
    assert not any(layer.weights().any() for layer in listed)
    assert all(value.dtype == torch.bfloat16 for value in copies.values.values())
    del model[0].weight
    assert Copier(listed).take(4, None) is None


def test_gradient_accumulation_counts_optimizer_steps():
    model, seen = plain(), {}
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, schedule=Every(2), keep=["0.weight"]) as watcher:
        for batch in range(1, 25):
            (model(torch.full((4, 5), float(batch)).sin()).square().mean() / 4).backward()
            if batch % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
                watcher.step()
                seen[watcher.last] = units(model)[0].weights()
    assert sorted({row.step for row in watcher.rows}) == [0, 2, 4, 6]
    assert all(np.array_equal(watcher.trajectory.weights("0.weight", step, 0), seen[step]) for step in (2, 4, 6))


def test_a_moving_average_is_watched_beside_its_model(tmp_path):
    model = plain()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    own, smooth = watch(model, schedule=Every(5)), watch(average, tmp_path, schedule=Every(5), keep=["0.weight"])
    expected = [value.detach().clone() for value in model.parameters()]
    for step in range(10):
        with torch.no_grad():
            for value in model.parameters():
                value.add_(0.1)
        average.update_parameters(model)
        decay = 0.9 if step else 0.0  # the first update copies
        expected = [decay * old + (1 - decay) * new for old, new in zip(expected, model.parameters(), strict=True)]
        own.step()
        smooth.step()
    smooth.close()
    assert [row.layer for row in own.rows] == [row.layer for row in smooth.rows]
    weights = torch.cat([expected[0], expected[1][:, None]], 1).detach().numpy()
    assert load_run(tmp_path).weights("0.weight", 10, 0) == pytest.approx(weights, abs=1e-6)
    assert own.rows[-1].change > 1.2 * smooth.rows[-1].change


@pytest.mark.filterwarnings("ignore")  # PyTorch's own
def test_a_compiled_training_is_watched():
    """By its own compiler, where there is one; the weights are those of the training that is not watched."""
    states = []
    for watched in (False, True):
        model = plain(1)
        network = torch.compile(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        watcher = watch(network, schedule=Every(2), budget=0.5) if watched else None
        for _ in range(6):
            optimizer.zero_grad()
            try:
                network(torch.linspace(-1, 1, 40).reshape(8, 5)).square().mean().backward()
            except torch._inductor.exc.InductorError as error:
                pytest.skip(f"no compiler: {error}")
            optimizer.step()
            if watcher is not None:
                watcher.step()
        states.append(model.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_a_forgotten_step_is_warned_of(tmp_path):
    model = plain()

    def change():
        with torch.no_grad():
            model[0].weight.add_(1)

    with warnings.catch_warnings(action="error"):
        watch(model, tmp_path / "unchanged").close()
    forgotten = r"no step was told: call watcher.step\(loss\) after optimizer.step\(\)"
    with pytest.warns(UserWarning, match=forgotten), watch(model, tmp_path / "closed"):
        change()
    watcher = watch(model)
    change()
    with pytest.warns(UserWarning, match="no step was told"):
        del watcher
    with warnings.catch_warnings(action="error"), watch(model) as watcher:
        change()
        watcher.step()


def test_a_cell_that_is_run_again_overwrites_its_run(tmp_path):
    for _ in range(3):  # the last watcher of a cell lives on until another one takes its name
        model = plain()
        watcher = watch(model, tmp_path, schedule=Every(1), overwrite=True)
        for _ in range(3):
            watcher.step(0.5)
    watcher.close()
    assert load_run(tmp_path).recorded.tolist() == [0, 1, 2, 3]
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = watch(nn.Linear(4, 9), tmp_path, overwrite=True)  # nothing is lost before the first step
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name in kept} == kept
    other.step()
    other.close()
    assert load_run(tmp_path).watched.model == "Linear"
    with pytest.raises(InputError, match="resume=True goes on with it, overwrite=True begins another one"):
        watch(model, tmp_path)
    with pytest.raises(InputError, match="choose one of them"):
        watch(model, tmp_path, resume=True, overwrite=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_the_start_is_kept_in_the_type_of_the_model(dtype, tmp_path):
    model = nn.Linear(100, 50).to(dtype)
    weights = units(model)[0].weights()
    in_memory, on_disk = watch(model), watch(model, tmp_path)
    start = in_memory._writer._start
    assert isinstance(start, dict)
    assert start["weight"].nbytes == 50 * 101 * dtype.itemsize
    for watcher in (in_memory, on_disk):
        watcher.step()
        assert np.array_equal(watcher._writer.start_of("weight"), weights)
        assert watcher.rows[0].change == 0
    assert (tmp_path / "initial.safetensors").stat().st_size < 50 * 101 * dtype.itemsize + 1000


def test_what_half_precision_does_not_hold_stays():
    values = np.array([1.0, 0.1, 70000.0, np.nan], np.float32)
    assert compact(values).dtype == np.float32
    assert compact(np.array([1.0, 70000.0, 2.0**-140], np.float32)).dtype == np.float32
    assert compact(np.array([1.0, np.nan, np.inf], np.float32)).dtype.name == "bfloat16"


SHARDED = """
import os, sys
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from safetensors.torch import save_file
from condensation import Every
from condensation.pytorch import watch

rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", world_size=2, rank=rank)
mesh = init_device_mesh("cpu", (2,))
for way in ("none", "watched", "again"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 31), nn.Tanh(), nn.Linear(31, 4))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    options = dict(schedule=Every(4), keep=["0.weight"], budget=None if way == "watched" else 0.9)
    out = f"{folder}/watched"
    watcher = None if way == "none" else watch(model, out, resume=way == "again", **options)
    steps = range(1, 11) if way != "again" else range(7, 15)
    for step in steps:
        loss = model(torch.linspace(-1, 1, 40).reshape(8, 5).add(rank + step).sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if watcher is not None:
            watcher.step(loss, step=step)
    if watcher is not None:
        watcher.close()
    state = {name: value.full_tensor() for name, value in model.state_dict().items()}
    if rank == 0:
        save_file(state, f"{folder}/{way}.safetensors")
distributed.barrier()
os._exit(0)  # gloo's threads may wait for ever for a process that ends in good order
"""


def test_a_model_that_is_spread_over_processes(tmp_path):
    """Two processes of FSDP2: all gather, the first writes; the weights are as without, and a run goes on."""
    from safetensors.torch import load_file

    commands = [[sys.executable, "-c", SHARDED, str(rank), str(tmp_path)] for rank in (0, 1)]
    processes = [subprocess.Popen(one, stderr=subprocess.PIPE, text=True) for one in commands]
    for process in processes:
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said
    without, watched, again = (load_file(tmp_path / f"{way}.safetensors") for way in ("none", "watched", "again"))
    assert all(torch.equal(without[name], watched[name]) for name in without)
    found = load_run(tmp_path / "watched")
    assert found.watched.model == "Sequential"
    assert found.recorded.tolist()[:2] == [0, 4]
    assert found.recorded.tolist()[-1] == 14
    assert np.array_equal(found.weights("0.weight", 14, 0)[:, :5], again["0.weight"].numpy())
    assert not [row.reason for row in found.rows if row.reason]


def test_a_step_at_which_nothing_is_due_is_two_readings_of_the_clock(monkeypatch):
    """Of a small model a step takes 0.2 ms, of which 3% are some microseconds: few functions may be called."""
    waiting = Training(monkeypatch, 1, schedule=Every(10)).steps(1, 15).watcher
    assert waiting._waiting
    idle = watch(plain(), schedule=Every(1000))
    idle.step(0.5)
    for watcher in (idle, waiting):
        called, loss = set(), torch.tensor(0.5)
        sys.setprofile(lambda frame, _, __, called=called: called.add(frame.f_code.co_name))
        watcher.step(loss)
        sys.setprofile(None)
        assert {"begin", "end"} <= called
        assert not called & {"_told", "allows", "ready", "told", "__enter__", "helper", "check_whole"}, called
