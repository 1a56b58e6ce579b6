"""How attention masks that are written for one element index tensors with the numbers that vmap gives them."""

import cresset
from cresset.overrides import TorchFunctionMode
from cresset.utils._pytree import tree_leaves

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """Within it `x[i, j]` with tensors without dimensions gathers, so that it works where vmap gives the numbers; otherwise they are read."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is cresset.Tensor.__getitem__:
            indices = tree_leaves(args[1])
            if all(isinstance(i, cresset.Tensor) for i in indices):
                return cresset.ops.aten.index(args[0], indices)
        return func(*args, **(kwargs or {}))
