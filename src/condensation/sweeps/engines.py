"""Where tasks run: in processes of this machine, on a Dask cluster, on a Ray cluster; always through joblib."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ..device import cores, on_cpu
from ..errors import InputError, check_whole
from .task import Outcome
from .worker import work

WAIT = 30  # seconds for a scheduler that is being started again


class Engine(Protocol):
    """Runs pickled tasks; whatever a lost worker or scheduler raises goes to the driver."""

    name: ClassVar[str]

    def workers(self) -> int:
        """How many tasks run side by side."""
        ...

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """The outcomes of a round."""
        ...


@dataclass(frozen=True)
class Local:
    """Processes of this machine, each pinned to a core; a single one is this process, with all its threads.

    Args:
        n_jobs: how many; by default as many as there are cores, on a GPU one.
    """

    name: ClassVar[str] = "local"

    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.n_jobs is not None:
            check_whole("n_jobs", self.n_jobs)

    def workers(self) -> int:
        """The given number, or one a core (a GPU: one in all)."""
        return self.n_jobs or (cores() if on_cpu() else 1)

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """The outcomes of a round."""
        import joblib

        n_jobs = self.workers()
        if n_jobs == 1:
            return [work(payload, pinned=False) for payload in payloads]
        with joblib.parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
            return _parallel(payloads, n_jobs, pinned=True)


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
        """Threads of all workers."""
        with self._client() as client:
            try:
                client.wait_for_workers(1, timeout=WAIT)
            except TimeoutError as error:
                raise InputError(f"the Dask scheduler {self.scheduler} has no workers") from error
            return sum(client.nthreads().values()) if self.n_jobs < 1 else self.n_jobs

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """The outcomes of a round; the connection is a new one."""
        import joblib

        with self._client(), joblib.parallel_config("dask", n_jobs=self.n_jobs):
            return _parallel(payloads, self.n_jobs)

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
        """Cores of the cluster."""
        with self._connection() as ray:
            found = int(ray.cluster_resources().get("CPU", 0))
        if not found:
            raise InputError(f"the Ray cluster {self.address} has no cores")
        return found if self.n_jobs < 1 else self.n_jobs

    def run(self, payloads: Iterable[bytes]) -> list[Outcome]:
        """The outcomes of a round; the connection is a new one."""
        import joblib

        with self._connection():
            from ray.util.joblib import register_ray

            register_ray()
            with joblib.parallel_config("ray", n_jobs=self.n_jobs):
                return _parallel(payloads, self.n_jobs)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        try:
            import ray
        except ImportError as error:
            raise _missing("ray", error) from error
        try:
            ray.init(address=self.address, logging_level="ERROR", log_to_driver=False)
        except ConnectionError as error:
            raise InputError(f"no Ray cluster answers at {self.address}: {error}") from error
        try:
            yield ray
        finally:
            ray.shutdown()


def _missing(name: str, error: ImportError) -> InputError:
    return InputError(f"{name} is not installed ({error}): pip install 'condensation[cluster]'")


def _parallel(payloads: Iterable[bytes], n_jobs: int, pinned: bool = False) -> list[Outcome]:
    from joblib import Parallel, delayed

    tasks = (delayed(work)(payload, pinned) for payload in payloads)
    return list(Parallel(n_jobs=n_jobs, batch_size=1)(tasks))


def engine_of(
    on: str, *, n_jobs: int | None = None, scheduler: str | None = None, address: str | None = None
) -> Engine:
    """The engine of a name: ``local``, ``dask`` or ``ray``."""
    if on == "local":
        if scheduler or address:
            raise InputError("a scheduler is of Dask (--on dask), an address of Ray (--on ray)")
        return Local(n_jobs)
    if on == "dask":
        if not scheduler or address:
            raise InputError("Dask needs the address of its scheduler: --on dask --scheduler tcp://HOST:8786")
        return Dask(scheduler, n_jobs or -1)
    if on == "ray":
        if scheduler:
            raise InputError("Ray has an address, no scheduler: --on ray --address auto")
        return Ray(address or "auto", n_jobs or -1)
    raise InputError(f"a sweep runs on local, dask or ray, not on {on!r}")
