"""Products that are added up in a wider type than that of their operands."""

import cresset
from cresset._higher_order import HigherOrderOperator
from cresset.utils._pytree import tree_map_only

__all__ = ["out_dtype"]


class OutDtypeOperator(HigherOrderOperator):
    """The result of an operator in a dtype: its tensors are converted before, so whole numbers do not wrap around."""

    def __init__(self):
        super().__init__("out_dtype")
        aten = cresset.ops.aten
        self._operators = [aten.linear.default, aten.mm.default, aten.conv2d.default, aten.convolution.default, aten.mul.Tensor, aten.mul.Scalar,
                           aten.div.Tensor, aten.div.Scalar]  # fmt: skip

    def __call__(self, op, output_dtype, *args):
        if not isinstance(op, cresset._ops.OpOverload):
            raise ValueError("out_dtype's first argument must be an OpOverload")
        if op not in self._operators:
            raise ValueError(f"out_dtype only allows the following operators: {self._operators}.")
        return super().__call__(op, output_dtype, *args)


out_dtype = OutDtypeOperator()


def _converted(op, output_dtype, *args):
    return op(*tree_map_only(cresset.Tensor, lambda t: t.to(output_dtype), args))


@out_dtype.py_impl(cresset._C._functorch.TransformType.Vmap)
def _of_batches(level, op, output_dtype, *args):
    return _converted(op, output_dtype, *args)


for _key in (cresset._C.DispatchKey.Autograd, cresset._C.DispatchKey.CompositeExplicitAutograd):
    out_dtype.py_impl(_key)(_converted)
