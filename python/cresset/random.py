"""The default CPU generator as functions."""

import contextlib
from collections.abc import Generator  # noqa: F401  where PyTorch has it: the type of generators of Python

import cresset

from . import _C
from ._C import default_generator  # noqa: F401

__all__ = ["thread_safe_generator", "manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "fork_rng"]


def manual_seed(seed):
    """Set the seed of the default generators of the CPU and of all devices; returns the CPU's. Negative seeds count from 2**64."""
    seed = int(seed)
    kinds = _C._registered_backends()
    for kind in kinds:
        for i in range(_C._device_count(cresset.device(kind))):
            _C._default_generator(cresset.device(kind, i)).manual_seed(seed)
    accelerator = _C._accelerator_type()
    if accelerator is not None and accelerator not in kinds:
        _seed_classic_device(accelerator, seed)
    return cresset.default_generator.manual_seed(seed)


def _seed_classic_device(kind, seed):
    """Seed a device that has no table of functions: by its module where that knows how, as in PyTorch."""
    by_module = getattr(getattr(cresset, kind, None), "manual_seed_all", None)
    if by_module is not None:
        by_module(seed)
    elif _C._has_generator(cresset.device(kind)):
        for i in range(_C._device_count(cresset.device(kind))):
            _C._default_generator(cresset.device(kind, i)).manual_seed(seed)


def seed():
    """Set a seed that nobody chose; returns it."""
    return cresset.default_generator.seed()


def initial_seed():
    """The seed that was set last."""
    return cresset.default_generator.initial_seed()


def get_rng_state():
    """The default generator's state as a uint8 tensor."""
    return cresset.default_generator.get_state()


def set_rng_state(new_state):
    """Restore a state that get_rng_state returned."""
    cresset.default_generator.set_state(new_state)


def _generators(devices, device_type):
    """The generators besides the CPU's whose state fork_rng keeps."""
    kinds = _C._registered_backends()
    if device_type is not None and device_type not in kinds:  # "cuda" by habit, without such a device
        return []
    kind = device_type or (kinds[0] if kinds else None)
    if kind is None:
        return []
    places = range(_C._device_count(cresset.device(kind))) if devices is None else devices
    places = [cresset.device(kind, p) if isinstance(p, int) else cresset.device(p) for p in places]
    return [_C._default_generator(p) for p in places if p.type != "cpu"]


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type=None):
    """Run a block and put the states of the generators back afterwards: the CPU's, and those of `devices` of a kind (default: all)."""
    if not enabled:
        yield
        return
    generators = [cresset.default_generator, *_generators(devices, device_type)]
    states = [g.get_state() for g in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def thread_safe_generator():
    """In a worker thread of a DataLoader a generator of its own; None elsewhere, which means the default one."""
    import sys

    worker = sys.modules.get("cresset.utils.data._utils.worker")
    return None if worker is None else getattr(worker._local, "generator", None)
