"""Which engine computes quantized operations."""

import types

_ENGINES = ("none", "x86", "fbgemm", "onednn", "qnnpack")  # all but the first are the same arithmetic
_chosen = ["x86"]


class QuantizedModule(types.ModuleType):
    """`backends.quantized`: the engine that is chosen, and those that are there. With "none" quantized modules refuse to compute."""

    @property
    def supported_engines(self):
        """Names of the engines, a new list each time."""
        return list(_ENGINES)

    @property
    def engine(self):
        """The name of the engine. RuntimeError for one that is not there."""
        return _chosen[0]

    @engine.setter
    def engine(self, name):
        if name not in _ENGINES:
            raise RuntimeError(f"{name} is not a valid value for quantized engine")
        _chosen[0] = name


def require_engine(operation):
    """RuntimeError when there is no engine for `operation`."""
    if _chosen[0] == "none":
        raise RuntimeError(f"Didn't find engine for operation {operation} NoQEngine")
