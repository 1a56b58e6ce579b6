"""Tensors that lie on several devices are not part of Cresset: their type, so that programs can ask whether a tensor is one."""

import cresset

__all__ = ["DTensor"]


class DTensor(cresset.Tensor):
    """A tensor that is spread over a mesh of devices. There is none: RuntimeError from the constructor."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("DTensor: tensors on several devices are not part of Cresset.")
