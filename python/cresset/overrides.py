"""Helpers of the __torch_function__ protocol for functions written in Python."""

import contextlib
import enum
import functools
import importlib
import inspect
import keyword
import types
import warnings

import cresset

from . import _C
from ._C import (  # noqa: F401
    _has_torch_function as has_torch_function,
    _has_torch_function_unary as has_torch_function_unary,
    _has_torch_function_variadic as has_torch_function_variadic,
)

__all__ = [
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "wrap_torch_function", "get_default_nowrap_functions", "get_overridable_functions", "get_testing_overrides", "get_ignored_functions",
    "resolve_name", "is_tensor_method_or_property", "TorchFunctionMode", "BaseTorchFunctionMode", "enable_reentrant_dispatch",
]  # fmt: skip


def _overloaded_args(relevant_args):
    """One argument of each type with __torch_function__, Tensor's own included, in the order in which they are asked."""
    overloaded, types = [], set()
    if not _C._is_torch_function_enabled():
        return overloaded
    for arg in relevant_args:
        kind = type(arg)
        if kind in types or getattr(kind, "__torch_function__", _C._disabled_torch_function_impl) is _C._disabled_torch_function_impl:
            continue
        types.add(kind)
        at = next((i for i, old in enumerate(overloaded) if issubclass(kind, type(old))), len(overloaded))
        overloaded.insert(at, arg)
    return overloaded


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Ask the modes and the overriding arguments for the result of public_api(*args, **kwargs)."""
    overloaded = _overloaded_args(relevant_args)
    types = tuple(map(type, overloaded))
    if _C._len_torch_function_stack() and not _C._is_torch_function_all_disabled():
        with _pop_mode() as mode:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for arg in overloaded:
        method = arg.__torch_function__
        if getattr(method, "__self__", None) is arg:
            warnings.warn(
                "Defining your `__torch_function__ as a plain method is deprecated and will be an error in future, please define it as a classmethod.",
                DeprecationWarning,
                stacklevel=2,
            )
        result = method(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = resolve_name(public_api) or f"{public_api.__module__}.{public_api.__name__}"
    asked = ", ".join(type(a).__name__ for a in overloaded)
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: [{asked}]")


def wrap_torch_function(dispatcher):
    """Decorator: the function goes through the protocol; dispatcher(*args, **kwargs) names the relevant arguments."""

    def inner(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def is_tensor_like(obj):
    """Is obj a Tensor, or of a type with __torch_function__?"""
    return type(obj) is cresset.Tensor or hasattr(obj, "__torch_function__")


def get_default_nowrap_functions():
    """Functions whose results Tensor.__torch_function__ leaves as they are."""
    tensor = cresset.Tensor
    return {tensor._base.__get__, tensor.grad.__get__, tensor._grad.__get__}


# --- what can be overridden -------------------------------------------------------------------------------------------------

_NAMESPACES = ("cresset", "cresset.nn.functional", "cresset.linalg", "cresset.fft", "cresset.special")
_OPERATOR_TYPES = (_C.builtin_function, _C.builtin_method)
# Functions that make tensors without taking one, operators and others; only modes see them.
_FACTORIES = (*_C._factory_names, "as_tensor", "asarray", "from_file", "from_numpy", "frombuffer", "range", "tensor")
_NEVER = (
    "as_subclass", "_make_subclass", "_make_wrapper_subclass", "__init__", "__new__", "__getattribute__", "__setattr__", "__delattr__", "__delitem__", "__hash__",
    "__iter__", "__dir__", "__sizeof__", "__getstate__", "__reduce__", "__str__", "__del__", "__torch_function__", "__torch_dispatch__",
    "__init_subclass__", "__subclasshook__", "__index__", "new", "_typed_storage", "_dispatch_keys", "new_tensor", "_is_view", "__class__", "__dict__",
    "__doc__", "__module__", "reinforce", "_python_dispatch", "_cdata", "_backward_hooks", "_post_accumulate_grad_hooks", "names", "__dlpack__",
    "__dlpack_device__", "__array_wrap__",
)  # fmt: skip


def _takes_part(function):
    """Does a function go through the protocol? Operators do; functions written in Python when their definition says so."""
    return type(function) in _OPERATOR_TYPES or isinstance(function, _C.overridable) or hasattr(function, "_asks")


def _functions_of(module):
    skipped = set(_FACTORIES)
    for name in sorted(vars(module)):
        value = vars(module)[name]
        if name.startswith("_") or name in skipped or not callable(value) or isinstance(value, type):
            continue
        if _takes_part(value) and _signature_of(value) is not None:
            yield name, value


def _members_of_tensor():
    """(name, function) of the methods of Tensor, and of its properties' `__get__`."""
    tensor = cresset.Tensor
    for name in sorted(vars(tensor)):
        member = vars(tensor)[name]
        if name in _NEVER or hasattr(member, "_is_absent") or isinstance(member, (classmethod, staticmethod)):
            continue
        if isinstance(member, (types.GetSetDescriptorType, property)):
            yield f"{name}.__get__", getattr(tensor, name).__get__
        elif callable(member) and not isinstance(member, types.BuiltinFunctionType):
            yield name, getattr(tensor, name)


