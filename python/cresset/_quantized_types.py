"""Names of quantized element types and schemes: what quantization is told to make. `isinstance` takes the types for dtypes, as lists of dtypes
want it; no tensor has one, so functions that make tensors refuse them."""

from . import _C

__all__ = ["qint8", "quint8", "qint32", "quint4x2", "quint2x4", "qscheme", "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric",
           "per_channel_symmetric", "per_channel_affine_float_qparams"]  # fmt: skip


class _Name:
    def __init__(self, name):
        self._name = name
        self.__module__ = _C._printed_name()  # where pickles find it

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


class QuantizedType(_Name):
    """A quantized element type: what a dtype tells about itself."""

    is_floating_point = is_complex = False

    def __init__(self, name, itemsize):
        super().__init__(name)
        self.itemsize = itemsize

    @property
    def __class__(self):
        return _C.dtype

    @property
    def is_signed(self):
        """Raises RuntimeError: whether numbers are signed is a matter of the scheme."""
        raise RuntimeError("isSignedType not supported for quantized types")

    def to_real(self):
        """The type itself."""
        return self

    def to_complex(self):
        """Raises RuntimeError: there is none."""
        name = self._name.replace("qint", "QInt").replace("quint", "QUInt")
        raise RuntimeError(f"Unknown Complex ScalarType for {name}")


class qscheme(_Name):
    """How quantized elements stand for numbers."""


qint8, quint8, qint32, quint4x2, quint2x4 = map(QuantizedType, ("qint8", "quint8", "qint32", "quint4x2", "quint2x4"), (1, 1, 4, 1, 1))
per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric, per_channel_affine_float_qparams = map(
    qscheme, ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric", "per_channel_affine_float_qparams")
)
