"""Quantization: dynamic, after training, and in training (docs/guide/quantization.md)."""

from .fake_quantize import *  # noqa: F403
from .fake_quantize import __all__ as _fake_quantize
from .fuse_modules import fuse_modules, fuse_modules_qat  # noqa: F401
from .fuser_method_mappings import *  # noqa: F403
from .fuser_method_mappings import __all__ as _fusers
from .observer import *  # noqa: F403
from .observer import __all__ as _observers
from .qconfig import *  # noqa: F403
from .qconfig import __all__ as _qconfigs
from .qconfig_mapping import *  # noqa: F403
from .qconfig_mapping import __all__ as _qconfig_mapping
from .quant_type import QuantType
from .quantization_mappings import *  # noqa: F403
from .quantization_mappings import __all__ as _mappings
from .quantize import *  # noqa: F403
from .quantize import __all__ as _quantize
from .quantize_jit import *  # noqa: F403
from .quantize_jit import __all__ as _quantize_jit
from .stubs import DeQuantStub, QuantStub, QuantWrapper
from .utils import MatchAllNode, Pattern, get_combined_dict

ObserverOrFakeQuantize = ObserverBase | FakeQuantizeBase  # noqa: F405


def default_eval_fn(model, calib_data):
    """Run the model on each (input, target) of the data: for `quantize`."""
    for data, _ in calib_data:
        model(data)


__all__ = [
    "DeQuantStub", "MatchAllNode", "ObserverOrFakeQuantize", "Pattern", "QuantStub", "QuantType", "QuantWrapper", "default_eval_fn", "fuse_modules",
    "fuse_modules_qat", "get_combined_dict", *_fake_quantize, *_fusers, *_observers, *_qconfigs, *_qconfig_mapping, *_mappings, *_quantize, *_quantize_jit,
]  # fmt: skip


def __getattr__(name):
    import importlib

    if name in ("backend_config", "fx", "quantize_fx", "_correct_bias", "_equalize", "_learnable_fake_quantize", "_numeric_suite"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