@functools.cache
def _overridable_by_namespace():
    table, names = {}, {}
    for name in cresset._LAZY_NAMES:
        getattr(cresset, name)  # is among the package's variables from now on
    for path in _NAMESPACES:
        module = importlib.import_module(path)
        for name, function in _functions_of(module):
            table.setdefault(module, []).append(function)
            names[function] = f"torch{path.removeprefix('cresset')}.{name}"  # of two names the last
    tensor = cresset.Tensor
    for name, function in _members_of_tensor():
        holder = tensor if not name.endswith(".__get__") else getattr(tensor, name.removesuffix(".__get__"))
        table.setdefault(holder, []).append(function)
        names[function] = f"torch.Tensor.{name}"
    return table, names


def get_overridable_functions():
    """{namespace: functions} of everything that can be overridden with __torch_function__; derived from the operator table."""
    return {namespace: list(functions) for namespace, functions in _overridable_by_namespace()[0].items()}


@functools.cache
def get_ignored_functions():
    """Public functions that __torch_function__ of arguments cannot override: those that take no tensor, and what makes a subclass itself."""
    ignored = set()
    listed = _overridable_by_namespace()[1]
    for name in _FACTORIES:
        if hasattr(cresset, name):
            ignored.add(getattr(cresset, name))
    for name in _NEVER:
        member = getattr(cresset.Tensor, name, None)
        if callable(member):
            ignored.add(member)
    for path in (*_NAMESPACES, "cresset.nn.init"):
        for name, value in vars(importlib.import_module(path)).items():
            if not name.startswith("_") and isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) and value not in listed:
                ignored.add(value)
    return ignored


# --- dummies with the signatures --------------------------------------------------------------------------------------------


def _signature_of(function):
    """The parameters that a dummy of the function has, as text; None when they are not known."""
    if type(function) in _OPERATOR_TYPES:
        return _operator_parameters(function)
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return {"is_same_size": "self, other", "is_set_to": "self, tensor"}.get(function.__name__, "self, *args, **kwargs")
    parts, marked = [], False
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            parts.append(f"*{p.name}")
            marked = True
        elif p.kind is p.VAR_KEYWORD:
            parts.append(f"**{p.name}")
        else:
            if p.kind is p.KEYWORD_ONLY and not marked:
                parts.append("*")
                marked = True
            default = p.default
            plain = default is None or isinstance(default, (bool, int, float, str, tuple))
            parts.append(p.name if default is p.empty else f"{p.name}={default!r}" if plain else f"{p.name}=None")
    return ", ".join(parts)


def _operator_parameters(function, shown=False):
    """The parameters of every overload, those that all require first, and `out` where there is an out form.

    shown: what the signature tells, which is short: what the first overload takes by position, and `out`.
    """
    schemas = [_C._find_overload(*_split(name))._schema for name in function._overloads]
    with_out = any(a.is_out for s in schemas for a in s.arguments)
    schemas = [s for s in schemas if not any(a.is_out for a in s.arguments)] or schemas
    if shown:
        schemas = schemas[:1]
    method = type(function) is _C.builtin_method
    # Those that some overload takes by position stay in front of those that are given by keyword only.
    arguments = {}
    for by_keyword in (False, True):
        for schema in schemas:
            for a in schema.arguments:
                if a.kwarg_only == by_keyword and not a.is_out:
                    arguments.setdefault(a.name, a)
    required = set.intersection(*({a.name for a in s.arguments if not a.kwarg_only and not a.has_default_value()} for s in schemas))
    parts, optional, starred = [], False, False
    for name, argument in arguments.items():
        if argument.kwarg_only and shown:
            continue
        if argument.kwarg_only and not starred:
            starred = True
            if with_out and not method:
                parts.append("out=None")
            parts.append("*")
        if name == "self" and not method:
            name = "input" if "input" not in arguments else "self"
        if keyword.iskeyword(name):
            name += "_"
        if optional or argument.name not in required:
            optional = True
            default = argument.default_value
            name += f"={default!r}" if isinstance(default, (bool, int, float, str, type(None))) else "=None"
        parts.append(name)
    if with_out and not method and not starred:
        parts.append("out=None")
    return ", ".join(parts)


def _split(qualname):
    base, _, overload = qualname.partition(".")
    return base, overload


def _dummy(function, name):
    if name.startswith("torch.Tensor.") and name.endswith(".__get__"):
        return lambda self: -1
    values = {"inf": float("inf"), "nan": float("nan")}
    dummy = eval(f"lambda {_signature_of(function)}: -1", values)
    if type(function) in _OPERATOR_TYPES:
        dummy.__signature__ = inspect.signature(eval(f"lambda {_operator_parameters(function, shown=True)}: -1", values))
    return dummy


