"""The default CPU generator as functions."""

import contextlib

import cresset

__all__ = ["manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "fork_rng"]


def manual_seed(seed):
    """Set the seed of the default generator and return it. Negative seeds count from 2**64."""
    return cresset.default_generator.manual_seed(int(seed))


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


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, *args, **kwargs):
    """Run a block and put the generator's state back afterwards. Only the CPU has a state here; `devices` is accepted."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
