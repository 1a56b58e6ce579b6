"""Shapes and dtypes of a graph's values, by running it."""

import traceback
from typing import Any, NamedTuple

import cresset

from ..interpreter import Interpreter
from ..node import map_aggregate

__all__ = ["TensorMetadata", "ShapeProp"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor. memory_format: the first of contiguous and channels last (2d, 3d) that it has, or None."""

    shape: cresset.Size
    dtype: cresset.dtype
    requires_grad: bool
    stride: tuple
    memory_format: Any
    is_quantized: bool
    qparams: dict


def _extract_tensor_metadata(result, include_contiguity=True):
    memory_format = None
    if include_contiguity and result.layout is cresset.strided:
        for candidate in (cresset.contiguous_format, cresset.channels_last, cresset.channels_last_3d):
            if result.is_contiguous(memory_format=candidate):
                memory_format = candidate
                break
    stride = result.stride() if result.layout is cresset.strided else ()
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, tuple(stride), memory_format, False, {})


class ShapeProp(Interpreter):
    """Runs a graph and writes TensorMetadata to meta["tensor_meta"] of its nodes, and to meta["type"] the type of the value.

    fake_mode: the run computes shapes only.
    """

    def __init__(self, gm, fake_mode=None):
        super().__init__(gm)
        self.fake_mode = fake_mode
        self.real_module = self.module
        self.fake_module = None
        if fake_mode is not None:
            import copy

            with fake_mode:
                self.fake_module = copy.deepcopy(self.module)
                for owner in self.fake_module.modules():
                    for table in (owner._parameters, owner._buffers):
                        for name, value in table.items():
                            if value is not None:
                                table[name] = fake_mode.from_tensor(value)

    def run_node(self, n):
        """The value of a node; notes what it is. RuntimeError names the node at which the run fails."""
        try:
            if self.fake_module is not None:
                self.module = self.fake_module
            try:
                if self.fake_mode is not None:
                    with self.fake_mode:
                        result = super().run_node(n)
                else:
                    result = super().run_node(n)
            finally:
                self.module = self.real_module
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def describe(value):
            nonlocal found
            if isinstance(value, cresset.Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run with these arguments; gives the result."""
        if self.fake_mode is not None:
            args = [self.fake_mode.from_tensor(t) if isinstance(t, cresset.Tensor) else t for t in args]
        return super().run(*args)
