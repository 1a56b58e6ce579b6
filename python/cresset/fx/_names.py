"""How functions and types are written in graphs and in generated code: by PyTorch's names."""

import builtins
import operator
import re
import types

import cresset

from .. import _C

_FUNCTIONAL = frozenset(
    "align_tensors atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum istft lu "
    "meshgrid norm split stft tensordot unique unique_consecutive unravel_index".split()
)


def root_of(obj):
    """The first part of the name of the module of obj, which is "torch" for what this package defines."""
    module = getattr(obj, "__module__", None) or ""
    root = str(module).partition(".")[0]
    return "torch" if root == "cresset" else root


def is_from_torch(obj):
    """Is obj a function, class or operator of this package, so that generated code names it by its path?"""
    if isinstance(obj, types.ModuleType):
        return obj.__name__.partition(".")[0] in ("cresset", "torch")
    if root_of(obj) == "torch":
        return True
    name = getattr(obj, "__name__", None)
    return isinstance(obj, types.BuiltinFunctionType) and isinstance(name, str) and any(
        getattr(space, name, None) is obj for space in (cresset, _C, cresset.nn.functional)
    )


def _resolves(path, func):
    value = cresset
    for part in path.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError:
            return False
    return value is func


def _native_name(func, name):
    if type(func) is _C.builtin_method:
        return f"torch.Tensor.{name}"
    if name in _FUNCTIONAL and _resolves(f"torch.functional.{name}", func):
        return f"torch.functional.{name}"
    space = next((s for s in ("linalg", "fft", "special") if name.startswith(s + "_")), None)
    paths = [f"torch._C._{space}.{name}", f"torch.{space}.{name[len(space) + 1 :]}"] if space else []
    if getattr(cresset, name, None) is not func:
        paths.append(f"torch._C._nn.{name}")
    for path in [*paths, f"torch.{name}", f"torch.nn.functional.{name}", f"torch._C.{name}", f"torch._C._nn.{name}"]:
        if _resolves(path, func):
            return path
    return f"torch.{name}"


def _module_of(func, name):
    for space, path in ((cresset, "torch"), (_C, "torch._C"), (cresset.nn.functional, "torch.nn.functional")):
        if getattr(space, name, None) is func:
            return path
    raise RuntimeError(f"cannot find module for {func}")


def qualified_name(func):
    """The path of a function: "torch.relu", "_operator.add", "torch.ops.aten.add.Tensor"; RuntimeError for a lambda."""
    if isinstance(func, _C.OpOverload) or type(func).__name__ == "OpOverloadPacket":
        return f"torch.ops.{func}"
    if getattr(func, "_ns", None) == "higher_order":
        return f"torch.ops.higher_order.{func.__name__}"
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    if type(func) in (_C.builtin_function, _C.builtin_method):
        return _native_name(func, name)
    owner = getattr(func, "__objclass__", None)
    if owner is not None and issubclass(cresset.Tensor, owner) and owner is not object:
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        import inspect

        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except OSError as error:
            raise RuntimeError("Unable to represent lambda") from error
    module = getattr(func, "__module__", None) or _module_of(func, name)
    if module.partition(".")[0] in ("cresset", "torch"):
        if _FUNCTIONAL.__contains__(name) and _resolves(f"torch.functional.{name}", func):
            return f"torch.functional.{name}"
        if any(part.startswith("_") for part in module.split(".")[1:]):
            for path in (f"torch.{name}", f"torch.nn.functional.{name}"):
                if _resolves(path, func):
                    return path
        module = "torch" + module[module.index(".") :] if "." in module else "torch"
    return f"{module}.{name}"


def pretty_target(target):
    """A target as graphs print it: with "operator." and "builtins." written out."""
    if isinstance(target, str):
        return target
    if not hasattr(target, "__name__"):
        return repr(target)
    name = target.__name__
    if getattr(builtins, name, None) is target:
        return f"builtins.{name}"
    if getattr(operator, name, None) is target:
        return f"operator.{name}"
    return qualified_name(target)


def shown(value):
    """str of a value; dtypes and the like read `torch.…`."""
    text = str(value)
    return re.sub(r"\bcresset\.(?=[a-z]+[0-9a-z_]*\b)", "torch.", text) if "cresset." in text and not isinstance(value, str) else text


def type_text(obj):
    """A type as a reader would write it: "torch.Tensor", "int", "typing.List[int]"."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        module = obj.__module__
        if module == "builtins":
            return obj.__qualname__
        if module.partition(".")[0] == "cresset":
            module = "torch" + module[len("cresset") :]
        return f"{module}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return (repr(obj) if not isinstance(obj, str) else repr(obj)).replace("cresset.", "torch.")
