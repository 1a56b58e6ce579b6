"""What layers that are trained to be quantized are made of."""

__all__ = ["check_source"]


def check_source(cls, mod, kind=None):
    """AssertionError unless mod, whose class is `kind` where it is not type(mod), is what cls.from_float takes, and has a qconfig."""
    kind = kind or type(mod)
    if kind is not cls._FLOAT_MODULE:
        raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}; got {kind.__name__}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
