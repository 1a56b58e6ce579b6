"""Collectives on Python objects, which are pickled: only among processes that trust each other."""

import pickle

import cresset

from ._collectives import _rank_in, all_gather, broadcast, gather, recv, scatter, send
from ._groups import _get_pg_default_device, _group_or_default, _rank_not_in_group, _warn_not_in_group, get_world_size

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list", "send_object_list",
]


def _place(group, device=None):
    """Where the bytes travel: on the device that is asked for; else on that of the group's only backend, or the CPU."""
    default = _get_pg_default_device(group)
    if device is None:
        return default
    return cresset.device(default.type, device) if isinstance(device, int) else cresset.device(device)


def _to_tensor(value, place):
    data = pickle.dumps(value)
    return cresset.frombuffer(bytearray(data), dtype=cresset.uint8).to(place), cresset.tensor([len(data)], dtype=cresset.int64, device=place)


def _to_object(tensor, size):
    data = tensor[: int(size)].cpu()
    return pickle.loads(bytes(data.tolist()) if data.numel() < 64 else data.numpy().tobytes())


def _padded(tensor, size):
    if tensor.numel() == size:
        return tensor
    whole = cresset.zeros(size, dtype=cresset.uint8, device=tensor.device)
    whole[: tensor.numel()] = tensor
    return whole


def _sizes_of_all(size, group):
    sizes = [cresset.zeros(1, dtype=cresset.int64, device=size.device) for _ in range(get_world_size(group))]
    all_gather(sizes, size, group=group)
    return [int(s) for s in sizes]


def all_gather_object(object_list, obj, group=None):
    """Fill `object_list`, one place a rank, with the objects of all ranks."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    tensor, size = _to_tensor(obj, _place(group))
    sizes = _sizes_of_all(size, group)
    parts = [cresset.empty(max(sizes), dtype=cresset.uint8, device=tensor.device) for _ in sizes]
    all_gather(parts, _padded(tensor, max(sizes)), group=group)
    for i, part in enumerate(parts):
        object_list[i] = _to_object(part, sizes[i])


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Fill `object_gather_list` of rank `dst` (0 without one) with the objects of all ranks."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather_object")
    group = _group_or_default(group)
    root = _rank_in(group, dst, group_dst, "dst", required=False)
    is_root = group.rank() == root
    if is_root and not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    if not is_root and object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must NOT be specified on non-destination ranks.")
    tensor, size = _to_tensor(obj, _place(group))
    sizes = _sizes_of_all(size, group)
    parts = [cresset.empty(max(sizes), dtype=cresset.uint8, device=tensor.device) for _ in sizes] if is_root else None
    gather(_padded(tensor, max(sizes)), parts, group=group, group_dst=root)
    for i, part in enumerate(parts or ()):
        object_gather_list[i] = _to_object(part, sizes[i])


def _join(objects, place):
    tensors, sizes = zip(*(_to_tensor(each, place) for each in objects))
    return cresset.cat(tensors), cresset.cat(sizes)


def _split(objects, tensor, sizes):
    at = 0
    for i, size in enumerate(sizes.tolist()):
        objects[i] = _to_object(tensor[at : at + size], size)
        at += size


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Give every rank the objects of rank `src` (0 without one); lists are of one length."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast_object_list")
    group = _group_or_default(group)
    root = _rank_in(group, src, group_src, "src", required=False)
    is_root, place = group.rank() == root, _place(group, device)
    tensor, sizes = _join(object_list, place) if is_root else (None, cresset.empty(len(object_list), dtype=cresset.int64, device=place))
    broadcast(sizes, group=group, group_src=root)
    if not is_root:
        tensor = cresset.empty(int(sizes.sum()), dtype=cresset.uint8, device=place)
    broadcast(tensor, group=group, group_src=root)
    if not is_root:
        _split(object_list, tensor, sizes)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None):
    """Put into the first place of the output list this rank's object of the input list of rank `src` (0 without one)."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    group = _group_or_default(group)
    root = _rank_in(group, src, group_src, "src", required=False)
    parts, sizes, place = None, None, _place(group)
    largest = cresset.zeros(1, dtype=cresset.int64, device=place)
    if group.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        parts, sizes = map(list, zip(*(_to_tensor(each, place) for each in scatter_object_input_list)))
        largest = max(sizes)
        parts = [_padded(p, int(largest)) for p in parts]
    broadcast(largest, group=group, group_src=root)
    mine, size = cresset.empty(int(largest), dtype=cresset.uint8, device=place), cresset.zeros(1, dtype=cresset.int64, device=place)
    scatter(mine, parts, group=group, group_src=root)
    scatter(size, sizes, group=group, group_src=root)
    scatter_object_output_list[0] = _to_object(mine, size)


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Send objects to a rank, which receives as many."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("send_object_list")
    tensor, sizes = _join(object_list, _place(group, device))
    send(sizes, dst, group, group_dst=group_dst)
    send(tensor, dst, group, group_dst=group_dst)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Receive objects from a rank, or from any; the sender's rank."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("recv_object_list") or -1
    place = _place(group, device)
    sizes = cresset.empty(len(object_list), dtype=cresset.int64, device=place)
    sender = recv(sizes, src, group, group_src=group_src)
    tensor = cresset.empty(int(sizes.sum()), dtype=cresset.uint8, device=place)
    recv(tensor, None if group_src is not None else sender, group, group_src=group_src)
    _split(object_list, tensor, sizes)
    return sender
