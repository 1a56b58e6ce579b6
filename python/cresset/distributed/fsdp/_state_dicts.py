"""Entries of state dicts: a rank's part as DTensor, ShardedTensor or plain tensor, or the whole, and back."""

import cresset
from cresset import nn
from cresset.distributed.algorithms._checkpoint.checkpoint_wrapper import _replace_by_prefix

from .. import _groups
from .._shard.metadata import ShardMetadata
from .._shard.sharded_tensor.api import Shard, ShardedTensor
from .._shard.sharded_tensor.metadata import ShardedTensorMetadata, TensorProperties
from ..checkpoint._sharding import placed_box
from ..tensor import DTensor
from ._common_utils import FSDP_PREFIX, clean_tensor_name
from .api import StateDictType

__all__ = ["after_state_dict", "before_load", "as_sharded_tensor", "into_parameter"]


def as_sharded_tensor(tensor):
    """A DTensor's parts as a ShardedTensor, over the ranks of its last mesh dimension, which shards."""
    local, mesh, dim = tensor._local_tensor.detach(), tensor.device_mesh, tensor.device_mesh.ndim - 1
    group = mesh.get_group(dim)
    ranks = _groups.get_process_group_ranks(group)
    placements = tensor.placements[dim : dim + 1]
    shards, mine = [], []
    for place, rank in enumerate(ranks):
        sizes, offsets = placed_box(tuple(tensor.shape), (len(ranks),), (place,), placements)
        if cresset.Size(sizes).numel() == 0:
            continue
        shards.append(ShardMetadata(list(offsets), list(sizes), f"rank:{rank}/{local.device}"))
        if rank == _groups.get_rank():
            mine = [Shard(local, shards[-1])]
    properties = TensorProperties(tensor.dtype, cresset.strided, False, cresset.contiguous_format, False)
    return ShardedTensor._init_from_local_shards_and_global_metadata(mine, ShardedTensorMetadata(shards, tensor.size(), properties), process_group=group)


def _from_sharded_tensor(own, value):
    """A ShardedTensor with the parts that a DTensor has, as one like it."""
    local, shards = own._local_tensor, value.local_shards()
    if len(shards) > 1 or tuple(value.size()) != tuple(own.shape) or (shards and shards[0].tensor.shape != local.shape) or (not shards and local.numel()):
        raise RuntimeError(
            f"load_state_dict: a ShardedTensor of size {tuple(own.shape)} with a part of {tuple(local.shape)} here was required; one of {tuple(value.size())} with "
            f"{[tuple(s.tensor.shape) for s in shards]} was given. distributed.checkpoint loads what another number of ranks has written."
        )
    return DTensor(shards[0].tensor.detach() if shards else local.detach(), own._spec, requires_grad=False)


def into_parameter(p, value):
    """What a parameter between uses, or a state of its size, takes from an entry. The value itself where it does not fit."""
    own = p.sharded_param
    if p.whole is not None:
        return value.full_tensor() if isinstance(value, DTensor) else value
    if not isinstance(own, DTensor):
        if isinstance(value, DTensor):
            return value.full_tensor()
        return value.local_tensor() if isinstance(value, ShardedTensor) else value
    if isinstance(value, ShardedTensor):
        return _from_sharded_tensor(own, value)
    if isinstance(value, DTensor):
        if value._spec.mesh == own._spec.mesh and value._spec.placements == own._spec.placements:
            return value
        value = value.full_tensor()
    if not isinstance(value, cresset.Tensor):
        return value
    if value.shape == own.shape:
        return DTensor(p.part_of(value), own._spec, requires_grad=False)
    return value


# Hooks of modules ---------------------------------------------------------------------------------------------------------


def _own_entries(module):
    """{name in state dicts: FSDPParam} of a wrapper's own parameters."""
    state = module._fsdp_state
    own = {} if state.group is None else {id(p.info.module._parameters[p.info.param_name]): p for p in state.group.fsdp_params}
    found = {}
    for name, parameter in nn.Module.named_parameters(module, remove_duplicate=False):
        if id(parameter) in own:
            found[clean_tensor_name(name)] = own[id(parameter)]
    return found


def _buffer_dtypes(module):
    """{name in state dicts: dtype} of buffers that compute in another one."""
    state, found = module._fsdp_state, {}
    if not state.buffer_dtypes:
        return found
    for name, each in module.named_modules():
        for key in each._buffers:
            if (each, key) in state.buffer_dtypes:
                found[clean_tensor_name(f"{name}.{key}" if name else key)] = state.buffer_dtypes[each, key]
    return found


def _written(p, value, module):
    kind = module._state_dict_type
    if not isinstance(value, DTensor):
        return value  # summoned, or whole on every rank
    if kind == StateDictType.FULL_STATE_DICT:
        with cresset.no_grad():
            whole = p.sharded_param.full_tensor().detach()
        return whole
    return value if getattr(module._state_dict_config, "_use_dtensor", False) else as_sharded_tensor(value)


def _to_cpu(value):
    if isinstance(value, ShardedTensor):
        return value if all(s.tensor.device.type == "cpu" for s in value.local_shards()) else value.cpu()
    return value.to("cpu") if isinstance(value, cresset.Tensor) and value.device.type != "cpu" else value


def after_state_dict(module, state_dict, prefix, local_metadata):
    """Entries of a wrapper under the names of the module inside, of the kind that was chosen."""
    _replace_by_prefix(state_dict, prefix + FSDP_PREFIX, prefix)
    config = module._state_dict_config
    for name, p in _own_entries(module).items():
        if prefix + name in state_dict:
            state_dict[prefix + name] = _written(p, state_dict[prefix + name], module)
    for name, dtype in _buffer_dtypes(module).items():
        if prefix + name in state_dict:
            state_dict[prefix + name] = state_dict[prefix + name].to(dtype)
    mine = [name for name in state_dict if name.startswith(prefix)]
    if getattr(config, "rank0_only", False) and module.rank != 0:
        for name in mine:
            del state_dict[name]
    elif config.offload_to_cpu:
        for name in mine:
            state_dict[name] = _to_cpu(state_dict[name])


def before_load(module, state_dict, prefix, *args):
    """The opposite of after_state_dict, before the module inside reads its entries."""
    for name, p in _own_entries(module).items():
        if prefix + name in state_dict:
            state_dict[prefix + name] = into_parameter(p, state_dict[prefix + name])
    _replace_by_prefix(state_dict, prefix, prefix + FSDP_PREFIX)
