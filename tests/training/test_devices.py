"""Blocks of networks dealt to several devices, here two that a CPU is divided into; sizes of blocks and of calls."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    Conv,
    Dense,
    Evenly,
    Every,
    Experiment,
    Geometric,
    Init,
    Loss,
    Normal,
    Seed,
    sine_sum,
    train,
)
from condensation import _device as device
from condensation.training import _chunks as chunks
from condensation.training import _engine as engine
from condensation.training import _work as work
from condensation.training._chunks import RunPlan
from condensation.training._train import member_of, program_of

train_module = sys.modules[train.__module__]

pytestmark = pytest.mark.trials
DATA = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
BASE = Experiment(Dense((5, 50, 1)), Init(Normal(0.005)), DATA, Adam(1e-3), 600, save=Every(200))
MEMBER = member_of(BASE, Seed(0, 0))
PROGRAM = program_of([BASE], [MEMBER])
stream = np.random.default_rng(0)
IMAGES = Arrays(stream.normal(size=(16, 1, 8, 8)), np.eye(3)[stream.integers(3, size=16)])
CONV = Experiment(
    Conv((1, 8, 8), channels=(4,), kernel=3, outputs=3, hidden=(16,)), Init(Normal(0.1)), IMAGES, GD(1e-2), 30,
    Loss("cross_entropy"), save=Every(10), dtype="float32",
)  # fmt: skip
# In a process with two devices: trains, writes the arrays, and tells on which devices the blocks' states lay. The first
# block on a device waits there for the other device's first: it goes on only if they are trained at the same time.
SCRIPT = """
import functools, json, os, sys, threading
sys.path.insert(0, {tests!r})
import jax, numpy as np
from condensation import _device as device, train
from condensation.training import _chunks as chunks, _stepwise as stepwise, _work as work
from training.test_devices import BASE, CONV
module = sys.modules[train.__module__]
run, on_cpu, lock, told = module.run, device.on_cpu, threading.Lock(), {{}}

def watch(kind):
    advance = kind.advance
    def watched(self, call, state, fixed):
        after = advance(self, call, state, fixed)
        if call.lengths:
            on = {{one.id for leaf in jax.tree.leaves((after[0], fixed)) for one in leaf.devices()}}
            with lock:
                first = on.isdisjoint(one for seen in blocks.values() for one in seen)
                blocks.setdefault(str(self.places), set()).update(on)
            if first:
                met.wait(300)
        return after
    kind.advance = watched

def see(name, experiment, seeds, devices, **given):
    global blocks, met
    blocks, met = {{}}, threading.Barrier(devices)
    found = train(experiment, seeds, **given)
    np.savez(os.path.join({folder!r}, name), **found.parameters, **found.curves)
    told[name] = [sorted(on) for on in blocks.values()]

watch(work.Work)
watch(stepwise.Stepwise)
see("single", BASE, 5, 2)
see("conv", CONV, 2, 1)
module.run = functools.partial(run, block=2)
see("blocks", BASE, 5, 2)
module.run = run
device.on_cpu = lambda: False  # for the dealing only
see("conv-gpu", CONV, 3, 2)
device.on_cpu = on_cpu
with jax.default_device(jax.devices()[1]):
    see("chosen", BASE, 2, 1)
chunks.SECONDS_PER_CALL = 0.002
def stop(progress):
    if progress.done > 0.3 * progress.total:
        raise KeyboardInterrupt
try:
    see("interrupted", BASE, 5, 2, out={folder!r}, progress=stop)
except KeyboardInterrupt:
    see("resumed", BASE, 5, 2, out={folder!r})
print(json.dumps({{"devices": len(jax.devices()), "blocks": told}}))
"""
TWO = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}


def same(found, trajectory) -> None:
    expected = trajectory.parameters | trajectory.curves
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_two_devices_share_the_networks_and_give_the_same_numbers(tmp_path, monkeypatch):
    code = SCRIPT.format(tests=str(Path(__file__).parents[1]), folder=str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", code], env=os.environ | TWO, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])
    assert told["devices"] == 2
    blocks = told["blocks"]
    for name in ("single", "resumed", "blocks", "conv-gpu"):
        assert {on for [on] in blocks[name]} == {0, 1}, name
    left = lambda name: np.load(tmp_path / f"{name}.npz")  # noqa: E731
    alone = train(BASE, 5)
    same(left("single"), alone)
    # interrupted there, and gone on with there
    assert "interrupted" not in blocks
    same(left("resumed"), alone)
    same(left("resumed"), train(BASE, 5, out=tmp_path))
    # the user's default device is the only one
    assert blocks["chosen"] == [[1], [1]]
    same(left("chosen"), train(BASE, 2))
    # convolutions have a CPU one after the other, and GPUs side by side
    assert blocks["conv"] == [[0], [0]]
    same(left("conv"), train(CONV, 2))
    same(left("conv-gpu"), train(CONV, 3))
    # batches as on two GPUs, the last of them padded
    assert len(blocks["blocks"]) == 3
    monkeypatch.setattr(train_module, "run", functools.partial(engine.run, block=2))
    same(left("blocks"), train(BASE, 5))


def test_an_interrupt_stops_the_workers_of_two_devices():
    """A real Ctrl-C, received by a worker's thread."""
    code = (
        "import signal, threading\n"
        "from condensation import *\n"
        "d = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)\n"
        "e = Experiment(Dense((5, 50, 1)), Init(Normal(0.005)), d, GD(1e-3), 50_000_000, save=Evenly(3))\n"
        "once = iter([signal.SIGINT])\n"
        "def interrupt(_):\n"
        "    [signal.pthread_kill(threading.get_ident(), number) for number in once]\n"
        "train(e, 4, progress=interrupt)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | TWO, stderr=subprocess.PIPE, text=True, timeout=300
    )
    assert "KeyboardInterrupt" in ended.stderr
    assert ended.returncode != 0


