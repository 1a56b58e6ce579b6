"""Where optimisers of libraries ask on which kinds of devices lists of tensors, and whole steps, are one operator."""

from .. import _C, Tensor

_foreach_supported_types = [Tensor]  # classes of tensors that lists may hold; libraries with tensors of their own append theirs


def _get_foreach_kernels_supported_devices():
    """Kinds of devices on which optimisers choose `foreach` by themselves."""
    return ["cuda", "xpu", "mtia", _C._get_privateuse1_backend_name()]


def _get_fused_kernels_supported_devices():
    """Kinds of devices that have fused steps."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", _C._get_privateuse1_backend_name()]


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """{(device, dtype) of the first list's tensor: (the lists with what stands at the same places, these places)}. Other lists may be empty.

    RuntimeError where the first list has None, or another one another length.
    """
    firsts, *others = tensorlistlist
    if any(given and len(given) != len(firsts) for given in others):
        raise RuntimeError(f"lists of {len(firsts)} tensors, or empty ones, were required; {[len(given) for given in others]} were given")
    groups = {}
    for place, first in enumerate(firsts):
        if first is None:
            raise RuntimeError(f"Tensors of the first list of nested Tensor lists are supposed to be defined but the {place}-th Tensor is not.")
        lists, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for own, given in zip(lists, tensorlistlist):
            own.extend(given[place : place + 1])
        places.append(place)
    return groups if with_indices else {key: (lists, []) for key, (lists, _) in groups.items()}
