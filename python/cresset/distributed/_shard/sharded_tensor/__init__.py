"""ShardedTensor, and functions that make one of a sharding specification."""

import cresset
from cresset.distributed._shard.metadata import ShardMetadata

from .api import Shard, ShardedTensor
from .metadata import ShardedTensorMetadata, TensorProperties

__all__ = [
    "Shard", "ShardMetadata", "ShardedTensor", "ShardedTensorMetadata", "TensorProperties", "empty", "full", "init_from_local_shards", "ones",
    "pre_load_state_dict_hook", "rand", "randn", "state_dict_hook", "zeros",
]


def _filled(fill):
    def make(sharding_spec, *size, dtype=None, layout=cresset.strided, requires_grad=False, pin_memory=False, memory_format=cresset.contiguous_format,
             process_group=None, init_rrefs=False):  # fmt: skip
        return ShardedTensor(
            sharding_spec, *size, dtype=dtype, layout=layout, requires_grad=requires_grad, pin_memory=pin_memory, memory_format=memory_format,
            process_group=process_group, init_rrefs=init_rrefs, fill=fill,
        )  # fmt: skip

    make.__name__ = make.__qualname__ = fill.__name__
    make.__doc__ = f"A ShardedTensor whose shards are those of `{fill.__name__}`."
    return make


empty, zeros, ones, rand, randn = (_filled(getattr(cresset, name)) for name in ("empty", "zeros", "ones", "rand", "randn"))


def full(sharding_spec, size, fill_value, **options):
    """A ShardedTensor of one value."""
    return ShardedTensor(sharding_spec, *size, fill=lambda sizes, **given: cresset.full(sizes, fill_value, **given), **options)


def init_from_local_shards(local_shards, *global_size, process_group=None, init_rrefs=False):
    """A ShardedTensor of this rank's shards; all ranks call it together."""
    return ShardedTensor._init_from_local_shards(local_shards, *global_size, process_group=process_group, init_rrefs=init_rrefs)


def state_dict_hook(module, destination, prefix, local_metadata):
    """A hook for Module._register_state_dict_hook: the ShardedTensors that are attributes of modules become part of the state_dict."""
    for name, submodule in module.named_modules():
        for attribute, value in vars(submodule).items():
            if isinstance(value, ShardedTensor):
                destination[prefix + (f"{name}." if name else "") + attribute] = value


def pre_load_state_dict_hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
    """A hook before load_state_dict: ShardedTensors of the state_dict become attributes again."""
    for name, submodule in module.named_modules():
        for attribute in list(vars(submodule)):
            key = prefix + (f"{name}." if name else "") + attribute
            if isinstance(state_dict.get(key), ShardedTensor):
                setattr(submodule, attribute, state_dict.pop(key))
