"""Optimizers over several processes."""

import importlib

_HOMES = {
    "ZeroRedundancyOptimizer": "zero_redundancy_optimizer", "PostLocalSGDOptimizer": "post_localSGD_optimizer",
    "DistributedOptimizer": "optimizer", "as_functional_optim": "utils", "_apply_optimizer_in_backward": "apply_optimizer_in_backward",
    "_get_in_backward_optimizers": "apply_optimizer_in_backward", "_NamedOptimizer": "named_optimizer",
}  # fmt: skip

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", "as_functional_optim"]


def __getattr__(name):
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), *_HOMES]