@pytest.mark.parametrize(
    ("count", "cpu", "whole", "expected"),
    [
        (1, True, False, [0, 0, 0, 0]),
        (2, True, False, [0, 1, 0, 1]),
        (6, True, False, [0, 1, 2, 3, 4, 5]),
        (2, True, True, [0]),
        (1, False, False, [0]),
        (3, False, False, [0, 1, 2]),
        (3, False, True, [0, 1, 2]),
    ],
)
def test_places_for_work(count, cpu, whole, expected, monkeypatch):
    """On a machine of four cores."""
    monkeypatch.setattr(device, "cores", lambda: 4)
    monkeypatch.setattr(device, "devices", lambda: list(range(count)))
    monkeypatch.setattr(device, "on_cpu", lambda: cpu)
    assert device.device_slots(whole) == expected


def test_a_batch_has_one_of_two_sizes_and_fits_into_memory():
    assert [engine.batch_size(MEMBER, share) for share in (1, 10, 1024, 8192)] == [1024] * 4
    assert [engine.batch_size(MEMBER, share) for share in (8193, 16384, 10**6)] == [16384] * 3
    for width, few in ((1000, 1024), (10_000, 128), (100_000, 8), (1_000_000, 1)):
        wide = member_of(BASE.replace(network=Dense((5, width, 1))), Seed(0, 0))
        assert engine.batch_size(wide, 1) == engine.batch_size(wide, 10**6) == few
        assert few * 80 * width * 8 <= 2**30  # of what the units pass on


def test_calls_are_long_beside_what_a_call_takes_by_itself():
    """A call that takes two seconds and 10 ms a step has steps for eighteen, not the one that 0.3 s would leave."""
    plan = RunPlan(np.array([0, 10**6]), np.array([0, 10**6]), overhead=2.0)
    cut = chunks.Chunks(plan, 2, cut=True)
    for _ in range(5):
        cut.took(2.0 + 0.01 * plan.most, plan.most)
    assert 1500 <= plan.most <= 1800
    plan.overhead = 0.0
    cut.took(0.01 * plan.most, plan.most)
    assert 25 <= plan.most <= 30
    plan.overhead = 100.0  # timed in a bad moment: no call takes so long for that
    for _ in range(5):
        cut.took(0.01 * plan.most, plan.most)
        assert 0.01 * plan.most <= 10


@given(recorded=st.integers(1, 60), bits=st.integers(0), room=st.integers(1, 40), networks=st.integers(1, 3))
def test_a_call_holds_as_many_rows_as_its_room_for_saved_ones_allows(recorded, bits, room, networks):
    """Against all windows of rows, one after the other."""
    saved = np.array([k for k in range(recorded + 1) if bits >> k & 1 or k in (0, recorded)])
    size = 8 * 350 * networks  # of one saved row, beside which the curves are nothing
    members = dict.fromkeys(range(networks), MEMBER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "BYTES_PER_CALL", room * size)
        plan = RunPlan(np.arange(recorded + 1), saved)
        batch = work.Work(PROGRAM, plan, members, [None] * networks, networks)
    held = lambda rows: max(np.isin(np.arange(k, k + rows), saved).sum() for k in range(recorded + 2 - rows))  # noqa: E731
    assert batch.slots == held(batch.rows) <= room
    assert batch.rows == recorded + 1 or held(batch.rows + 1) > room


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize(("save", "record"), [(Every(1), Every(1)), (Geometric(5), Evenly(41)), (Every(30), Every(3))])
def test_calls_with_little_room_leave_the_same(save, record, block, monkeypatch):
    """However few saved rows fit into a call, none is lost and none is in another's place."""
    monkeypatch.setattr(train_module, "run", functools.partial(engine.run, block=block))
    experiment = BASE.replace(save=save, record=record, steps=100, **{"network.widths": (5, 4, 1)})
    roomy = train(experiment, 5)
    for room in (1, 4000):
        monkeypatch.setattr(work, "BYTES_PER_CALL", room)
        tight = train(experiment, 5)
        same(tight.parameters | tight.curves, roomy)
