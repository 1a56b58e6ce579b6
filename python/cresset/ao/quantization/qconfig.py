"""How a layer's weights are quantized: QConfig, and the usual ones of dynamic quantization."""

from collections import namedtuple

import cresset

__all__ = ["QConfig", "default_dynamic_qconfig", "float16_dynamic_qconfig", "per_channel_dynamic_qconfig", "default_dynamic_quant_observer"]

QConfig = namedtuple("QConfig", ["activation", "weight"])
QConfig.__doc__ = "What quantizes the inputs and the weights of a layer."


class _Kind:
    """A way to quantize: a dtype, with one scale or one for each row."""

    def __init__(self, dtype, per_row=False):
        self.dtype, self.per_row = dtype, per_row

    def __repr__(self):
        return f"{self.dtype}{', a scale for each row' if self.per_row else ''}"


default_dynamic_quant_observer = _Kind(cresset.quint8)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, _Kind(cresset.qint8))
per_channel_dynamic_qconfig = QConfig(default_dynamic_quant_observer, _Kind(cresset.qint8, per_row=True))
float16_dynamic_qconfig = QConfig(_Kind(cresset.float32), _Kind(cresset.float16))


def weight_kind(qconfig):
    """(dtype, a scale for each row?) of the weights; RuntimeError for dtypes other than qint8 and float16."""
    kind = (qconfig or default_dynamic_qconfig).weight
    if kind.dtype not in (cresset.qint8, cresset.float16):
        raise RuntimeError(f"Unsupported dtype specified for dynamic quantized Linear! Given: {kind.dtype}; qint8 or float16 was required.")
    return kind.dtype, kind.per_row
