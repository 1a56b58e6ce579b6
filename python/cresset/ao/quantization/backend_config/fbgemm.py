"""The engine fbgemm."""

from . import _dtypes as dtypes
from ._common_operator_config_utils import of_families
from .backend_config import BackendConfig

__all__ = ["get_fbgemm_backend_config"]


def get_fbgemm_backend_config():
    """The config of the engine fbgemm."""
    weighted, dynamic = dtypes.weighted_int8(), [dtypes.dynamic_int8(), dtypes.dynamic_float16()]
    return of_families(
        BackendConfig("fbgemm"), conv=[weighted], linear=[weighted, *dynamic], rnn=dynamic, embedding=[dtypes.rows_quint8(), dtypes.rows_quint4x2()],
        **dict.fromkeys(("binary", "matmul", "cat", "default", "fixed", "shared", "info", "bn"), [dtypes.op_quint8()]),
    )  # fmt: skip
