"""The layers and operators of `ao.nn.quantized`: what the engines have in common."""

from . import _dtypes as dtypes
from ._common_operator_config_utils import of_families
from .backend_config import BackendConfig

__all__ = [
    "get_test_only_legacy_native_backend_config", "default_op_quint8_dtype_config", "default_op_fp16_dtype_config", "default_dynamic_int8_dtype_config",
    "default_dynamic_float16_dtype_config", "input_output_only_quint8_dtype_config", "weight_only_quint8_dtype_config", "weight_only_quint4x2_dtype_config",
    "get_native_backend_config", "get_native_backend_config_dict", "get_test_only_legacy_native_backend_config_dict",
]  # fmt: skip

weighted_op_quint8_dtype_config = dtypes.weighted_int8()
default_op_quint8_dtype_config, default_op_fp16_dtype_config = dtypes.op_quint8(), dtypes.op_fp16()
default_dynamic_int8_dtype_config, default_dynamic_float16_dtype_config = dtypes.dynamic_int8(), dtypes.dynamic_float16()
input_output_only_quint8_dtype_config = dtypes.float_weight_quint8()
weight_only_quint8_dtype_config, weight_only_quint4x2_dtype_config = dtypes.rows_quint8(), dtypes.rows_quint4x2()


def _rest():
    return {
        "rnn": [default_dynamic_int8_dtype_config, default_dynamic_float16_dtype_config],
        "embedding": [weight_only_quint8_dtype_config, weight_only_quint4x2_dtype_config],
    }  # fmt: skip


def get_native_backend_config():
    """The config of the engines of `ao.nn.quantized`."""
    plain = [default_op_quint8_dtype_config]
    linear = [weighted_op_quint8_dtype_config, default_dynamic_int8_dtype_config, default_dynamic_float16_dtype_config]
    return of_families(
        BackendConfig("native"), conv=[weighted_op_quint8_dtype_config], linear=linear, ln=[input_output_only_quint8_dtype_config],
        **dict.fromkeys(("binary", "matmul", "cat", "default", "fixed", "shared", "info", "bn"), plain), **_rest(),
    )  # fmt: skip


def get_test_only_legacy_native_backend_config():
    """The same with float16 for activations, too."""
    linear = [weighted_op_quint8_dtype_config, default_dynamic_int8_dtype_config, default_dynamic_float16_dtype_config, default_op_fp16_dtype_config]
    return of_families(
        BackendConfig("_native_and_fp16"), conv=[weighted_op_quint8_dtype_config], linear=linear, ln=[input_output_only_quint8_dtype_config],
        **dict.fromkeys(("cat", "default", "info", "bn"), [default_op_quint8_dtype_config]),
        **dict.fromkeys(("binary", "matmul", "fixed", "shared"), [default_op_quint8_dtype_config, default_op_fp16_dtype_config]), **_rest(),
    )  # fmt: skip


def get_native_backend_config_dict():
    """The config of the engines as a dictionary."""
    return get_native_backend_config().to_dict()


def get_test_only_legacy_native_backend_config_dict():
    """The config with float16 as a dictionary."""
    return get_test_only_legacy_native_backend_config().to_dict()
