"""Calls: what is an operator is recorded, what is Python is evaluated, and what is neither ends the capture."""

import builtins
import enum
import functools
import math
import operator
import types

import cresset
from cresset import _C
from cresset._same_names import own_module
from cresset.nn import Module, ModuleDict, ModuleList, ParameterList, Sequential

from . import marks
from .attributes import of_type
from .errors import Unsupported
from .recorder import is_constant
from .values import Bound, Closure, Known, Results, Sizes, SizeVar, Super, TensorVar

__all__ = ["Calls"]

_OPERATORS = (_C.builtin_function, _C.builtin_method, _C.overridable)
# Python functions of these modules that go through __torch_function__ are operators; others are evaluated.
_OPERATOR_MODULES = ("cresset.nn.functional", "cresset.functional", "cresset.linalg", "cresset.fft", "cresset.special", "cresset._")
_FACTORIES = frozenset({*_C._factory_names, "tensor", "as_tensor", "range"})
# Questions whose answers types, shapes and dtypes decide.
_QUESTIONS = frozenset({
    "is_floating_point", "is_complex", "is_signed", "is_tensor", "dim", "ndimension", "result_type", "promote_types", "can_cast", "is_conj",
    "is_neg", "type", "get_device", "element_size",
})  # fmt: skip
_STATES = frozenset({"is_grad_enabled", "is_inference_mode_enabled", "get_default_dtype", "is_autocast_enabled"})
_PURE = frozenset({
    builtins.abs, builtins.divmod, builtins.pow, builtins.round, builtins.ord, builtins.chr, builtins.format, builtins.repr, builtins.bin, builtins.hex,
    int, float, bool, str, complex, frozenset, bytes, cresset.Size, cresset.device, cresset.finfo, cresset.iinfo, *(f for f in vars(math).values() if callable(f)),
    *(getattr(operator, name) for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift", "neg", "pos", "invert", "getitem", "lt", "le", "gt", "ge", "eq", "ne",
        "not_", "index")),
})  # fmt: skip
_PRINTS = frozenset({builtins.print, builtins.input, builtins.open})


