"""Sweeps: maps of condensation over any fields of an experiment, on one core or on a cluster."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
