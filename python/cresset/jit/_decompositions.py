"""Operators by graphs of other operators, for `_C._jit_pass_run_decompositions`."""

from cresset import _C

__all__ = ["register_decomposition"]


def register_decomposition(op, graph):
    """From now on the pass puts this graph in the place of `op`, an overload that writes nothing: the inputs are its arguments, the outputs its results.
    RuntimeError where their numbers differ."""
    if not isinstance(op, _C.OpOverload):
        raise TypeError(f"_register_decomposition: an overload of an operator was required (ops.aten.square.default); a {type(op).__name__} was given")
    _C._jit_register_decomposition(op.name(), graph)
