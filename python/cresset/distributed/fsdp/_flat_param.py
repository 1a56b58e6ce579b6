"""FlatParameter: its type, so that programs can ask for it. Parameters are not flattened here."""

from cresset import nn

__all__ = ["FlatParameter"]


class _Kind(type(nn.Parameter)):
    def __instancecheck__(cls, instance):
        return False


class FlatParameter(nn.Parameter, metaclass=_Kind):
    """Nothing is a FlatParameter: FullyShardedDataParallel divides each parameter by itself, as with use_orig_params=True. RuntimeError from the constructor."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("FlatParameter: parameters are not flattened in Cresset: FullyShardedDataParallel divides each by itself.")