class Calls:
    """Part of the evaluator."""

    def _e_Call(self, node, scope):
        if getattr(node.func, "id", None) == "super" and not node.args:
            return self._super(scope)
        f = self.evaluate(node.func, scope)
        args = list(self.elements(node.args, scope))
        kwargs = {}
        for k in node.keywords:
            v = self.evaluate(k.value, scope)
            kwargs.update(self.dictionary(v) if k.arg is None else {k.arg: v})
        self.step(node, scope)
        return self.invoke(f, args, kwargs)

    def _super(self, scope):
        function = scope.function
        while function is None and scope.parent is not None:
            scope = scope.parent
            function = scope.function
        if function is None or "__class__" not in function.__code__.co_freevars or function.__code__.co_argcount == 0:
            raise Unsupported("super() outside of a method")
        cls = function.__closure__[function.__code__.co_freevars.index("__class__")].cell_contents
        owner = scope.names.get(function.__code__.co_varnames[0])
        if not isinstance(owner, Known) or not isinstance(owner.obj, cls):
            raise Unsupported("super() of what is no instance")
        return Super(cls, owner)

    def invoke(self, f, args, kwargs):
        """f(*args, **kwargs)"""
        if isinstance(f, Closure):
            return self.inline_closure(f, args, kwargs)
        if isinstance(f, Bound):
            return self._method(f, args, kwargs)
        if not isinstance(f, Known):
            raise Unsupported(f"calls a {type(f).__name__.lower()}")
        return self._object(f, args, kwargs)

    # ---- methods

    def _method(self, f, args, kwargs):
        owner = f.owner
        if isinstance(f.function, Known):
            return self.invoke(f.function, [owner, *args], kwargs)
        if isinstance(owner, TensorVar):
            return self._of_tensor_method(owner, f.function, args, kwargs)
        if isinstance(owner, (list, dict)):
            return self._of_container(owner, f.function, args, kwargs)
        if isinstance(owner, tuple):
            return self._of_tuple(owner, f.function, args)
        if isinstance(owner.obj, (list, tuple, dict, set, frozenset)):
            return self._of_known_container(owner, f.function, args)
        if is_constant(owner):
            values = [self.constant(a, "an argument") for a in args]
            result = getattr(owner.obj, f.function)(*values, **{k: self.constant(v, "an argument") for k, v in kwargs.items()})
            return self._known(result)
        raise Unsupported(f"calls .{f.function} of a {type(owner.obj).__name__}")

    def _known(self, result):
        if type(result) in (list, tuple):
            return type(result)(self._known(i) for i in result)
        return Known(result)

    def _of_tensor_method(self, owner, name, args, kwargs):
        if name == "size":
            dim = args[0] if args else kwargs.get("dim", Known(None))
            return self.rec.shape(owner) if is_constant(dim) and dim.obj is None else self.rec.size(owner, self.constant(dim, "a dimension"))
        if name in ("numel", "nelement"):
            return self._count(self.rec.shape(owner))
        if name in _QUESTIONS and not (name == "type" and (args or kwargs)):
            return Known(getattr(owner.value, name)(*map(self.rec.value, args)))
        return self.record("call_method", name, [owner, *args], kwargs, trace=self.trace())

    def _count(self, sizes):
        total = Known(1)
        for n in sizes:
            total = self.binary(operator.mul, total, n) if not (is_constant(total) and total.obj == 1) else n
        return total

    def _of_container(self, owner, name, args, kwargs):
        if isinstance(owner, list):
            if name in ("append", "insert", "pop", "extend", "reverse", "clear", "copy") and not kwargs:
                values = [list(self.iterate(args[0]))] if name == "extend" else args
                if name in ("insert", "pop") and values:
                    values = [self.constant(values[0], "an index"), *values[1:]]
                result = getattr(owner, name)(*values)
                return Known(None) if result is None else result
            if name in ("index", "count"):
                return self._of_tuple(owner, name, args)
        elif name in ("items", "keys", "values"):
            return [((Known(k), v) if name == "items" else v if name == "values" else Known(k)) for k, v in owner.items()]
        elif name in ("get", "pop", "setdefault"):
            result = getattr(owner, name)(self.key(args[0]), *args[1:])
            return Known(None) if result is None else result
        elif name == "update":
            owner.update(self.dictionary(args[0]) if args else {})
            owner.update(kwargs)
            return Known(None)
        elif name == "copy":
            return dict(owner)
        raise Unsupported(f"calls .{name} of a {type(owner).__name__}")

    def _of_tuple(self, owner, name, args):
        if name == "numel":
            return self._count(owner)
        matches = [i for i, one in enumerate(owner) if self._equal(args[0], one)]
        if name == "count":
            return Known(len(matches))
        if len(args) == 1 and matches:
            return Known(matches[0])
        raise Unsupported(f"calls .{name} of a {type(owner).__name__}")

    def _of_known_container(self, owner, name, args):
        if isinstance(owner.obj, dict):
            if name in ("items", "keys", "values"):
                return self._of_container(self.dictionary(owner), name, args, {})
            if name == "get":
                found = self.compare_contains(owner, args[0])
                return self.item(owner, args[0]) if found else (args[1] if len(args) > 1 else Known(None))
        elif isinstance(owner.obj, (list, tuple)) and name in ("index", "count"):
            return self._of_tuple(list(self.iterate(owner)), name, args)
        raise Unsupported(f"calls .{name} of a {type(owner.obj).__name__} that others see")

    def compare_contains(self, container, v):
        """v in container"""
        return self._contains(container, v)

    # ---- objects

    def _object(self, f, args, kwargs):
        obj = f.obj
        mark = marks.mark_of(obj)
        if mark == "disabled":
            raise Unsupported(f"calls {_name(obj)}, which is disabled for compilers", breaks=True)
        if mark == "compiled":
            return self.invoke(Known(marks.original_of(obj), self.rec.guards.constant(marks.original_of(obj))), args, kwargs)
        if mark == "constant":
            values = [self.constant(a, "an argument") for a in args]
            return self._known(obj(*values, **{k: self.constant(v, "an argument") for k, v in kwargs.items()}))
        if mark == "in graph":
            return self.record("call_function", obj, args, kwargs, trace=self.trace())
        if mark is not None:
            return mark(self, args, kwargs)
        handler = _BUILTINS.get(obj) if _hashable(obj) else None
        if handler is not None:
            return handler(self, *args, **kwargs)
        if isinstance(obj, Module):
            return self.call_module(f, args, kwargs)
        return self._callable(f, args, kwargs)

    def _callable(self, f, args, kwargs):
        obj = f.obj
        if _hashable(obj) and obj in _PRINTS:
            raise Unsupported(f"calls {obj.__name__}()", breaks=True)
        if _is_operator(obj):
            return self._operator(obj, args, kwargs)
        if _hashable(obj) and obj in _PURE:
            return self._pure(obj, args, kwargs)
        if isinstance(obj, types.FunctionType):
            names = obj.__dict__.get("_script_attributes")  # of helpers of layers, which only read these
            if names and len(args) == 1 and own_module(obj.__module__).startswith("cresset."):
                found = tuple(self.attribute(args[0], name) for name in names)
                return found if len(found) > 1 else found[0]
            return self.inline(obj, args, kwargs)
        if isinstance(obj, types.MethodType):
            owner = self.wrap(obj.__self__, self.rec.guards.constant(obj.__self__), type(obj.__self__).__name__)
            return self.invoke(Known(obj.__func__, self.rec.guards.constant(obj.__func__)), [owner, *args], kwargs)
        if isinstance(obj, functools.partial) and type(obj) is functools.partial:
            c = self.rec.guards.constant
            held = [self.wrap(a, c(a) if not isinstance(a, cresset.Tensor) else self.rec.guards.read(f"{c(obj)}.args[{i}]"), "an argument") for i, a in enumerate(obj.args)]
            named = {k: self.wrap(a, self.rec.guards.read(f"{c(obj)}.keywords[{k!r}]"), k) for k, a in obj.keywords.items()}
            return self.invoke(self.wrap(obj.func, c(obj.func), _name(obj.func)), [*held, *args], {**named, **kwargs})
        if isinstance(obj, type) and issubclass(obj, tuple) and hasattr(obj, "_fields"):
            raise Unsupported(f"makes a {obj.__name__}")
        if not isinstance(obj, type) and isinstance(of_type(type(obj), "__call__"), types.FunctionType) and f.path is not None and not own_module(type(obj).__module__).startswith("cresset"):
            return self.invoke(self.attribute(f, "__call__"), args, kwargs)
        raise Unsupported(f"calls {_name(obj)}, of which it is not known what it does")

    def _operator(self, obj, args, kwargs):
        name = getattr(obj, "__name__", "")
        if name in _QUESTIONS and len(args) >= 1 and not kwargs:
            if name == "is_tensor":
                return Known(isinstance(args[0], TensorVar))
            return Known(obj(*map(self.rec.value, args)))
        if name in ("numel",) and len(args) == 1 and isinstance(args[0], TensorVar):
            return self._count(self.rec.shape(args[0]))
        if type(obj) is _C.builtin_method and args and isinstance(args[0], TensorVar):
            return self.invoke(self.attribute(args[0], name), args[1:], kwargs)
        return self.record("call_function", obj, args, kwargs, trace=self.trace())

    def _pure(self, obj, args, kwargs):
        if any(isinstance(a, (TensorVar, SizeVar)) for a in args) and getattr(operator, getattr(obj, "__name__", ""), None) is obj:
            if len(args) == 2 and not kwargs and obj not in (operator.getitem, operator.contains):
                return self.binary(obj, *args)
            if obj is operator.getitem:
                return self.item(*args)
            return self.operate(obj, *args)
        if obj in (builtins.abs, builtins.round, builtins.pow) and args and isinstance(args[0], TensorVar):
            return self.record("call_function", obj, args, kwargs, trace=self.trace())
        values = [self.constant(a, f"{_name(obj)}()'s argument") for a in args]
        if any(callable(v) for v in values):
            raise Unsupported(f"calls {_name(obj)}() with a function")
        return self._known(obj(*values, **{k: self.constant(v, f"{_name(obj)}()'s argument") for k, v in kwargs.items()}))

    # ---- modules

    def call_module(self, f, args, kwargs):
        """A module's call: its forward, where nothing hangs on to it."""
        module, guards = f.obj, self.rec.guards
        kind = type(module)
        if f.path is None:
            f = self.wrap(module, guards.constant(module), kind.__name__)
        if isinstance(module, cresset.jit.ScriptModule):
            raise Unsupported(f"calls the script {kind.__name__}", breaks=True)
        if kind.__call__ is not Module.__call__:
            raise Unsupported(f"{kind.__name__} is called in its own way")
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            if module.__dict__.get(name):
                raise Unsupported(f"{self.name_of(f)} has hooks")
            guards.check(f"not {f.path}.__dict__[{name!r}]", f"{self.name_of(f)} has hooks now")
        return self.invoke(self.attribute(f, "forward"), args, kwargs)

    def part_of_container(self, v, k):
        """modules[k]"""
        items = self._container_parts(v)
        if isinstance(v.obj, ModuleDict) or isinstance(k, str):
            return items[k]
        parts = list(items.values())
        if isinstance(k, slice):
            raise Unsupported(f"a slice of a {type(v.obj).__name__}")
        return parts[k]

    def _container_parts(self, v):
        obj, guards = v.obj, self.rec.guards
        if type(obj) is ParameterList or not isinstance(obj, (ModuleList, ModuleDict, Sequential)):
            raise Unsupported(f"the parts of a {type(obj).__name__}")
        own = {ModuleList: ModuleList, ModuleDict: ModuleDict, Sequential: Sequential}
        base = next(b for b in own if isinstance(obj, b))
        for name in ("__iter__", "__len__", "__getitem__"):
            if getattr(type(obj), name, None) is not getattr(base, name, None):
                raise Unsupported(f"a {type(obj).__name__} has parts in its own way")
        where = guards.read(f"{v.path}.__dict__['_modules']")
        names = tuple(obj.__dict__["_modules"])
        guards.check(f"tuple({where}) == {names!r}", f"{self.name_of(v)} has other parts")
        return {k: self.wrap(m, guards.read(f"{where}[{k!r}]"), f"{self.name_of(v)}.{k}") for k, m in obj.__dict__["_modules"].items()}

    # ---- iteration

    def iterate(self, v):
        """The values that a loop over v sees; the list itself where the code made it, since it may grow meanwhile."""
        if isinstance(v, (list, tuple)):
            return v
        if isinstance(v, dict):
            return [Known(k) for k in v]
        if isinstance(v, TensorVar):
            if v.value.ndim == 0:
                raise Unsupported("iterates over a tensor without dimensions")
            self.rec.number(self.rec.size(v, 0))
            return self.record("call_method", "unbind", (v,), trace=self.trace())
        if isinstance(v, Known):
            return self._iterate_object(v)
        raise Unsupported(f"iterates over a {type(v).__name__.lower()}")

    def _iterate_object(self, v):
        obj, guards = v.obj, self.rec.guards
        if is_constant(v) or (v.path is None and type(obj) in (list, tuple, set, frozenset)):
            return [Known(i) for i in obj]
        if v.path is not None and type(obj) in (list, tuple):
            self.length(v)
            return [self.wrap(one, guards.read(f"{v.path}[{i}]"), f"{self.name_of(v)}[{i}]") for i, one in enumerate(obj)]
        if v.path is not None and type(obj) is dict:
            return [Known(k) for k in self.dictionary(v)]
        if v.path is not None and isinstance(obj, Module):
            parts = self._container_parts(v)
            return [Known(k) for k in parts] if isinstance(obj, ModuleDict) else list(parts.values())
        if isinstance(obj, enum.EnumMeta):
            return [Known(m, guards.constant(m)) for m in obj]
        raise Unsupported(f"iterates over a {type(obj).__name__}")

    def dictionary(self, v):
        """A dict as one of values."""
        if isinstance(v, dict):
            return v
        if isinstance(v, Known) and type(v.obj) is dict and v.path is not None:
            keys = tuple(v.obj)
            if not all(type(k) in (str, int, bool) for k in keys):
                raise Unsupported("a dict whose keys are neither text nor numbers")
            guards = self.rec.guards
            guards.check(f"tuple({v.path}) == {keys!r}", f"{self.name_of(v)} has other keys")
            return {k: self.wrap(one, guards.read(f"{v.path}[{k!r}]"), f"{self.name_of(v)}[{k!r}]") for k, one in v.obj.items()}
        raise Unsupported("what is no dict is taken as one")

    # ---- built-in functions

    def _b_len(self, v):
        if isinstance(v, TensorVar):
            return self.rec.size(v, 0)
        if isinstance(v, (list, tuple, dict)):
            return Known(len(v))
        if is_constant(v) or v.path is None:
            return Known(len(v.obj))
        if isinstance(v.obj, Module):
            return Known(len(self._container_parts(v)))
        if type(v.obj) in (list, tuple, dict, set, frozenset):
            return Known(self.length(v))
        raise Unsupported(f"len() of a {type(v.obj).__name__}")

    def _b_isinstance(self, v, kinds):
        kinds = self.constant(kinds, "isinstance()'s types") if not isinstance(kinds, tuple) else tuple(self.constant(k, "isinstance()'s types") for k in kinds)
        if isinstance(v, Known):
            if v.path is not None and not is_constant(v):
                self.rec.guards.check(f"type({v.path}) is {self.rec.guards.constant(type(v.obj))}", f"{self.name_of(v)} is no {type(v.obj).__name__}")
            return Known(isinstance(v.obj, kinds))
        if isinstance(v, (Closure, Bound, Super)):
            raise Unsupported("isinstance() of a function")
        if isinstance(v, (TensorVar, SizeVar)):
            sample = v.value
        elif isinstance(v, Results):
            sample = self.rec.value(v)
        else:
            sample = {} if isinstance(v, dict) else cresset.Size([]) if isinstance(v, Sizes) else type(v)()
        return Known(isinstance(sample, kinds))

    def _b_type(self, *v):
        if len(v) == 1 and isinstance(v[0], TensorVar):
            return Known(type(v[0].value), self.rec.guards.constant(type(v[0].value)))
        if len(v) == 1 and isinstance(v[0], Known) and v[0].path is not None:
            self._b_isinstance(v[0], Known(object))
            return Known(type(v[0].obj), self.rec.guards.constant(type(v[0].obj)))
        if len(v) == 1 and is_constant(v[0]):
            return Known(type(v[0].obj), self.rec.guards.constant(type(v[0].obj)))
        raise Unsupported("type() of what the code made")

    def _b_getattr(self, v, name, *default):
        name = self.constant(name, "an attribute's name")
        if default and not self.has_attribute(v, name):
            return default[0]
        return self.attribute(v, name)

    def _b_hasattr(self, v, name):
        return Known(self.has_attribute(v, self.constant(name, "an attribute's name")))

    def _b_callable(self, v):
        return Known(not isinstance(v, (TensorVar, SizeVar, list, tuple, dict)) and (not isinstance(v, Known) or callable(v.obj)))

    def _b_range(self, *args):
        return Known(range(*(self.constant(a, "range()'s argument") for a in args)))

    def _b_zip(self, *args, strict=None):
        if strict is not None:
            raise Unsupported("zip() with strict")
        return [tuple(row) for row in zip(*(list(self.iterate(a)) for a in args))]

    def _b_enumerate(self, v, start=None):
        first = 0 if start is None else self.constant(start, "enumerate()'s start")
        return [(Known(i), one) for i, one in enumerate(list(self.iterate(v)), first)]

    def _b_reversed(self, v):
        return list(self.iterate(v))[::-1]

    def _b_map(self, f, *args):
        return [self.invoke(f, list(row), {}) for row in zip(*(list(self.iterate(a)) for a in args))]

    def _b_filter(self, f, v):
        return [one for one in list(self.iterate(v)) if self.truth(one if is_constant(f) and f.obj is None else self.invoke(f, [one], {}))]

    def _b_list(self, v=()):
        return list(self.iterate(v))

    def _b_tuple(self, v=()):
        return tuple(self.iterate(v))

    def _b_dict(self, *args, **kwargs):
        out = {}
        for a in args:
            if isinstance(a, dict) or isinstance(a, Known):
                out.update(self.dictionary(a))
            else:
                out.update({self.key(k): v for k, v in (tuple(self.iterate(pair)) for pair in self.iterate(a))})
        return {**out, **kwargs}

    def _b_set(self, v=()):
        return Known({self.constant(i, "a set") for i in self.iterate(v)})

    def _b_any(self, v):
        return Known(any(self.truth(i) for i in self.iterate(v)))

    def _b_all(self, v):
        return Known(all(self.truth(i) for i in self.iterate(v)))

    def _b_sum(self, v, start=None):
        total = Known(0) if start is None else start
        for one in self.iterate(v):
            total = self.binary(operator.add, total, one)
        return total

    def _b_sorted(self, v, **kwargs):
        if "key" in kwargs:
            raise Unsupported("sorted() with a key")
        return [Known(i) for i in sorted((self.constant(i, "sorted()'s argument") for i in self.iterate(v)), **{k: self.constant(x, "an argument") for k, x in kwargs.items()})]

    def _b_extreme(self, function, *args, **kwargs):
        if kwargs:
            raise Unsupported(f"{function.__name__}() with {', '.join(kwargs)}")
        values = list(self.iterate(args[0])) if len(args) == 1 else args
        return Known(function(self.constant(i, f"{function.__name__}()'s argument") for i in values))

    def _b_slice(self, *args):
        return slice(*args)

    def _b_issubclass(self, v, kinds):
        return Known(issubclass(self.constant(v, "a type"), self.constant(kinds, "types")))

    def _b_int(self, *args):
        return args[0] if len(args) == 1 and isinstance(args[0], SizeVar) else self._pure(int, args, {})


