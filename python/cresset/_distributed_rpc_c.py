"""What PyTorch has as torch._C._distributed_rpc, for programs that ask whether an object is one of its kinds: calls in other processes are not part of
Cresset, so none is."""

__all__ = ["PyRRef"]


class PyRRef:
    """A reference to a value of another process. There are none here: RuntimeError."""

    def __init__(self, value=None, type_hint=None):
        raise RuntimeError("PyRRef: calls in other processes are not part of this build (distributed.rpc.is_available() is False). Use process groups instead.")
