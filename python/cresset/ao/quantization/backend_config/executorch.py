"""ExecuTorch with the kernels of XNNPACK."""

import cresset
from cresset import nn
from cresset.ao.nn import qat as nnqat
from cresset.ao.nn.quantized import reference as nnqr
from cresset.nn import functional as F

from . import _dtypes as dtypes
from ._common_operator_config_utils import SHARED, _all, _config, _conv_configs, _get_binary_op_configs, _get_embedding_op_configs
from .backend_config import BackendConfig

__all__ = ["get_executorch_backend_config"]

_SHARED_FUNCTIONS = (
    F.adaptive_avg_pool2d, F.elu, F.hardtanh, F.max_pool2d, F.pad, F.relu, F.relu6, F.leaky_relu, F.leaky_relu_, nn.AdaptiveAvgPool2d, nn.ConstantPad2d,
    nn.ELU, nn.MaxPool2d, nn.ReLU6, nn.Hardtanh, nn.LeakyReLU, cresset.clamp, cresset.flatten, cresset.mean, cresset.permute, cresset.permute_copy,
    cresset.squeeze, "clamp", "mean", "permute", "reshape", "relu", "relu_", "squeeze", "squeeze_", "leaky_relu",
)  # fmt: skip


def _linear_configs():
    asymmetric = [dtypes.symmetric_weighted_int8(), dtypes.weighted_int8()]
    of = [*asymmetric, dtypes.dynamic_int8(), dtypes.symmetric_dynamic_qint8(), dtypes.dynamic_float16()]
    parts = {"root_module": nn.Linear, "reference_quantized_module": nnqr.Linear}
    return [
        _config(nn.Linear, of, qat_module=nnqat.Linear, **parts), _config(nnqat.Linear, of, **parts),
        _config(F.linear, of, _input_type_to_index={"weight": 1, "bias": 2}),
    ]  # fmt: skip


def get_executorch_backend_config():
    """The config of ExecuTorch."""
    weighted, plain = [dtypes.symmetric_weighted_int8(), dtypes.weighted_int8()], [dtypes.symmetric_op_qint8(), dtypes.op_quint8()]
    rows = [dtypes.rows_quint8()]
    embeddings = _get_embedding_op_configs(rows)
    embeddings.insert(2, _config(F.embedding, rows, _input_type_to_index={"weight": 1}))
    made = BackendConfig("executorch").set_backend_pattern_configs(_linear_configs()).set_backend_pattern_configs(_conv_configs(2, weighted))
    made.set_backend_pattern_configs(_get_binary_op_configs([dtypes.symmetric_op_qint8(), dtypes.weighted_int8()], ("add", "sub", "mul")))
    made.set_backend_pattern_configs(_all((nn.Flatten, *_SHARED_FUNCTIONS), plain, SHARED))
    made.set_backend_pattern_configs(_all((nn.BatchNorm2d,), plain))
    made.set_backend_pattern_configs(_all((cresset.cat, cresset.concat, cresset.concatenate), plain, SHARED))
    return made.set_backend_pattern_configs(embeddings)
