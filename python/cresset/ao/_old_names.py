"""The places that quantization had before it was `ao`: modules under their old names, whose attributes are those of the new ones."""

import importlib.machinery
import sys
import types

__all__ = ["place"]

_TREES = {  # old name, relative to the package: (new name, modules below that have an old name too)
    "nn.quantized": (
        "ao.nn.quantized",
        "functional dynamic dynamic.modules dynamic.modules.conv dynamic.modules.linear dynamic.modules.rnn modules modules.activation modules.batchnorm modules.conv "
        "modules.dropout modules.embedding_ops modules.functional_modules modules.linear modules.normalization modules.rnn modules.utils",
    ),
    "nn.quantized._reference": ("ao.nn.quantized.reference", "modules modules.conv modules.linear modules.rnn modules.sparse modules.utils"),
    "nn.intrinsic": (
        "ao.nn.intrinsic",
        "modules modules.fused qat qat.modules qat.modules.conv_fused qat.modules.linear_fused qat.modules.linear_relu quantized quantized.dynamic "
        "quantized.dynamic.modules quantized.dynamic.modules.linear_relu quantized.modules quantized.modules.bn_relu quantized.modules.conv_relu "
        "quantized.modules.linear_relu",
    ),
    "nn.qat": ("ao.nn.qat", "dynamic dynamic.modules dynamic.modules.linear modules modules.conv modules.embedding_ops modules.linear"),
    "nn.quantizable": ("ao.nn.quantizable", "modules modules.activation modules.rnn"),
    "quantization": (
        "ao.quantization",
        "fake_quantize fuse_modules fuser_method_mappings fx fx.convert fx.fuse fx.graph_module fx.match_utils fx.pattern_utils fx.prepare fx.utils fx._equalize observer qconfig quant_type "
        "quantization_mappings quantize quantize_fx quantize_jit stubs utils",
    ),
    "quantization._numeric_suite": ("ao.ns._numeric_suite", ""),
    "quantization._numeric_suite_fx": ("ao.ns._numeric_suite_fx", ""),
    "quantization.fx.quantization_patterns": ("ao.quantization.fx.quantize_handler", ""),
}  # fmt: skip


_FUNCTIONS = {"convert", "fuse", "prepare", "quantize_jit"}  # by which names packages have functions


class _Forwarding(types.ModuleType):
    """A module whose attributes are those of another, which is loaded when one is asked for."""

    def __getattr__(self, name):
        if name in ("__file__", "__wrapped__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__dict__["_home"]), name)

    def __dir__(self):
        return sorted({*self.__dict__, *dir(importlib.import_module(self._home))})


def _forwarding(name, home, is_package):
    module = _Forwarding(name, f"The older name of `{home.partition('.')[2]}`.")
    module._home = home
    if is_package:
        module.__path__ = []
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=is_package)
    return module


def place(old):
    """Put the modules of an old tree in their places; the module of the tree itself forwards, too."""
    package = __name__.partition(".")[0]
    new, below = _TREES[old]
    for part in ["", *below.split()]:
        name, home = (f"{package}.{tree}{'.' * bool(part)}{part}" for tree in (old, new))
        if name in sys.modules and part:
            continue
        is_package = any(other.startswith(part + ".") for other in below.split()) if part else bool(below)
        module = _forwarding(name, home, is_package)
        parent, _, last = name.rpartition(".")
        sys.modules[name] = module
        if parent in sys.modules and last not in _FUNCTIONS:
            setattr(sys.modules[parent], last, module)
    for other in _TREES:
        if other.startswith(old + "."):
            place(other)
