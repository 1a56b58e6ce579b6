"""Communication hooks for DistributedDataParallel.register_comm_hook, also by name."""

from enum import Enum
from functools import partial

from . import ddp_zero_hook, debugging_hooks, default_hooks, post_localSGD_hook, powerSGD_hook, quantization_hooks  # noqa: F401

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _registered(hook, model, state):
    model.register_comm_hook(state, hook)


def _powerSGD(hook, model, state, matrix_approximation_rank, start_powerSGD_iter=1_000):
    model.register_comm_hook(powerSGD_hook.PowerSGDState(state, matrix_approximation_rank, start_powerSGD_iter), hook)


class DDPCommHookType(Enum):
    """The hooks by name. The state of each is a process group; POWER_SGD and BATCHED_POWER_SGD make theirs of it."""

    ALLREDUCE = partial(_registered, default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(_registered, default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(_registered, default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = partial(_registered, quantization_hooks.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = partial(_registered, quantization_hooks.quantization_perchannel_hook)
    POWER_SGD = partial(_powerSGD, powerSGD_hook.powerSGD_hook, matrix_approximation_rank=1)
    POWER_SGD_RANK2 = partial(_powerSGD, powerSGD_hook.powerSGD_hook, matrix_approximation_rank=2)
    BATCHED_POWER_SGD = partial(_powerSGD, powerSGD_hook.batched_powerSGD_hook, matrix_approximation_rank=1)
    BATCHED_POWER_SGD_RANK2 = partial(_powerSGD, powerSGD_hook.batched_powerSGD_hook, matrix_approximation_rank=2)
    NOOP = partial(_registered, debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type, model, state=None):
    """Register a hook of DDPCommHookType with a DistributedDataParallel model; `state` is a process group, or None."""
    comm_hook_type.value(model=model, state=state)