@functools.cache
def _testing_overrides():
    return {function: _dummy(function, name) for function, name in _overridable_by_namespace()[1].items()}


def get_testing_overrides():
    """{function: dummy}; the dummies have the functions' parameters and return -1."""
    return dict(_testing_overrides())


def is_tensor_method_or_property(func):
    """Is func a method of Tensor, or the `__get__` of one of its properties?"""
    name = _overridable_by_namespace()[1].get(func) if _hashable(func) else None
    return name is not None and name.startswith("torch.Tensor.")


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True


def resolve_name(f):
    """The public name of a function: "torch.add", "torch.Tensor.add", "torch.Tensor.shape.__get__"; None when it has none."""
    if isinstance(f, _C.OpOverload) or type(f).__name__ == "OpOverloadPacket":
        return str(f)
    known = _overridable_by_namespace()[1].get(f) if _hashable(f) else None
    return known or _unlisted_name(f)


def _unlisted_name(f):
    """The name of a function of this package that is not in the list: setters of properties, factory functions."""
    name, owner = getattr(f, "__name__", None), getattr(f, "__self__", None)
    if name in ("__set__", "__delete__") and getattr(owner, "__objclass__", None) is cresset.Tensor:
        return f"torch.Tensor.{owner.__name__}.{name}"
    if getattr(f, "__objclass__", None) is cresset.Tensor:
        return f"torch.Tensor.{name}"
    if not name or name.startswith("_"):
        return None
    paths = [path for path in (*_NAMESPACES, "cresset.nn.init") if vars(importlib.import_module(path)).get(name) is f]
    return f"torch{paths[-1].removeprefix('cresset')}.{name}" if paths else None


# --- modes ------------------------------------------------------------------------------------------------------------------


class _pop_mode:
    """Takes the innermost mode off for a block."""

    def __enter__(self):
        self._mode = _C._pop_torch_function_stack()
        return self._mode

    def __exit__(self, *exc_info):
        _C._push_on_torch_function_stack(self._mode)


class TorchFunctionMode:
    """Sees every function of the package while it is active: override __torch_function__(self, func, types, args, kwargs).

    Modes nest, the innermost is asked first. While a mode's method runs, the mode itself is off.
    """

    def __init__(self):
        pass

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if isinstance(cls.__dict__.get("__torch_function__"), classmethod):
            raise RuntimeError("Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain method")

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError("TorchFunctionMode: define __torch_function__(self, func, types, args=(), kwargs=None).")

    def __enter__(self):
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        _C._pop_torch_function_stack()

    @classmethod
    def push(cls, *args, **kwargs):
        """An instance, for `with Mode.push(…)`."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode():
    """The innermost active mode, or None."""
    count = _C._len_torch_function_stack()
    return _C._get_function_stack_at(count - 1) if count else None


def _get_current_function_mode_stack():
    """Active modes, the innermost last."""
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


@contextlib.contextmanager
def _pop_mode_temporarily():
    """The innermost mode off for a block."""
    with _pop_mode() as mode:
        yield mode


@contextlib.contextmanager
def enable_reentrant_dispatch():
    """Inside of __torch_dispatch__: wrappers and modes see the operators of the block again, autograd included."""
    everything = _C._dispatch_keyset_full()
    keys = _C._dispatch_tls_local_exclude_set() & everything
    autograd = _C.DispatchKeySet("AutogradOther", "AutogradCPU", "ADInplaceOrView")
    with _C._ForceDispatchKeyGuard(_C._dispatch_tls_local_include_set(), keys - autograd):
        yield


# Names of PyTorch's extension module (_c_names.py).


class _TorchFunctionState(enum.Enum):
    """Who overrides operations in this thread: types and modes, modes alone, nobody."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def _get_torch_function_state():
    """Who overrides operations in this thread."""
    if _C._is_torch_function_all_disabled():
        return _TorchFunctionState.ALL_DISABLED
    return _TorchFunctionState.ENABLED if _C._is_torch_function_enabled() else _TorchFunctionState.SUBCLASSES_DISABLED


def _set_torch_function_state(state):
    """Says who overrides operations in this thread. TypeError for what is no _TorchFunctionState."""
    if not isinstance(state, _TorchFunctionState):
        raise TypeError(f"_set_torch_function_state(): a _TorchFunctionState was required; got {type(state).__name__}.")
    _C._disable_torch_function(state is not _TorchFunctionState.ENABLED, state is _TorchFunctionState.ALL_DISABLED)


@contextlib.contextmanager
def _enable_torch_function():
    """For a block: types and modes override operations, also inside of one that says they do not."""
    before = _get_torch_function_state()
    _set_torch_function_state(_TorchFunctionState.ENABLED)
    try:
        yield
    finally:
        _set_torch_function_state(before)
