"""Sharded state dictionaries as whole ones."""

import cresset
from cresset.distributed import distributed_c10d as dist

__all__ = []


def _mapped(value, function):
    if isinstance(value, dict):
        return {key: _mapped(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, function) for item in value)
    return function(value)


def _whole(value, device):
    """A tensor that lies on several ranks, put together on each of them; others as they are."""
    if hasattr(value, "full_tensor"):
        value = value.full_tensor()
    elif hasattr(value, "local_shards"):
        everyone = [None] * dist.get_world_size(value._process_group)
        mine = [(list(s.metadata.shard_offsets), s.tensor.detach().cpu()) for s in value.local_shards()]
        dist.all_gather_object(everyone, mine, group=value._process_group)
        whole = cresset.empty(value.size(), dtype=value.dtype)
        for offsets, tensor in (shard for some in everyone for shard in some):
            target = whole
            for dim, begin in enumerate(offsets):
                target = target.narrow(dim, begin, tensor.shape[dim])
            target.copy_(tensor)
        value = whole
    return value.to(device) if device is not None and isinstance(value, cresset.Tensor) else value


def _on_cpu(value):
    return value.detach().to("cpu") if isinstance(value, cresset.Tensor) and value.device.type != "cpu" else value


def _gather_state_dict(state_dict, *, pg=None, device=None, cpu_offload=False, ranks_only=(), type_check=True):
    """The state with whole tensors in place of DTensors and ShardedTensors; {} on ranks that are not in `ranks_only`, where that names some. All ranks call it."""
    with cresset.no_grad():
        found = _mapped(state_dict, lambda value: _whole(value, device))
    if ranks_only and dist.get_rank(pg) not in ranks_only:
        return {}
    return _mapped(found, _on_cpu) if cpu_offload else found


def _offload_state_dict_to_cpu(state_dict, *, ranks_only=(), type_check=True):
    """The state with tensors in this host's memory; {} on ranks that are not in `ranks_only`, where that names some."""
    if ranks_only and dist.get_rank() not in ranks_only:
        return {}
    return _mapped(state_dict, _on_cpu)
