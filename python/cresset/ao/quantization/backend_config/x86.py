"""The engine x86, which chooses between fbgemm and onednn."""

from . import _dtypes as dtypes
from ._common_operator_config_utils import of_families
from .backend_config import BackendConfig

__all__ = ["get_x86_backend_config"]


def get_x86_backend_config():
    """The config of the engine x86."""
    weighted, dynamic = dtypes.weighted_int8(), [dtypes.dynamic_int8(), dtypes.dynamic_float16()]
    return of_families(
        BackendConfig("x86"), linear=[weighted, *dynamic], rnn=dynamic, embedding=[dtypes.rows_quint8(), dtypes.rows_quint4x2()],
        **dict.fromkeys(("conv", "binary", "matmul", "fixed"), [weighted]), **dict.fromkeys(("cat", "default", "shared", "info", "bn"), [dtypes.op_quint8()]),
    )  # fmt: skip
