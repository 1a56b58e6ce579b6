"""Tensors to several devices and back. Any devices of this process do, the CPU too; autograd goes through."""

import cresset

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def device_of(device):
    """A device, its name, or an index of the accelerator's (of CUDA where there is none); -1 is the CPU."""
    if isinstance(device, int):
        if device == -1:
            return cresset.device("cpu")
        kind = cresset._C._accelerator_type()
        if kind is None:
            raise AssertionError("Torch not compiled with CUDA enabled")
        return cresset.device(kind, device)
    return cresset.device(device)


def _either(devices, out):
    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}")


def broadcast(tensor, devices=None, *, out=None):
    """A tuple of the tensor on each of the devices, the tensor itself where it is there; or `out`, a list of tensors, filled with it."""
    _either(devices, out)
    if out is not None:
        for t in out:
            t.copy_(tensor)
        return tuple(out)
    return tuple(tensor.to(device_of(d)) for d in devices)


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """For each device a list of all tensors there."""
    return [[t.to(device_of(d)) for t in tensors] for d in devices]


def reduce_add(inputs, destination=None):
    """The sum of tensors of one shape from several devices, on one of them: the first's unless `destination` is given."""
    target = inputs[0].device if destination is None else device_of(destination)
    for i, t in enumerate(inputs):
        if t.shape != inputs[0].shape:
            raise ValueError(f"input {i} has invalid size: got {tuple(t.shape)}, but expected {tuple(inputs[0].shape)}")
    total = inputs[0].to(target)
    for t in inputs[1:]:
        total = total + t.to(target)
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    """reduce_add of the first tensors of all lists, of the second, and so on: a tuple."""
    return tuple(reduce_add(column, destination) for column in zip(*inputs, strict=True))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Parts of the tensor along `dim`, one for each device: of `chunk_sizes`, or about equal ones; or `out`, a list of tensors, filled with them."""
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError(f"'devices' and 'chunk_sizes' must not be specified when 'out' is specified, but got devices={devices} and chunk_sizes={chunk_sizes}")
        parts = tensor.split([t.size(dim) for t in out], dim)
        for t, part in zip(out, parts):
            t.copy_(part)
        return tuple(out)
    devices = [device_of(d) for d in devices]
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(d) for part, d in zip(parts, devices))


def gather(tensors, dim=0, destination=None, *, out=None):
    """Tensors from several devices joined along `dim`, on `destination` (the first's device by default), or written to `out`."""
    if out is not None:
        if destination is not None:
            raise RuntimeError(f"'destination' must not be specified when 'out' is specified, but got destination={destination}")
        return cresset.cat([t.to(out.device) for t in tensors], dim, out=out)
    target = tensors[0].device if destination is None else device_of(destination)
    return cresset.cat([t.to(target) for t in tensors], dim)
