"""TensorRT: symmetric eight bits, whose scales its builder reads off the graph."""

import cresset

from ._common_operator_config_utils import _FAMILIES, _config, of_families
from .backend_config import BackendConfig, DTypeConfig

__all__ = ["get_tensorrt_backend_config", "get_tensorrt_backend_config_dict"]


def get_tensorrt_backend_config():
    """The config of TensorRT."""
    weighted = [DTypeConfig(cresset.qint8, cresset.qint8, cresset.qint8, cresset.float)]
    plain = [DTypeConfig(cresset.qint8, cresset.qint8)]
    made = of_families(BackendConfig("tensorrt"), conv=weighted)
    made.set_backend_pattern_config(_config(cresset.addmm, weighted, _input_type_to_index={"bias": 0, "input": 1, "weight": 2}))
    made.set_backend_pattern_configs(_FAMILIES["cat"](plain))
    made.set_backend_pattern_configs(_FAMILIES["linear"](weighted))
    made.set_backend_pattern_configs(_FAMILIES["binary"](weighted))
    made.set_backend_pattern_configs(_FAMILIES["matmul"](weighted))
    made.set_backend_pattern_configs(_FAMILIES["shared"](plain))
    return made.set_backend_pattern_configs(_FAMILIES["info"](plain))


def get_tensorrt_backend_config_dict():
    """The config of TensorRT as a dictionary."""
    return get_tensorrt_backend_config().to_dict()
