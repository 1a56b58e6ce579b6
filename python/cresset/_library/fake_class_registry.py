"""Fakes of objects of C++ classes: Python classes that stand in for them where tensors are fakes."""

import copy
import importlib

import cresset
from cresset._C import DispatchKey
from cresset._logging import logger_of
from cresset._ops import OpOverload
from cresset.utils._pytree import tree_map_only
from cresset.utils._python_dispatch import _disable_current_modes

from .utils import parse_namespace

__all__ = [
    "FakeClassRegistry", "FakeScriptMethod", "FakeScriptObject", "as_fake", "deregister_fake_class", "find_fake_class", "global_fake_class_registry", "has_fake_class",
    "maybe_to_fake_obj", "maybe_unwrap_fake_script_object", "register_fake_class", "run_operator", "tracing_with_real",
]  # fmt: skip

log = logger_of(__name__)
_CONVERT_FROM_REAL_NAME = "__obj_unflatten__"


class FakeScriptMethod:
    """A method of a FakeScriptObject: where a trace records, its call is a node."""

    def __init__(self, self_fake_obj, method_name, schema):
        self.self_fake_obj, self.method_name, self.schema = self_fake_obj, method_name, schema

    def __call__(self, *args, **kwargs):
        return importlib.import_module("cresset._higher_order_ops.torchbind").call_torchbind(self.self_fake_obj, self.method_name, *args, **kwargs)


