"""Products that are added up in a wider type than that of their operands."""

import functools

import cresset
from cresset._higher_order import HigherOrderOperator
from cresset._subclasses.fake_tensor import FakeTensorMode
from cresset._subclasses.functional_tensor import FunctionalTensorMode, call_on_values
from cresset.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, recorder_of_calls
from cresset.utils._pytree import tree_leaves, tree_map_only

__all__ = ["out_dtype"]


class OutDtypeOperator(HigherOrderOperator):
    """The result of an operator in a dtype: its tensors are converted before to one that holds them and this dtype, so whole numbers do not wrap around."""

    def __init__(self):
        super().__init__("out_dtype")
        aten = cresset.ops.aten
        self._operators = [aten.linear.default, aten.mm.default, aten.conv2d.default, aten.convolution.default, aten.mul.Tensor, aten.mul.Scalar,
                           aten.div.Tensor, aten.div.Scalar]  # fmt: skip

    def __call__(self, op, output_dtype, *args):
        if not isinstance(op, cresset._ops.OpOverload):
            raise ValueError("out_dtype's first argument must be an OpOverload")
        schema = op._schema
        if schema.is_mutable:
            raise ValueError("out_dtype's first argument needs to be a functional operator")
        if [str(result.type) for result in schema.returns] != ["Tensor"]:
            raise ValueError(f"out_dtype's can only apply to ops that return a single tensor. Instead got {[str(result.type) for result in schema.returns]}")
        if op not in self._operators:
            raise ValueError(f"out_dtype only allows the following operators: {self._operators}.")
        mode = recorder_of_calls()
        if mode is not None:
            return mode.record_higher_order(self, op, output_dtype, *args)
        return super().__call__(op, output_dtype, *args)


out_dtype = OutDtypeOperator()


def _converted(op, output_dtype, *args):
    wide = functools.reduce(cresset.promote_types, [x.dtype for x in tree_leaves(args) if isinstance(x, cresset.Tensor)], output_dtype)
    return op(*tree_map_only(cresset.Tensor, lambda t: t.to(wide), args)).to(output_dtype)


@out_dtype.py_impl(cresset._C._functorch.TransformType.Vmap)
def _of_batches(level, op, output_dtype, *args):
    return _converted(op, output_dtype, *args)


@out_dtype.py_impl(FakeTensorMode)
def _of_fakes(mode, op, output_dtype, *args):
    with mode:
        return _converted(op, output_dtype, *args)


@out_dtype.py_impl(FunctionalTensorMode)
def _of_functional_tensors(mode, *args):
    with mode:
        return call_on_values(out_dtype, *args)


@out_dtype.py_impl(ProxyTorchDispatchMode)
def _recorded(mode, *args):
    return mode.record_higher_order(out_dtype, *args) if mode.enabled else out_dtype(*args)


for _key in (cresset._C.DispatchKey.Autograd, cresset._C.DispatchKey.CompositeExplicitAutograd):
    out_dtype.py_impl(_key)(_converted)
