"""The engine qnnpack, and symmetric numbers as XNNPACK takes them."""

from . import _dtypes as dtypes
from ._common_operator_config_utils import of_families
from .backend_config import BackendConfig

__all__ = ["get_qnnpack_backend_config"]


def get_qnnpack_backend_config():
    """The config of the engine qnnpack."""
    weighted, dynamic = [dtypes.symmetric_weighted_int8(), dtypes.weighted_int8()], [dtypes.dynamic_int8(), dtypes.dynamic_float16()]
    plain = [dtypes.symmetric_op_qint8(), dtypes.op_quint8()]
    return of_families(
        BackendConfig("qnnpack"), conv=weighted, linear=[*weighted, *dynamic], rnn=dynamic, embedding=[dtypes.rows_quint8(), dtypes.rows_quint4x2()],
        **dict.fromkeys(("binary", "matmul", "cat", "default", "fixed", "shared", "bn"), plain),
    )  # fmt: skip
