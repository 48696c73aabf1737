"""Backends, where the tasks of a sweep run: processes of this machine, Dask or Ray; always through joblib."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol, runtime_checkable

from joblib import Parallel, delayed, parallel_config
from joblib.parallel import ParallelBackendBase

from .._device import cores, on_cpu
from ..errors import InputError, check_whole, unknown_name
from ._task import Outcome, one_line
from ._worker import work

WAIT = 30  # seconds for a scheduler, and for a worker, that is being started again
AHEAD = 256  # tasks that are sent to a cluster at least, so that workers that come later find some


@runtime_checkable
class Backend(Protocol):
    """Runs packed tasks. An error of any other kind than ``InputError`` means a lost scheduler or lost workers."""

    name: ClassVar[str]

    def workers(self) -> int:
        """How many tasks run side by side."""
        ...

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """Run all tasks; their outcomes in the same order."""
        ...


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

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """Run all tasks in joblib's process pool, or one after the other in this process."""
        n_jobs = self.workers()
        if n_jobs == 1:
            return [work(payload, pinned=False) for payload in payloads]
        with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
            return _parallel(payloads, pinned=True)


@dataclass(frozen=True)
class Dask:
    """A Dask cluster, by its scheduler's address. Its workers need this package and the sweep's folder.

    Args:
        scheduler: such as ``tcp://10.0.0.1:8786``.
        n_jobs: tasks side by side; -1: as many as the workers have threads.
    """

    name: ClassVar[str] = "dask"

    scheduler: str
    n_jobs: int = -1

    def workers(self) -> int:
        """The given number, or the threads of all workers."""
        if self.n_jobs > 0:
            return self.n_jobs
        with self._client() as client:
            return sum(client.nthreads().values())

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """Run all tasks over a new connection, so that a scheduler that was started again is found."""
        with self._client() as client:
            from distributed import KilledWorker

            ahead = self.n_jobs if self.n_jobs > 0 else max(AHEAD, 2 * sum(client.nthreads().values()))
            return _on_cluster(payloads, ahead, lambda call: client.submit(call, pure=False), (KilledWorker,))

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            from distributed import Client
        except ImportError as error:
            raise _missing("dask", error) from error
        try:
            client = Client(self.scheduler, timeout=WAIT)
        except (OSError, TimeoutError) as error:
            raise InputError(f"no Dask scheduler answers at {self.scheduler}: {error}") from error
        try:
            try:
                client.wait_for_workers(1, timeout=WAIT)
            except TimeoutError as error:
                raise InputError(f"the Dask scheduler {self.scheduler} has no workers") from error
            yield client
        finally:
            client.close()


@dataclass(frozen=True)
class Ray:
    """A Ray cluster. Its workers need this package and the sweep's folder.

    Args:
        address: of the cluster; ``"auto"`` is the one of this machine, ``"local"`` starts one for the sweep.
        n_jobs: tasks side by side; -1: as many as the cluster has cores.
    """

    name: ClassVar[str] = "ray"

    address: str = "auto"
    n_jobs: int = -1

    def workers(self) -> int:
        """The given number, or the cores of the cluster."""
        if self.n_jobs > 0:
            return self.n_jobs
        if self.address == "local":
            return cores()
        with self._connection() as ray:
            return _cores_of(ray)

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """Run all tasks over a new connection, so that a cluster that was started again is found."""
        with self._connection() as ray:
            ahead = self.n_jobs if self.n_jobs > 0 else max(AHEAD, 2 * _cores_of(ray))
            task = ray.remote(num_cpus=1, max_retries=0)(_call)
            lost = (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError)
            return _on_cluster(payloads, ahead, lambda call: task.remote(call).future(), lost)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        try:
            ray: Any = import_module("ray")
        except ImportError as error:
            raise _missing("ray", error) from error
        size = {"num_cpus": self.workers()} if self.address == "local" else {}
        try:
            ray.init(address=self.address, logging_level=logging.ERROR, log_to_driver=False, **size)
        except ConnectionError as error:
            raise InputError(f"no Ray cluster answers at {self.address}: {error}") from error
        try:
            yield ray
        finally:
            ray.shutdown()


def _cores_of(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 0)))


def _call(call: Callable[[], Any]) -> Any:
    return call()


def _missing(name: str, error: ImportError) -> InputError:
    return InputError(f"{name} is not installed ({error}): pip install 'condensation[cluster]'")


def _parallel(payloads: Iterable[bytes], pinned: bool, **options: Any) -> list[Outcome]:
    run: Any = Parallel(batch_size=1, **options)  # type: ignore[arg-type]
    return list(run(delayed(work)(payload, pinned) for payload in payloads))


def _on_cluster(
    payloads: Iterable[bytes], ahead: int, submit: Callable[..., Any], lost: tuple[type[Exception], ...]
) -> list[Outcome]:
    return _parallel(payloads, pinned=False, n_jobs=ahead, pre_dispatch=ahead, backend=_Cluster(submit, lost))


class _Cluster(ParallelBackendBase):
    """joblib's tasks on a cluster that gives a future for each.

    The backends that joblib and Ray bring are not used: Dask's waits for ever for a task that kills its workers, Ray's
    ends all tasks when one worker is lost, and both run the tasks of a cluster of one core in the driver.

    Args:
        submit: gives the future of a call.
        lost: the errors of a future whose worker was lost; the other tasks go on.
    """

    supports_retrieve_callback = True

    def __init__(self, submit: Callable[..., Any], lost: tuple[type[Exception], ...]) -> None:
        super().__init__(nesting_level=0)
        self._future, self._lost = submit, lost

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


def backend_of(
    name: str, *, n_jobs: int | None = None, scheduler: str | None = None, address: str | None = None
) -> Backend:
    """The backend with a name: ``local``, ``dask`` or ``ray``."""
    match name:
        case "local":
            if scheduler or address:
                raise InputError("--scheduler goes with --backend dask, --address with --backend ray")
            return Local(n_jobs)
        case "dask":
            if not scheduler or address:
                raise InputError("Dask needs the address of its scheduler: --backend dask --scheduler tcp://HOST:8786")
            return Dask(scheduler, n_jobs or -1)
        case "ray":
            if scheduler:
                raise InputError("Ray has an address and no scheduler: --backend ray --address auto")
            return Ray(address or "auto", n_jobs or -1)
    raise unknown_name("backend of sweeps", name, ("local", "dask", "ray"))
