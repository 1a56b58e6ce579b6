"""Reading attributes and variables from outside, each with its path and check."""

import builtins
import enum
import functools
import types

import cresset
from cresset._same_names import own_module
from cresset.nn import Module, functional
from cresset.nn.modules._by_name import ByName

from .errors import Unsupported
from .recorder import CONSTANT_TYPES
from .values import Bound, Known, Results, Sizes, Super, TensorVar

__all__ = ["Attributes"]

_IDENTITIES = (
    type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.GetSetDescriptorType, functools.partial, enum.Enum, types.MethodWrapperType, types.GenericAlias, types.UnionType,
)  # fmt: skip
_MISSING = object()
# What tensors say of themselves that the guards of inputs decide.
_FACTS = frozenset({"dtype", "device", "layout", "ndim", "requires_grad", "is_cuda", "is_cpu", "is_meta", "is_sparse", "is_quantized", "is_mkldnn", "is_mps", "is_xpu", "itemsize", "is_nested"})
_VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag"})
# Methods that are no operators, or do more than give a result.
_METHODS_LEFT_ALONE = frozenset({
    "backward", "register_hook", "register_post_accumulate_grad_hook", "requires_grad_", "retain_grad", "share_memory_", "apply_", "map_", "map2_", "set_", "resize_",
    "resize_as_", "rename_", "rename", "refine_names", "align_to", "align_as", "pin_memory", "record_stream", "numpy", "storage", "untyped_storage", "data_ptr", "detach_", "reinforce",
    "__array__", "__dlpack__", "__deepcopy__", "__reduce_ex__", "__setstate__", "as_subclass", "stride", "storage_offset", "is_contiguous", "is_set_to", "is_shared", "sparse_resize_",
    "squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "as_strided_", "moveaxis_", "movedim_",
    "is_inference", "tolist", "item", "__len__", "__iter__", "cuda", "to_sparse", "is_pinned", "__contains__", "new", "swap_",
})  # fmt: skip


