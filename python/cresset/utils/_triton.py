"""Whether kernels can be written in Triton: they cannot, since nothing here compiles them."""


def has_triton_package():
    """Whether a Triton that Cresset can use is installed: False."""
    return False


def has_triton():
    """Whether Triton is usable with a device that is here: False."""
    return False


def has_triton_tma():
    """Whether Triton has tensor memory access: False."""
    return False


def has_triton_tma_device():
    """Whether Triton has tensor memory access from kernels: False."""
    return False
