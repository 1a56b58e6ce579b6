"""The decompositions by the names of their operators."""

import types

import cresset

from . import _activations, _composites, _elementwise, _indexing, _losses, _norms, _reductions, _resampling, _views

for _module in (_activations, _losses, _norms, _elementwise, _reductions, _views, _indexing, _resampling):
    for _name, _function in vars(_module).items():
        if isinstance(_function, types.FunctionType) and hasattr(cresset.ops.aten, _name):
            globals().setdefault(_name, _function)

__all__ = ["_composites"]