def of_type(cls, name):
    """The class attribute of a name, as it stands in the class; _MISSING."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return _MISSING


class Attributes:
    """Part of the evaluator: `rec` is its Recorder."""

    def wrap(self, obj, path, name):
        """An object that was found at a path."""
        guards = self.rec.guards
        if isinstance(obj, cresset.Tensor):
            return self.rec.input(obj, path, name)
        kind = type(obj)
        if kind in CONSTANT_TYPES:
            self._guard_constant(obj, path, name)
        elif isinstance(obj, _IDENTITIES) or callable(obj) and own_module(kind.__module__).startswith("cresset") and not isinstance(obj, Module):
            guards.check(f"{path} is {guards.constant(obj)}", f"{name} is another object")
        else:
            guards.check(f"type({path}) is {guards.constant(kind)}", f"{name} is no {kind.__name__} any more")
            self.names.setdefault(path, name)
        return Known(obj, path)

    def _guard_constant(self, obj, path, name):
        guards = self.rec.guards
        if obj is None or obj is True or obj is False or obj is ... or obj is NotImplemented:
            return guards.check(f"{path} is {obj}" if obj is not ... else f"{path} is ...", f"{name} is not {obj}")
        kept = guards.constant(obj)
        equal = f"repr({path}) == {repr(obj)!r}" if type(obj) in (float, complex) else f"{path} == {kept}"  # -0.0, nan
        guards.check(f"type({path}) is {guards.constant(type(obj))} and {equal}", f"{name} is not {obj!r}")

    # ---- variables

    def variable(self, scope, name):
        """The value of a name in a scope."""
        one = scope
        while one is not None:
            if name in one.names:
                return one.names[name]
            if name in one.local:
                raise Unsupported(f"{name} has no value yet")
            root, one = one, one.parent
        function = root.function
        if function is None:
            raise Unsupported(f"{name} has no value")
        guards = self.rec.guards
        if name in function.__code__.co_freevars:
            index = function.__code__.co_freevars.index(name)
            try:
                found = function.__closure__[index].cell_contents
            except ValueError:
                raise Unsupported(f"{name} has no value yet") from None
            return self.wrap(found, guards.read(f"{guards.constant(function.__closure__[index])}.cell_contents"), name)
        space = guards.constant(function.__globals__)
        if name in function.__globals__:
            return self.wrap(function.__globals__[name], guards.read(f"{space}[{name!r}]"), name)
        guards.check(f"{name!r} not in {space}", f"{name} is a global variable now")
        if not hasattr(builtins, name):
            raise Unsupported(f"{name} is not defined")
        return self.wrap(getattr(builtins, name), guards.read(f"{guards.constant(builtins)}.{name}"), name)

    # ---- attributes

    def attribute(self, v, name):
        """v.name"""
        if isinstance(v, TensorVar):
            return self._of_tensor(v, name)
        if isinstance(v, Super):
            return self._of_super(v, name)
        if isinstance(v, Known):
            return self._of_object(v, name)
        if isinstance(v, Results) and hasattr(v.kind, name) and name in getattr(v.kind, "__match_args__", _fields(v.kind)):
            return v[_fields(v.kind).index(name)]
        if isinstance(v, (list, dict)) or (isinstance(v, tuple) and name in ("count", "index", "numel")):
            return Bound(v, name)
        raise Unsupported(f"reads .{name} of a {type(v).__name__.lower()}")

    def _of_tensor(self, v, name):
        if name == "shape":
            return self.rec.shape(v)
        if name in _FACTS:
            return Known(getattr(v.value, name))
        if name in _VIEWS:
            return self.record("call_function", getattr, (v, Known(name)), trace=self.trace())
        member = of_type(type(v.value), name)
        if member is _MISSING or not callable(member) or name in _METHODS_LEFT_ALONE:
            raise Unsupported(f"reads or calls .{name} of a tensor", breaks=name in ("item", "tolist", "numpy", "backward", "data_ptr"))
        return Bound(v, name)

    def _of_super(self, v, name):
        kind = type(v.owner.obj)
        mro = kind.__mro__
        for base in mro[mro.index(v.cls) + 1 :]:
            if name in base.__dict__:
                found = base.__dict__[name]
                if not isinstance(found, types.FunctionType):
                    raise Unsupported(f"reads super().{name}")
                guards = self.rec.guards
                path = guards.read(f"{guards.constant(base)}.__dict__[{name!r}]")
                return Bound(v.owner, self.wrap(found, path, name))
        raise Unsupported(f"super() has no {name}")

    def _of_object(self, v, name):
        obj, guards = v.obj, self.rec.guards
        path = v.path
        if isinstance(obj, types.ModuleType) or type(obj).__module__ == "cresset._ops":
            found = getattr(obj, name, _MISSING)
            if found is _MISSING:
                raise Unsupported(f"{getattr(obj, '__name__', obj)} has no {name}")
            return self.wrap(found, guards.read(f"{path or guards.constant(obj)}.{name}"), name)
        if isinstance(obj, type):
            return self._of_class(v, name)
        if type(obj) in CONSTANT_TYPES:
            found = getattr(obj, name, _MISSING)
            if found is _MISSING:
                raise Unsupported(f"{obj!r} has no {name}")
            return Known(found) if type(found) in CONSTANT_TYPES else Bound(v, name)
        if isinstance(obj, (list, tuple, dict, set, frozenset)) and type(obj) in (list, tuple, dict, set, frozenset):
            return Bound(v, name)
        if path is None:
            raise Unsupported(f"reads .{name} of a {type(obj).__name__}")
        return self._of_instance(v, name)

    def _of_class(self, v, name):
        obj, guards = v.obj, self.rec.guards
        found = of_type(obj, name)
        base = v.path or guards.constant(obj)
        if found is _MISSING and own_module(obj.__module__).startswith("cresset.") and isinstance(of_type(type(obj), name), property):
            return self.wrap(getattr(obj, name), guards.read(f"{base}.{name}"), f"{obj.__name__}.{name}")
        if found is _MISSING or isinstance(found, property):
            raise Unsupported(f"reads .{name} of the class {obj.__name__}")
        value = getattr(obj, name)
        if isinstance(found, classmethod):
            raise Unsupported(f"calls the class method {obj.__name__}.{name}")
        return self.wrap(value, guards.read(f"{base}.{name}"), f"{obj.__name__}.{name}")

    def _of_instance(self, v, name):
        obj, path, guards = v.obj, v.path, self.rec.guards
        kind = type(obj)
        if kind.__getattribute__ is not object.__getattribute__:
            raise Unsupported(f"{kind.__name__} reads attributes in its own way")
        names = getattr(obj, "__dict__", None)
        if not isinstance(names, dict):
            raise Unsupported(f"reads .{name} of a {kind.__name__}")
        guards.check(f"type({path}) is {guards.constant(kind)}", f"an object is no {kind.__name__} any more")
        member = of_type(kind, name)
        if isinstance(member, property):
            function = member.fget
            held = guards.read(f"{guards.constant(member)}.fget")
            self._guard_member(kind, name, member)
            return self.invoke(self.wrap(function, held, name), [v], {})
        if member is not _MISSING and hasattr(type(member), "__set__"):
            raise Unsupported(f"{kind.__name__}.{name} is a descriptor")
        own = guards.read(f"{path}.__dict__")
        if name in names:
            return self.wrap(names[name], guards.read(f"{own}[{name!r}]"), f"{self.name_of(v)}.{name}")
        guards.check(f"{name!r} not in {own}", f".{name} of a {kind.__name__} is set")
        if member is not _MISSING:
            return self._of_kind(v, kind, name, member)
        return self._of_module(v, name, own) if isinstance(obj, Module) else self._absent(kind, name)

    def _guard_member(self, kind, name, member):
        guards = self.rec.guards
        base = next(b for b in kind.__mro__ if name in b.__dict__)
        for other in kind.__mro__[: kind.__mro__.index(base)]:
            guards.check(f"{name!r} not in {guards.constant(other)}.__dict__", f"{other.__name__} has .{name} now")
        guards.check(f"{guards.constant(base)}.__dict__[{name!r}] is {guards.constant(member)}", f"{base.__name__}.{name} is another object")

    def _of_kind(self, v, kind, name, member):
        self._guard_member(kind, name, member)
        if isinstance(member, types.FunctionType):
            return Bound(v, Known(member))
        if isinstance(member, staticmethod):
            return Known(member.__func__, self.rec.guards.constant(member.__func__))
        if isinstance(member, ByName):
            return self.attribute(Known(functional, self.rec.guards.constant(functional)), member.name)
        if type(member) in CONSTANT_TYPES or isinstance(member, (type, list, tuple, dict, enum.Enum)):
            return self.wrap(member, self.rec.guards.constant(member), name)
        raise Unsupported(f"reads .{name} of a {kind.__name__}")

    def _of_module(self, v, name, own):
        module, guards = v.obj, self.rec.guards
        if type(module).__getattr__ is not Module.__getattr__:
            raise Unsupported(f"{type(module).__name__} reads attributes in its own way")
        for part in ("_parameters", "_buffers", "_modules"):
            where = guards.read(f"{own}[{part!r}]")
            names = module.__dict__[part]
            if name in names:
                found = self.wrap(names[name], guards.read(f"{where}[{name!r}]"), f"{self.name_of(v)}.{name}")
                if isinstance(found, TensorVar):
                    found.held = True
                return found
            guards.check(f"{name!r} not in {where}", f".{name} of a {type(module).__name__} is set")
        return self._absent(type(module), name)

    def _absent(self, kind, name):
        raise Unsupported(f"a {kind.__name__} has no attribute {name}")

    def name_of(self, v):
        """How errors and placeholders call an object."""
        return self.names.get(v.path, type(v.obj).__name__)

    def has_attribute(self, v, name):
        """hasattr(v, name), with what makes it so."""
        if isinstance(v, TensorVar):
            return hasattr(type(v.value), name)
        if isinstance(v, Known) and isinstance(v.obj, (types.ModuleType, type)) or isinstance(v, Known) and type(v.obj) in CONSTANT_TYPES:
            return hasattr(v.obj, name)
        if isinstance(v, Sizes):
            return hasattr(cresset.Size, name)
        if isinstance(v, Known) and isinstance(v.obj, Module) and type(v.obj).__getattr__ is Module.__getattr__ and v.path:
            try:
                self.attribute(v, name)
            except Unsupported as error:
                if error.reason.endswith(f"has no attribute {name}"):
                    return False
                raise
            return True
        raise Unsupported(f"hasattr() of a {type(v).__name__.lower()}")


def _fields(kind):
    """The names of a named result's parts, in order."""
    names = [n for n in vars(kind) if isinstance(vars(kind)[n], types.MemberDescriptorType)]
    return names
