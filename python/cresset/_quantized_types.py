"""Names of quantized element types and schemes: what quantization is told to make. No tensor has one, so they are no dtypes."""

__all__ = ["qint8", "quint8", "qint32", "quint4x2", "quint2x4", "qscheme", "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric",
           "per_channel_symmetric", "per_channel_affine_float_qparams"]  # fmt: skip


class _Name:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


class QuantizedType(_Name):
    """A quantized element type."""


class qscheme(_Name):
    """How quantized elements stand for numbers."""


qint8, quint8, qint32, quint4x2, quint2x4 = map(QuantizedType, ("qint8", "quint8", "qint32", "quint4x2", "quint2x4"))
per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric, per_channel_affine_float_qparams = map(
    qscheme, ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric", "per_channel_affine_float_qparams")
)