def _hashable(obj):
    try:
        hash(obj)
    except TypeError:
        return False
    return True


def _name(obj):
    module = getattr(obj, "__module__", None)
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or type(obj).__name__
    return f"{module}.{name}" if module and module not in ("builtins", "__main__") else name


@functools.lru_cache(maxsize=4096)
def _is_operator(obj):
    """Does a call of it compute tensors of tensors, and nothing else?"""
    if isinstance(obj, _OPERATORS):
        name = getattr(obj, "__name__", "")
        return name in _FACTORIES or not name.startswith(("set_", "_set_", "manual_")) and name not in ("seed", "from_file", "get_rng_state")
    if type(obj).__module__ == "cresset._ops" and type(obj).__name__ in ("OpOverload", "OpOverloadPacket"):
        return True
    if type(obj).__name__ == "CustomOpDef":
        return True
    module, name = getattr(obj, "__module__", None) or "", getattr(obj, "__name__", "")
    if getattr(cresset, name, None) is obj and name in _FACTORIES:
        return True
    if not isinstance(obj, types.FunctionType) or not module.startswith(_OPERATOR_MODULES):
        return False
    return hasattr(obj, "_asks") or module == "cresset.nn.functional" and not name.startswith("_")


_BUILTINS = {
    getattr(builtins, name): getattr(Calls, f"_b_{name}")
    for name in ("len", "isinstance", "type", "getattr", "hasattr", "callable", "range", "zip", "enumerate", "reversed", "map", "filter", "list", "tuple", "dict", "set", "any",
                 "all", "sum", "sorted", "slice", "issubclass", "int")
}  # fmt: skip
_BUILTINS[max] = lambda self, *args, **kwargs: self._b_extreme(max, *args, **kwargs)
_BUILTINS[min] = lambda self, *args, **kwargs: self._b_extreme(min, *args, **kwargs)


def _state(name):
    return lambda self, *args, **kwargs: Known(getattr(cresset, name)(*map(self.rec.value, args)))


for _one in _STATES:
    if hasattr(cresset, _one):
        _BUILTINS[getattr(cresset, _one)] = _state(_one)