class FakeScriptObject:
    """The fake of an object of a C++ class.

    wrapped_obj: the object of the class that register_fake_class named, whose tensors are fakes. script_class_name: of the C++ class. real_obj: what it is
    the fake of. Its methods are those that both classes have.
    """

    def __init__(self, wrapped_obj, script_class_name, real_obj):
        vars(self).update(wrapped_obj=wrapped_obj, script_class_name=script_class_name, real_obj=real_obj)
        for name in _methods_of(type(wrapped_obj)):
            if real_obj is not None and real_obj._has_method(name):
                vars(self)[name] = FakeScriptMethod(self, name, getattr(real_obj, name).schema)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Operators on fakes run what they have for fakes."""
        return run_operator(func, args, kwargs or {})

    def __getattr__(self, name):
        if name.startswith("__") or "wrapped_obj" not in vars(self):
            raise AttributeError(name)
        raise AttributeError(f"FakeScriptObject doesn't define method {name}: give it to {type(self.wrapped_obj).__name__}, the fake class of {self.script_class_name}.")

    def __setattr__(self, name, value):
        raise AttributeError(f"{name}: attributes of a FakeScriptObject ({self.script_class_name}) cannot be set. Call a method of the class that does it.")

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = FakeScriptObject(copy.deepcopy(self.wrapped_obj, memo), self.script_class_name, self.real_obj)
        return memo[id(self)]


def _methods_of(cls):
    return [name for name in dir(cls) if name != "__init__" and callable(getattr(cls, name)) and any(name in vars(c) for c in cls.__mro__[:-1])]


class FakeClassRegistry:
    """Fake classes by the qualified names of C++ classes."""

    def __init__(self):
        self._registered_class = {}

    def has_impl(self, full_qualname):
        """Is there a fake class?"""
        return full_qualname in self._registered_class

    def get_impl(self, full_qualname):
        """The fake class; RuntimeError where there is none."""
        if full_qualname not in self._registered_class:
            name = "::".join(full_qualname.split(".")[-2:])
            raise RuntimeError(
                f"ScriptObject's {full_qualname} haven't registered a fake class. Please use register_fake_class({name}) to annotate a fake class for the script "
                "obj: a Python class with a fake version of the methods that the program calls, and a class method __obj_unflatten__."
            )
        return self._registered_class[full_qualname]

    def register(self, full_qualname, fake_class=None):
        """Take a fake class; it replaces an earlier one."""
        if self.has_impl(full_qualname):
            log.warning("%s is already registered. Previous fake class is overridden with  %s.", full_qualname, fake_class)
        self._registered_class[full_qualname] = fake_class

    def deregister(self, full_qualname):
        """Forget a fake class and give it; None where there was none."""
        if not self.has_impl(full_qualname):
            log.warning("Cannot deregister %s. Please use register_fake_class to register it first. Or do you dereigster it twice?", full_qualname)
            return None
        return self._registered_class.pop(full_qualname)

    def clear(self):
        """Forget all."""
        self._registered_class.clear()


global_fake_class_registry = FakeClassRegistry()


def _full_qual_class_name(qualname):
    return "__torch__.torch.classes." + ".".join(parse_namespace(qualname))


def register_fake_class(qualname, fake_class=None):
    """The Python class that stands in for a registered C++ class, "namespace::name", where tensors are fakes; a decorator without `fake_class`.

    The C++ class has a method `__obj_flatten__`, which gives what an object holds as ((name, value), …). The fake class has a class method
    `__obj_unflatten__` that makes an object of it, with fakes in place of the tensors, and those of the methods that programs call on fakes. `make_fx`
    with tracing_mode="fake", `export` and fake implementations of operators then get a FakeScriptObject in place of the object; calls of its methods run
    the fake class's, are nodes `call_torchbind` of the graph, and leave the object as it is. RuntimeError where there is no such C++ class, or the fake
    class has no class method `__obj_unflatten__`. A second fake class replaces the first.
    """
    namespace, name = parse_namespace(qualname)

    def inner(fake_class):
        getattr(getattr(cresset.classes, namespace), name)  # RuntimeError where there is none
        from_real = vars(fake_class).get(_CONVERT_FROM_REAL_NAME, getattr(fake_class, _CONVERT_FROM_REAL_NAME, None))
        if from_real is None:
            raise RuntimeError(f"{fake_class} doesn't define a classmethod {_CONVERT_FROM_REAL_NAME}.")
        if not isinstance(from_real, classmethod) and getattr(from_real, "__self__", None) is None:
            raise RuntimeError(f"{_CONVERT_FROM_REAL_NAME} method is not a classmethod.")
        global_fake_class_registry.register(_full_qual_class_name(qualname), fake_class)
        return fake_class

    return inner if fake_class is None else inner(fake_class)


def deregister_fake_class(qualname):
    """Forget the fake class of a C++ class and give it; None where there was none."""
    return global_fake_class_registry.deregister(_full_qual_class_name(qualname))


def has_fake_class(full_qualname):
    """Has the C++ class a fake class?"""
    return global_fake_class_registry.has_impl(full_qualname)


def find_fake_class(full_qualname):
    """The fake class of a C++ class, or None."""
    return global_fake_class_registry.get_impl(full_qualname) if has_fake_class(full_qualname) else None


def tracing_with_real(x):
    """Does the object say that traces may use it as it is?"""
    return isinstance(x, cresset.ScriptObject) and x._has_method("tracing_mode") and x.tracing_mode() == "real"


def maybe_to_fake_obj(fake_mode, x):
    """The FakeScriptObject of an object, in a FakeTensorMode; a fake, and an object that traces may use as it is, stay what they are.

    RuntimeError where its class has no fake class, AttributeError where it has no `__obj_flatten__`.
    """
    if isinstance(x, FakeScriptObject) or tracing_with_real(x):
        return x
    with _disable_current_modes():
        flat = x.__obj_flatten__()
    _check_flat(flat)
    name = x._type().qualified_name()
    fake_flat = tree_map_only(cresset.Tensor, fake_mode.from_tensor, flat)
    return FakeScriptObject(global_fake_class_registry.get_impl(name).__obj_unflatten__(fake_flat), name, x)


def _check_flat(flat):
    if not isinstance(flat, tuple):
        raise RuntimeError(f"Expect flat_obj to be a tuple but got {type(flat)}.")
    for pair in flat:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise RuntimeError(f"Expect flat_obj to be a tuple of (name, value) pairs, but it has {pair!r}.")


def maybe_unwrap_fake_script_object(obj):
    """The object that a FakeScriptObject is the fake of; anything else as it is."""
    return obj.real_obj if isinstance(obj, FakeScriptObject) else obj


def run_operator(op, args, kwargs):
    """What an operator gives for arguments among which are FakeScriptObjects: what its implementation for fakes, in Python, does.

    It is a node where a trace records. RuntimeError where there is no such implementation, or an argument is not of the class that the schema names.
    """
    from cresset._subclasses.functional_tensor import call_on_values, has_functional
    from cresset.fx.experimental.proxy_tensor import get_proxy_mode, recorder_of_calls

    from .fake import fake_impls

    overload = op if isinstance(op, OpOverload) else _overload_for(op, args, kwargs)
    _check_classes(overload, args, kwargs)
    if has_functional(args, kwargs):
        return call_on_values(overload, *args, **kwargs)
    mode = recorder_of_calls() or get_proxy_mode()
    if mode is not None and mode.records():
        return mode.record_whole(overload, *args, **kwargs)
    kernel = fake_impls.get(overload.name()) or overload.py_kernels.get(DispatchKey.Meta) or overload.py_kernels.get(DispatchKey.CompositeImplicitAutograd)
    if kernel is None:
        raise RuntimeError(
            f"Torchbind op {overload} received a FakeScriptObject input when dispatching Meta. but no python implementation is found. Kernels in C++ cannot work "
            f'with fakes. Give it one in Python: @torch.library.register_fake("{overload.name()}").'
        )
    return kernel(*args, **kwargs)


def _overload_for(packet, args, kwargs):
    """The first overload that has objects where the call has fakes."""
    overloads = [getattr(packet, name) for name in packet.overloads()]
    fits = (o for o in overloads if all(_is_class(a.type) for a, x in _bound(o, args, kwargs) if isinstance(x, FakeScriptObject)))
    return next(fits, overloads[0])


def _is_class(kind):
    return kind.startswith("__torch__.")


def _bound(overload, args, kwargs):
    """[(argument of the schema, value)] of what a call gives."""
    arguments = overload._schema.arguments
    return [*zip(arguments, args), *((a, kwargs[a.name]) for a in arguments if a.name in kwargs)]


def _check_classes(overload, args, kwargs):
    for argument, value in _bound(overload, args, kwargs):
        if _is_class(argument.type) and not (isinstance(value, FakeScriptObject) and value.script_class_name == argument.type.rstrip("?")):
            given = value.script_class_name if isinstance(value, FakeScriptObject) else type(value).__name__
            raise RuntimeError(f"{overload}: argument '{argument.name}' is expected to be a FakeScriptObject of {argument.type}; a {given} was given.")


def as_fake(fake_mode, x):
    """maybe_to_fake_obj of an object of a C++ class, any other value as it is."""
    return maybe_to_fake_obj(fake_mode, x) if isinstance(x, cresset.ScriptObject) else x
