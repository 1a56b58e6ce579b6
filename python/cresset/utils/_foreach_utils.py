"""Where optimisers of libraries ask on which kinds of devices lists of tensors, and whole steps, are one operator."""

from .. import _C


def _get_foreach_kernels_supported_devices():
    """Kinds of devices on which optimisers choose `foreach` by themselves."""
    return ["cuda", "xpu", "mtia", _C._get_privateuse1_backend_name()]


def _get_fused_kernels_supported_devices():
    """Kinds of devices that have fused steps."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", _C._get_privateuse1_backend_name()]
