"""The devices that work runs on, and how it is compiled there: decided in this place only."""

import os
from functools import cache
from typing import Any

import jax

# Without YNN fusion XLA's convolutions are as fast as PyTorch's; to be measured again with each new JAX.
CPU_OPTIONS: dict[str, Any] = {"xla_cpu_experimental_ynn_fusion_type": ""}


def devices() -> list[Any]:
    """The devices that networks are dealt to: the user's default device alone, or all that this process has."""
    chosen = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    return [chosen] if chosen else jax.local_devices()


def device() -> Any:
    """The first device that networks are dealt to."""
    return devices()[0]


def on_cpu() -> bool:
    """Whether the first device is a CPU."""
    return getattr(device(), "platform", device()) == "cpu"


def device_name() -> str:
    """The kind of the first device, such as ``NVIDIA H200`` or ``cpu``."""
    return str(getattr(device(), "device_kind", device()))


def convolution_options() -> dict[str, Any] | None:
    """Options for compiling a network with convolutions."""
    return _known_options() if on_cpu() else None


@cache
def _known_options() -> dict[str, Any] | None:
    """The options for a CPU, if this compiler knows them: they come and go with the versions of XLA."""
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options=CPU_OPTIONS)
    except jax.errors.JaxRuntimeError:
        return None
    return CPU_OPTIONS


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def device_slots(whole_machine: bool) -> list[Any]:
    """The devices, each as often as it takes a piece of work at a time.

    A GPU takes one. A CPU's cores are shared out, or all of them serve one piece that can use the whole machine.
    """
    all_devices = devices()
    if not on_cpu():
        return all_devices
    count = max(cores(), len(all_devices))
    return all_devices[:1] if whole_machine else [all_devices[k % len(all_devices)] for k in range(count)]
