r"""Runs a program for many networks, and is the one place that decides how that is done on this machine.

A run is a list of *rows*. Row k records the weights and the curves at a step, then takes the steps up to the next
recorded one. All steps of all rows go through one compiled step, so the numbers do not depend on what is recorded, on
how rows are cut into chunks, or on which networks run beside. (Gradient flow starts its integrator anew at each record:
there they agree within its tolerance.)

- On a CPU a dense network's rows are one compiled loop, and each network is its own task, dealt to as many threads as
  there are cores: small networks stay in the cache, and a network's numbers cannot depend on its company.
- On a GPU dense networks are trained in large batches, one at a time.
- A convolutional network takes one compiled step after the other from Python, using the whole machine for each: inside
  a compiled loop a CPU's convolutions are several times slower, and samples beyond memory can be evaluated in parts.
- Several devices share the networks: each takes the next block when it has done one.
"""

import atexit
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from queue import Queue
from typing import Any

import jax
import numpy as np

from .._device import device_slots, on_cpu
from .._precision import precision
from ..runs import Record
from ._chunks import RunPlan
from ._program import Program
from ._stepwise import Stepwise
from ._work import Member, Work

BATCH, LARGE_BATCH = 2**10, 2**14  # networks on a GPU
BATCH_BYTES = 2**32
_AT_WORK: set[int] = set()  # threads that train
log = logging.getLogger(__name__)


def run(program: Program, members: Sequence[Member], plan: RunPlan, *, block: int | None = None) -> list[Record]:
    """Train all members; ``block`` networks go through one call (default: 1 on a CPU, a constant batch on a GPU)."""
    stepwise = program.stepwise
    places = device_slots(whole_machine=stepwise)
    block = block or (1 if on_cpu() or stepwise else batch_size(members[0], -(-len(members) // len(places))))
    kept = plan.checkpoints.load() if plan.checkpoints else {}
    records = {k: checkpoint.record for k, checkpoint in kept.items() if checkpoint.finished}
    if records:
        plan.report(int(plan.recorded[-1]) * len(records), float("nan"))
    left = [k for k in range(len(members)) if k not in records]
    blocks = [left[k : k + block] for k in range(0, len(left), block)]
    if stepwise:
        plan.most = 1  # a step may take a second; what fits into a call is learned
    make = Stepwise if stepwise else Work
    tasks = [
        make(program, plan, {k: members[k] for k in group}, [kept.get(k) for k in group], block) for group in blocks
    ]
    free: Queue[Any] = Queue()
    for place in places:
        free.put(place)
    compiling, compiled = {place: threading.Lock() for place in places}, set()

    def on_free_device(work: Work) -> dict[int, Record]:
        place = free.get()
        _AT_WORK.add(threading.get_ident())
        try:
            with jax.default_device(place), precision(program.dtype):  # settings of the thread
                fixed = work.gather_fixed()
                with compiling[place]:
                    if place not in compiled and not plan.stop.is_set():
                        work.compile(fixed)
                        compiled.add(place)
                return work.run(fixed)
        except BaseException:
            plan.stop.set()  # the others need not go on
            raise
        finally:
            _AT_WORK.discard(threading.get_ident())
            free.put(place)

    with ThreadPoolExecutor(len(places)) as pool:
        try:
            for future in [pool.submit(on_free_device, work) for work in tasks]:
                while not future.done():  # without a timeout, a Ctrl-C that another thread received would not wake us
                    wait([future], timeout=0.2)
                records |= future.result()
        except BaseException as error:
            plan.stop.set()
            if isinstance(error, KeyboardInterrupt):
                log.info("stopping: the steps that are being taken come to their end first")
            pool.shutdown(cancel_futures=True)
            raise
    return [records[k] for k in range(len(members))]


@atexit.register
def _end_at_once() -> None:
    """End a process that shall not wait for its threads (a third Ctrl-C, say): in native code they would abort it."""
    if _AT_WORK:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for output in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                output.flush()
        os.kill(os.getpid(), signal.SIGINT)


def alone(program: Program, member: Member) -> Work:
    """One network that is trained chunk by chunk, each of at most two rows."""
    rows = np.arange(2)
    return (Stepwise if program.stepwise else Work)(program, RunPlan(rows, rows), {0: member}, [None], 1)


def batch_size(member: Member, share: int) -> int:
    """Networks in a batch on a GPU that has ``share`` of them to train; less than that is padded.

    One of two constants, because float32 sums depend on it. With 2^10, ten seeds are not padded to thousands, and a
    seed's numbers do not depend on its company; thousands that fill at least half of 2^14 take the large batch, and
    their numbers differ from those of the small one by rounding. Both are halved until they fit into memory, where
    samples, parameters with gradient and moments, and what each unit passes on and back for each sample are counted.
    """
    inputs = [member.x, *(member.test or ())[:1]]
    values = member.init.values()
    units = sum(len(value) for value in values if value.ndim > 1)
    counted = sum(x.size + 4 * units * len(x) for x in inputs) + 6 * sum(value.size for value in values)
    most = LARGE_BATCH if 2 * share > LARGE_BATCH else BATCH
    return int(np.clip(2 ** np.floor(np.log2(BATCH_BYTES / (8 * counted))), 1, most))
