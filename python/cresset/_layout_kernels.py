"""Kernels that programs register for the keys of sparse and quantized tensors. Those are classes of Python: the dispatcher has no tensors of the keys."""

__all__ = ["KEYS", "kernels", "kernel_of"]

KEYS = ("SparseCPU", "SparseCsrCPU", "QuantizedCPU")
kernels = {}  # {"namespace/name.overload/key": function}


def kernel_of(func, key):
    """What a program has registered for an overload and one of the keys, or None."""
    return kernels.get(f"{func.name().replace('::', '/', 1)}/{key}") if kernels else None
