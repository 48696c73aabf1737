"""Backends, where the tasks of a sweep run: processes of this machine, Dask or Ray; always through joblib.

``workers`` tells how many tasks run side by side, ``on_gpus`` whether on GPUs; ``run`` runs packed tasks and gives
their outcomes in the same order. A cluster with GPUs gives one to each task; a process with several devices deals the
networks of a task to all of them (``training/_engine``).
An error of ``run`` that is no ``InputError`` means a lost scheduler or lost workers.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from queue import Empty, Queue
from typing import Any, ClassVar

from joblib import Parallel, delayed
from joblib.parallel import ParallelBackendBase

from .._device import cores, devices, on_cpu
from .._processes import Processes
from ..errors import InputError, check_whole, unknown_name
from ._rows import one_line
from ._task import Outcome
from ._worker import work

SOON = 2  # seconds after which a wait is told
WAIT = 30  # seconds for a scheduler, and for a worker, that is being started again
log = logging.getLogger(__name__)
AHEAD = 256  # tasks that are sent to a cluster at least, so that workers that come later find some


@dataclass(frozen=True)
class Local:
    """Processes of this machine, each pinned to a core (see ``_worker``); a single one is this process, not pinned.

    Args:
        n_jobs: how many processes; by default one a core, on a GPU one in all.
    """

    name: ClassVar[str] = "local"

    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.n_jobs is not None:
            check_whole("n_jobs", self.n_jobs)

    def workers(self) -> int:
        """The given number of processes, or one a core (on a GPU one in all)."""
        return self.n_jobs or (cores() if on_cpu() else 1)

    def on_gpus(self) -> bool:
        """Whether this process has a GPU."""
        return not on_cpu()

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """Run all tasks in joblib's process pool, or one after the other in this process."""
        n_jobs = self.workers()
        if n_jobs == 1:
            return [work(payload, pinned=False) for payload in payloads]
        return _parallel(payloads, pinned=True, n_jobs=n_jobs, backend=Processes(threads=1))


class _Cluster:
    """A cluster. Its workers need this package and the sweep's folder."""

    n_jobs: int

    def __post_init__(self) -> None:
        if self.n_jobs != -1:
            check_whole("n_jobs", self.n_jobs)

    def workers(self) -> int:
        """The given number of tasks side by side, or as many as the cluster has GPUs, or without any, cores."""
        if self.n_jobs > 0:
            return self.n_jobs
        with self._connect() as futures:
            return futures.places

    def on_gpus(self) -> bool:
        """Whether the cluster has GPUs."""
        with self._connect() as futures:
            return futures.on_gpus

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """Run all tasks over a new connection, so that a cluster that was started again is found."""
        with self._connect() as futures:
            ahead = self.n_jobs if self.n_jobs > 0 else max(AHEAD, 2 * futures.places)
            return _parallel(payloads, pinned=False, n_jobs=ahead, pre_dispatch=ahead, backend=futures)

    def _connect(self) -> "AbstractContextManager[_Futures]":
        raise NotImplementedError


def _within(what: str, call: Callable[[], Any]) -> Any:
    """What a call gives, or TimeoutError if it does not return in time: calls of a server that says nothing never do.

    Dask's and Ray's own limits are of single requests, which they repeat without an end.
    """
    answer: Queue[tuple[bool, Any]] = Queue()

    def run() -> None:
        try:
            answer.put((True, call()))
        except BaseException as error:
            answer.put((False, error))

    threading.Thread(target=run, daemon=True).start()
    soon = min(SOON, WAIT / 2)
    try:
        try:
            good, value = answer.get(timeout=soon)
        except Empty:
            log.info("waiting for %s, at most %g seconds", what, WAIT)
            good, value = answer.get(timeout=WAIT - soon)
    except Empty:
        raise TimeoutError(f"nothing was heard within {WAIT:g} seconds") from None
    if not good:
        raise value
    return value


def _import(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"{package} is not installed ({error}): pip install 'condensation[cluster]'") from error


@dataclass(frozen=True)
class Dask(_Cluster):
    """A Dask cluster, by its scheduler's address. Its workers need this package and the sweep's folder.

    Where workers were started with GPUs (``dask worker --resources GPU=1``), each task takes one.

    Args:
        scheduler: such as ``tcp://10.0.0.1:8786``.
        n_jobs: tasks side by side; -1: as many as the workers have GPUs, or without any, threads.
    """

    name: ClassVar[str] = "dask"

    scheduler: str
    n_jobs: int = -1

    @contextmanager
    def _connect(self) -> "Iterator[_Futures]":
        distributed = _import("distributed", "dask")
        scheduler = f"the Dask scheduler at {self.scheduler}"
        try:
            client = _within(scheduler, lambda: distributed.Client(self.scheduler, timeout=WAIT))
        except Exception as error:  # an address that is none fails in many ways
            raise InputError(f"no Dask scheduler answers at {self.scheduler}: {one_line(error)}") from error
        with closing(client):
            try:
                _within(f"a worker of {scheduler}", lambda: client.wait_for_workers(1, timeout=0.9 * WAIT))
                workers = _within(scheduler, client.scheduler_info)["workers"].values()
            except TimeoutError as error:
                raise InputError(f"the Dask scheduler {self.scheduler} has no workers") from error
            gpus = int(sum(worker["resources"].get("GPU", 0) for worker in workers))
            places = gpus or sum(worker["nthreads"] for worker in workers)
            options = {"pure": False} | ({"resources": {"GPU": 1}} if gpus else {})
            submit = lambda call: client.submit(call, **options)  # noqa: E731
            yield _Futures(submit, (distributed.KilledWorker,), places, gpus > 0)


