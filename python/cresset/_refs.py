"""What PyTorch keeps under _refs: operators written in Python, with the meaning of those of the same name. Here they are the operators themselves.

Functions of `linalg`, `special`, `fft` and `nn.functional` stand in submodules of these names.
"""

import functools
import importlib.machinery
import inspect
import sys
import types

import cresset
from cresset._prims_common import canonicalize_dims


class _Operators(types.ModuleType):
    """The functions of a module of the package, under another name."""

    def __init__(self, name, source, parts):
        super().__init__(name, f"The functions of cresset{source and '.' + source}.")
        self._source, self.__path__ = source, []
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = self
        for part, below in parts.items():
            setattr(self, part, _Operators(f"{name}.{part}", f"{source}.{part}".lstrip("."), below))

    def _owner(self):
        owner = cresset
        for step in self._source.split(".") if self._source else ():
            owner = getattr(owner, step)
        return owner

    def __dir__(self):
        return [*vars(self), *self.__all__]

    def __getattr__(self, name):
        owner = self._owner()
        if owner is cresset and name in _OWN:
            return _OWN[name]
        if name == "__all__":
            operators = vars(cresset._C._VariableFunctions) if owner is cresset else getattr(owner, "__all__", None) or vars(owner)
            return sorted(n for n in operators if not n.startswith("_") and _is_function(getattr(owner, n, None)))
        found = None if name.startswith("_") else getattr(owner, name, None)
        if not _is_function(found) and owner is cresset and not name.startswith("_"):
            found = _method(name)
        if not _is_function(found):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if isinstance(found, types.BuiltinFunctionType):
            found = _with_signature(found, name, self._source)
            setattr(self, name, found)
        return found


# Their sizes or dimensions may be arguments one by one, as of the methods.
_SIZES = frozenset(["reshape", "permute"])


def _with_signature(builtin, name, source):
    """A function of Python that calls the operator: `inspect` reads its parameters, those of the overload that has most."""

    @functools.wraps(builtin)
    def function(*args, **kwargs):
        if name in _SIZES and len(args) > 1 and isinstance(args[1], int):
            args = (args[0], args[1:])
        return builtin(*args, **kwargs)

    packet = getattr(cresset.ops.aten, f"{source}_{name}" if source in ("linalg", "special", "fft") else name, None)
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()] if packet is not None else []
    parameters = max(([a for a in s.arguments if not a.is_out] for s in schemas), key=len, default=None)
    if parameters is not None:
        kinds = {False: inspect.Parameter.POSITIONAL_OR_KEYWORD, True: inspect.Parameter.KEYWORD_ONLY}
        given = [inspect.Parameter(a.name, kinds[a.kwarg_only], default=_default(a)) for a in parameters]
        if any(a.is_out for s in schemas for a in s.arguments):
            given.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
        function.__signature__ = inspect.Signature(given)
    return function


def _default(argument):
    return argument.default_value if argument.has_default_value() else inspect.Parameter.empty


def _prod(a, dim=None, keepdim=False, *, dtype=None, out=None):
    """The product over a dimension, several or all."""
    dims = (dim,) if isinstance(dim, int) else dim or tuple(range(a.dim()))
    dims = sorted(canonicalize_dims(a.dim(), dims), reverse=True)
    if len(set(dims)) < len(dims):
        raise RuntimeError("duplicate value in the list of dims")
    result = a if dims else cresset.prod(a, dtype=dtype)
    for d in dims:
        result = cresset.prod(result, d, keepdim, dtype=dtype)
    return result if out is None else out.resize_(result.shape).copy_(result)


def _is_function(found):
    return callable(found) and not isinstance(found, (type, types.ModuleType))


def _method(name):
    """What is only a method or a property of tensors, or an operator without a function, as a function."""
    found = getattr(cresset.Tensor, name, None)
    if found is None:
        return getattr(cresset.ops.aten, name, None)
    return found if callable(found) else lambda tensor: getattr(tensor, name)


_OWN = {"prod": _prod}  # what the operator of the name takes less than

_Operators(__name__, "", {"linalg": {}, "special": {}, "fft": {}, "nn": {"functional": {}}})
_conversions = _Operators(f"{__name__}._conversions", "", {})  # methods such as Tensor.half
sys.modules[__name__]._conversions = _conversions
