"""Generators of CUDA devices: none. Seeds are taken and reach nobody, as in PyTorch, where they wait for the first use of a device."""

from ._absent import refuse

__all__ = [
    "get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all", "manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed",
]  # fmt: skip

get_rng_state = initial_seed = refuse


def set_rng_state(new_state, device="cuda"):
    """There is no device whose state could be set."""


def get_rng_state_all():
    """An empty list."""
    return []


def set_rng_state_all(new_states):
    """There are no devices."""


def manual_seed(seed):
    """There is no device; ValueError or TypeError for what is no number."""
    int(seed)


manual_seed_all = manual_seed


def seed():
    """There is no device."""


seed_all = seed
