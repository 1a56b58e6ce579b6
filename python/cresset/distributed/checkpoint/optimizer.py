"""Optimizers' states from checkpoints, in parts like those of the model."""

import cresset
from cresset import distributed as dist

from . import _sharding
from ._traverse import set_element
from .metadata import TensorStorageMetadata
from .state_dict_loader import _load

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(model_state_dict, optimizer_key, storage_reader, planner=None):
    """{optimizer_key: the state of an optimizer}, of a checkpoint that has it by names of parameters under that key, whatever number of ranks wrote it.

    `model_state_dict` is the model's in parts (SHARDED_STATE_DICT, or of DTensors): tensors of a parameter's size come in parts like it, others whole on every
    rank. For FullyShardedDataParallel.optim_state_dict_to_load. All ranks of the default group call it together.
    """
    metadata = storage_reader.read_metadata()
    paths = metadata.planner_data or {}
    state_dict = {}
    for name, md in metadata.state_dict_metadata.items():
        path = paths.get(name, (name,))
        if path[0] != optimizer_key:
            continue
        value = "<bytes_io>" if not isinstance(md, TensorStorageMetadata) else _memory(md, _parameter_of(path, model_state_dict))
        set_element(state_dict, path, value)
    several = dist.is_available() and dist.is_initialized()
    _load(state_dict, storage_reader, None, 0, several, planner)
    return state_dict


def _parameter_of(path, model_state_dict):
    """The parameter that a path (key, "state", name, ...) is of, or None."""
    return next((model_state_dict[part] for part in path[1:] if isinstance(part, str) and part in model_state_dict), None)


def _memory(md, parameter):
    """Memory for a tensor of the checkpoint, in parts as the parameter where it is as large."""
    if parameter is None or not _sharding.is_sharded(parameter) or tuple(parameter.size()) != tuple(md.size):
        return cresset.empty(md.size, dtype=md.properties.dtype)
    if isinstance(parameter, cresset.Tensor):  # DTensor
        return cresset.zeros_like(parameter.detach(), dtype=md.properties.dtype)
    return _like_sharded(parameter, md.properties.dtype)


def _like_sharded(parameter, dtype):
    import copy

    from .._shard.sharded_tensor.api import Shard, ShardedTensor

    shards = [Shard(cresset.zeros_like(s.tensor, dtype=dtype), s.metadata) for s in parameter.local_shards()]
    about = copy.copy(parameter.metadata())
    about.tensor_properties = copy.copy(about.tensor_properties)
    about.tensor_properties.dtype = dtype
    return ShardedTensor._init_from_local_shards_and_global_metadata(shards, about, process_group=parameter._process_group)
