"""Runs: what training leaves (trajectories), the folders that hold it, and runs of watched models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
