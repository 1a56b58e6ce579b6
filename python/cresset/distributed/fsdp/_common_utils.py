"""Names that libraries use beside FullyShardedDataParallel: its prefix, its state, names of parameters without what wrappers add."""

from enum import Enum, auto
from importlib import import_module

from cresset.distributed.algorithms._checkpoint.checkpoint_wrapper import _CHECKPOINT_PREFIX

from ._fully_shard._fsdp_state import state_of

__all__ = ["FSDP_FLATTENED", "FSDP_PREFIX", "FSDP_WRAPPED_MODULE", "HandleTrainingState", "TrainingState", "clean_tensor_name"]

FSDP_WRAPPED_MODULE = "_fsdp_wrapped_module"
FSDP_PREFIX = FSDP_WRAPPED_MODULE + "."
FSDP_FLATTENED = "_fsdp_flattened"


class TrainingState(Enum):
    """What a FullyShardedDataParallel module does."""

    IDLE = auto()
    FORWARD_BACKWARD = auto()
    SUMMON_FULL_PARAMS = auto()


class HandleTrainingState(Enum):
    """What the parameters of one module are used for."""

    IDLE = auto()
    FORWARD = auto()
    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()
    SUMMON_FULL_PARAMS = auto()


def __getattr__(name):
    if name == "_FSDPState":  # the state of a FullyShardedDataParallel is the module itself
        return import_module("cresset.distributed.fsdp.fully_sharded_data_parallel").FullyShardedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def clean_tensor_name(tensor_name):
    """The name of a parameter or buffer in the module before it was wrapped."""
    return tensor_name.replace(FSDP_PREFIX, "").replace(_CHECKPOINT_PREFIX, "")


def _get_module_fsdp_state(module):
    """The state of a wrapped module, which is the module itself for FullyShardedDataParallel, or None."""
    return module if FSDP_WRAPPED_MODULE in module._modules else state_of(module)


def _set_fsdp_flattened(tensor):
    """Mark a parameter as one that a module divides among ranks."""
    setattr(tensor, FSDP_FLATTENED, True)


def _is_fsdp_flattened(tensor):
    """Does a FullyShardedDataParallel have this parameter?"""
    return getattr(tensor, FSDP_FLATTENED, False)


def _named_parameters_with_duplicates(module, **kwargs):
    """A list of (name, parameter), every name of shared ones."""
    kwargs.setdefault("remove_duplicate", False)
    return list(module.named_parameters(**kwargs))
