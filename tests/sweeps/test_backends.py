import sys
from contextlib import contextmanager

import driving
import pytest

from condensation import InputError
from condensation.sweeps import Dask, Local, Ray
from condensation.sweeps._backends import _Futures, backend_of
from condensation.sweeps._run import _block, pairs_of


def test_backends_by_name():
    assert backend_of("local", n_jobs=3) == Local(3)
    assert backend_of("local").workers() >= 1
    assert backend_of("dask", scheduler="tcp://h:8786") == Dask("tcp://h:8786", -1)
    assert backend_of("ray", address="h:6379", n_jobs=4) == Ray("h:6379", 4)
    assert backend_of("ray") == Ray("auto", -1)
    assert Dask("tcp://h:8786", 4).workers() == Ray("h:6379", 4).workers() == 4


@pytest.mark.parametrize(("gpus", "block"), [(0, 256), (4, 2500)])
def test_tasks_are_larger_where_workers_have_gpus(gpus, block, monkeypatch):
    """80,000 networks: eight tasks for each of four workers, if that is not more than a task may have."""

    @contextmanager
    def connect(self):
        yield _Futures(lambda call: call, (), gpus or 4, gpus > 0)

    monkeypatch.setattr(Ray, "_connect", connect)
    assert Ray("h:6379").workers() == 4
    pairs = pairs_of(driving.small(seeds=1))[:1] * 80_000
    assert _block(pairs, Ray("h:6379"), None) == block


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("local", {"scheduler": "tcp://h:8786"}, "--scheduler goes with --backend dask"),
        ("local", {"n_jobs": 0}, "n_jobs must be a whole number of at least 1, not 0"),
        ("dask", {}, "Dask needs the address of its scheduler"),
        ("ray", {"scheduler": "tcp://h:8786"}, "Ray has an address and no scheduler"),
        ("spark", {}, "unknown backend of sweeps 'spark'; known: local, dask, ray"),
    ],
)
def test_what_is_no_backend_is_refused(name, options, said):
    with pytest.raises(InputError, match=said):
        backend_of(name, **options)


@pytest.mark.parametrize(("backend", "module"), [(Dask("tcp://h:8786"), "distributed"), (Ray("auto"), "ray")])
def test_a_library_that_is_missing_is_named(backend, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"is not installed .*: pip install 'condensation\[cluster\]'"):
        backend.workers()
    with pytest.raises(InputError, match="is not installed"):
        backend.run([])
