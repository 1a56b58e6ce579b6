"""One recording: the operators that a call runs, as a graph."""

import inspect
import warnings

import cresset
from cresset._C import TracerWarning

from .. import _C

__all__ = ["parameter_names", "record"]

_CONTAINER = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is only valid if the container structure "
    "does not change based on the module's inputs. Consider using a constant container instead (e.g. for `list`, use a `tuple` instead. "
    "for `dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass strict=False to trace() to "
    "allow this behavior."
)


def parameter_names(func, count):
    """Names for the inputs of a graph: the function's, as far as its parameters have places."""
    names = []
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    for p in parameters:
        if p.kind is not p.POSITIONAL_OR_KEYWORD and p.kind is not p.POSITIONAL_ONLY:
            break
        names.append(p.name)
    names = names[:count]
    return names + [f"argument_{i}" for i in range(len(names), count)]


def own_tensors(value, seen):
    """The same containers, in which no tensor is met twice: the identity of a tensor says which input it is."""
    if isinstance(value, cresset.Tensor):
        if id(value) in seen:
            value = value.view(value.shape)
        seen[id(value)] = value
        return value
    if isinstance(value, tuple):
        parts = [own_tensors(v, seen) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [own_tensors(v, seen) for v in value]
    if isinstance(value, dict):
        return {k: own_tensors(v, seen) for k, v in value.items()}
    return value


def _check_containers(output, strict):
    if isinstance(output, dict) and strict:
        raise RuntimeError(_CONTAINER.format("dict"))
    if isinstance(output, list) and strict:
        warnings.warn(_CONTAINER.format("list"), TracerWarning, stacklevel=4)
    for part in output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else ():
        _check_containers(part, strict)


def record(call, names, inputs, strict, owner=None, taken=(), force_outplace=False):
    """The graph of `call(*inputs)`. `taken` are tensors that are no inputs: one that is given all the same gets an identity of its own."""
    inputs = own_tensors(inputs, {id(t): t for t in taken})
    _C._trace_begin(names, inputs, owner, force_outplace)
    try:
        output = call(*inputs)
        _check_containers(output, strict)
        return _C._trace_end(output)
    except BaseException:
        _C._trace_abandon()
        raise
