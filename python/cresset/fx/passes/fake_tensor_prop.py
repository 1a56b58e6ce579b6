"""Shapes of a graph's values, by running it with fake tensors."""

import cresset

from ..._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..interpreter import Interpreter
from ..node import map_aggregate
from .shape_prop import _extract_tensor_metadata

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph with fake tensors and writes them to meta["val"] of its nodes, and TensorMetadata to meta["tensor_meta"]."""

    def __init__(self, module, mode=None):
        super().__init__(module)
        self._mode = mode if mode is not None else FakeTensorMode(allow_non_fake_inputs=True)

    def run_node(self, n):
        """The value of a node; notes it."""
        result = super().run_node(n)

        def note(value):
            return self._mode.from_tensor(value) if isinstance(value, cresset.Tensor) and not isinstance(value, FakeTensor) else value

        meta = map_aggregate(result, note)
        if meta is not None:
            n.meta["val"] = meta
            if isinstance(meta, cresset.Tensor):
                n.meta["tensor_meta"] = _extract_tensor_metadata(meta)
        return result

    def propagate(self, *args):
        """Run with these arguments, which become fake."""
        return self.propagate_dont_convert_inputs(*[self._mode.from_tensor(a) if isinstance(a, cresset.Tensor) else a for a in args])

    def propagate_dont_convert_inputs(self, *args):
        """Run with fake arguments."""
        with self._mode:
            return super().run(*args)
