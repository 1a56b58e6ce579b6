"""The combinations of dtypes that several backends share. Each call gives new objects: a user may change those of a config."""

import cresset

from .backend_config import DTypeConfig, DTypeWithConstraints

_FLOAT, _HALF, _QINT8, _QUINT8 = cresset.float, cresset.float16, cresset.qint8, cresset.quint8


def weighted_int8():
    """Activations in quint8, weights in qint8."""
    return DTypeConfig(_QUINT8, _QUINT8, _QINT8, _FLOAT)


def op_quint8():
    """quint8 without weights."""
    return DTypeConfig(_QUINT8, _QUINT8)


def op_fp16():
    """All in float16."""
    return DTypeConfig(_HALF, _HALF, _HALF, _HALF)


def dynamic_int8():
    """Inputs are quantized as they come, weights are qint8."""
    return DTypeConfig(_QUINT8, _FLOAT, _QINT8, _FLOAT, is_dynamic=True)


def dynamic_float16():
    """Weights in float16."""
    return DTypeConfig(_HALF, _FLOAT, _HALF, _FLOAT, is_dynamic=True)


def float_weight_quint8():
    """Activations in quint8, weights float."""
    return DTypeConfig(_QUINT8, _QUINT8, _FLOAT, _FLOAT)


def rows_quint8():
    """Rows of embeddings in quint8."""
    return DTypeConfig(_FLOAT, _FLOAT, _QUINT8)


def rows_quint4x2():
    """Rows of embeddings in four bits."""
    return DTypeConfig(_FLOAT, _FLOAT, cresset.quint4x2)


# What kernels of QNNPACK ask of symmetric numbers.
def symmetric_activation():
    """qint8 whose scale is not too small."""
    return DTypeWithConstraints(dtype=_QINT8, scale_min_lower_bound=2**-12)


def symmetric_weight():
    """qint8 without -128."""
    return DTypeWithConstraints(dtype=_QINT8, quant_min_lower_bound=-127, quant_max_upper_bound=127, scale_min_lower_bound=2**-12)


def symmetric_weighted_int8():
    """Symmetric activations and weights."""
    return DTypeConfig(symmetric_activation(), symmetric_activation(), symmetric_weight(), _FLOAT)


def symmetric_op_qint8():
    """Symmetric activations without weights."""
    return DTypeConfig(symmetric_activation(), symmetric_activation())


def symmetric_dynamic_qint8():
    """Symmetric inputs as they come, symmetric weights."""
    return DTypeConfig(symmetric_activation(), _FLOAT, symmetric_weight(), _FLOAT, is_dynamic=True)
