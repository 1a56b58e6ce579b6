"""Settings of all pipes that a pipe reads from."""

from .datapipes.datapipe import apply_random_seed, apply_sharding, apply_shuffle_settings

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_settings"]