@dataclass(frozen=True)
class Ray(_Cluster):
    """A Ray cluster. Its workers need this package and the sweep's folder. Where it has GPUs, each task takes one.

    Args:
        address: of the cluster; ``"auto"`` is the one of this machine, ``"local"`` starts one for the sweep.
        n_jobs: tasks side by side; -1: as many as the cluster has GPUs, or without any, cores.
    """

    name: ClassVar[str] = "ray"

    address: str = "auto"
    n_jobs: int = -1

    def workers(self) -> int:
        """As on any cluster; the cluster that is started for the sweep has what this process has."""
        if self.address != "local" or self.n_jobs > 0:
            return super().workers()
        return len(devices()) if self.on_gpus() else cores()

    def on_gpus(self) -> bool:
        """Whether the cluster has GPUs."""
        return super().on_gpus() if self.address != "local" else not on_cpu()

    @contextmanager
    def _connect(self) -> "Iterator[_Futures]":
        ray = _import("ray", "ray")
        options = {"address": self.address, "logging_level": logging.ERROR, "log_to_driver": False}
        try:
            if self.address == "local":  # started here, and ended with the thread that does
                ray.init(num_cpus=self.n_jobs if self.n_jobs > 0 else cores(), **options)
            else:
                _within(f"the Ray cluster at {self.address}", lambda: ray.init(**options))
            resources = _within(f"the Ray cluster at {self.address}", ray.cluster_resources)
            cpus, gpus = (int(resources.get(name, 0)) for name in ("CPU", "GPU"))
        except Exception as error:  # an address that is none fails in many ways
            raise InputError(f"no Ray cluster answers at {self.address}: {one_line(error)}") from error
        try:
            task = ray.remote(num_cpus=1, num_gpus=int(gpus > 0), max_retries=0)(_call)
            lost = (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError)
            if not cpus:
                raise InputError(f"the Ray cluster at {self.address} has no cores, and would never begin a task")
            yield _Futures(lambda call: task.remote(call).future(), lost, gpus or cpus, gpus > 0)
        finally:
            ray.shutdown()


Backend = Local | Dask | Ray


def _call(call: Callable[[], Any]) -> Any:
    return call()


def _parallel(payloads: Iterable[bytes], pinned: bool, **options: Any) -> list[Outcome]:
    run: Any = Parallel(batch_size=1, **options)  # type: ignore[arg-type]
    return list(run(delayed(work)(payload, pinned) for payload in payloads))


class _Futures(ParallelBackendBase):
    """joblib's tasks on a cluster that gives a future for each.

    The backends that joblib and Ray bring are not used: Dask's waits for ever for a task that kills its workers, Ray's
    ends all tasks when one worker is lost, and both run the tasks of a cluster of one core in the driver.

    Args:
        submit: gives the future of a call.
        lost: the errors of a future whose worker was lost; the other tasks go on.
        places: tasks that run side by side: one a GPU, or without any, one a core.
        on_gpus: whether each task has a GPU.
    """

    supports_retrieve_callback = True

    def __init__(
        self, submit: Callable[..., Any], lost: tuple[type[Exception], ...], places: int, on_gpus: bool
    ) -> None:
        super().__init__(nesting_level=0)
        self._future, self._lost, self.places, self.on_gpus = submit, lost, places, on_gpus

    def effective_n_jobs(self, n_jobs: int) -> Any:
        """At least two: joblib keeps the work of one to itself."""
        return max(2, n_jobs)

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], Any] | None = None) -> Any:
        """Send a task to the cluster; its future."""
        future = self._future(func)
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        """The result of a finished task, as a list: joblib's tasks are batches, here of one."""
        try:
            return out.result()
        except self._lost as error:
            return [Outcome(lost=one_line(error))]


def _count(n_jobs: int) -> int:
    check_whole("n_jobs", n_jobs)
    return n_jobs


def backend_of(
    name: str, *, n_jobs: int | None = None, scheduler: str | None = None, address: str | None = None
) -> Backend:
    """The backend with a name: ``local``, ``dask`` or ``ray``."""
    match name:
        case "local":
            if scheduler is not None or address is not None:
                raise InputError("--scheduler goes with --backend dask, --address with --backend ray")
            return Local(n_jobs)
        case "dask":
            if not scheduler or address is not None:
                raise InputError("Dask needs the address of its scheduler: --backend dask --scheduler tcp://HOST:8786")
            return Dask(scheduler, -1 if n_jobs is None else _count(n_jobs))
        case "ray":
            if scheduler is not None or address == "":
                raise InputError("Ray has an address and no scheduler: --backend ray --address auto")
            return Ray("auto" if address is None else address, -1 if n_jobs is None else _count(n_jobs))
    raise unknown_name("backend of sweeps", name, ("local", "dask", "ray"))
