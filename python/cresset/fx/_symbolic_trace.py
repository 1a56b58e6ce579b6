"""Symbolic tracing: run a program with proxies, record what it does."""

import collections
import contextlib
import copy
import functools
import inspect
import math
import types
import warnings
from itertools import chain
from types import CodeType, FunctionType, ModuleType

import cresset

from ..utils import _pytree as pytree
from ._patching import (  # noqa: F401
    _autowrap_check, _create_wrapped_func, _find_proxy, _new_patcher, _patch_wrapped_functions, _Patcher,
    _wrapped_fns_to_patch, _wrapped_methods_to_patch, wrap,
)  # fmt: skip
from .graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from .node import map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

__all__ = ["PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap", "is_fx_tracing", "is_fx_symbolic_tracing"]

_proxyable_classes = {}
_is_fx_tracing_flag = False
_orig_module_call = cresset.nn.Module.__call__
_orig_module_getattr = cresset.nn.Module.__getattr__


def is_fx_tracing():
    """Does a Tracer run?"""
    return _is_fx_tracing_flag


def is_fx_symbolic_tracing():
    """Does a Tracer run?"""
    return _is_fx_tracing_flag


def is_fx_tracing_warning():
    """Warn that is_fx_tracing is asked for what is_fx_symbolic_tracing says."""
    warnings.warn("is_fx_tracing will return true for both fx.symbolic_trace and torch.export. Please use is_fx_tracing_symbolic_tracing()", stacklevel=2)


@wrap  # the code of a module that is loaded runs with proxies
def _assert_is_none(value: object, msg: str) -> None:
    assert value is None, msg


class ProxyableClassMeta(type):
    """Metaclass of classes whose construction is recorded when an argument is a proxy."""

    def __init__(cls, name, bases, attrs):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args, **kwargs):
        instance = cls.__new__(cls)
        if not _is_fx_tracing_flag:
            cls.__init__(instance, *args, **kwargs)
            return instance
        found = []
        map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else a)
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)
        return instance


class PHBase:
    """In concrete_args: this argument stays an input."""

    def __repr__(self):
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A PH whose attributes, ph_key among them, the placeholder's node gets."""

    def __init__(self, ph_key=None):
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr, to):
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _patch_function(fn, nargs):
    """The function with every parameter positional: what *args and **kwargs would collect are single values."""
    code = fn.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    made = code.replace(co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
    return FunctionType(made, fn.__globals__, fn.__name__, None, fn.__closure__)


class Tracer(TracerBase):
    """Records modules and functions by running them with proxies.

    Override is_leaf_module to choose which modules are single nodes, create_arg, proxy, call_module, getattr, iter, to_bool and keys for the
    rest. autowrap_modules, autowrap_functions: functions that are recorded as calls although they do not take proxies, with all names
    of theirs. param_shapes_constant: shapes of parameters are numbers, so that conditions may depend on them.
    """

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        super().__init__()
        self._autowrap_function_ids = {
            id(value) for name, value in chain.from_iterable(vars(m).items() for m in autowrap_modules) if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls = {}
        self.node_name_to_scope = {}

    _qualname_counter = collections.defaultdict(int)

    def get_fresh_qualname(self, prefix):
        """The prefix with a number, so that the root has no such attribute."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_arg(self, a):
        """Parameters, buffers and submodules of the root become get_attr nodes, other tensors attributes `_tensor_constant0` of it."""
        if isinstance(a, cresset.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, cresset.Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, cresset.nn.Module):
            for name, module in self.root.named_modules():
                if a is module:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", a.__class__, tuple(self.create_arg(x) for x in a), {})
        if isinstance(a, (cresset.Tensor, cresset.ScriptObject)):
            name = self.tensor_attrs.get(a)
            if not name:
                name = self.get_fresh_qualname("_tensor_constant" if isinstance(a, cresset.Tensor) else "_torchbind_obj")
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{a.__class__.__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m, module_qualified_name):
        """Is this module one node? By default those of nn are, except for Sequential."""
        return m.__module__.startswith(("cresset.nn", "torch.nn", "cresset.ao.nn")) and not isinstance(m, cresset.nn.Sequential)

    def path_of_module(self, mod):
        """The path of a submodule of the root; NameError when it is none."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m, forward, args, kwargs):
        """What a call of a submodule gives: a node for a leaf, otherwise what its forward gives."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls > 0 else scope.module_path
            self.module_stack[key] = (scope.module_path, scope.module_type)
            self.num_calls[path] = calls + 1
            try:
                if isinstance(m, cresset.jit.ScriptModule) and not self.is_leaf_module(m, path):
                    return self.create_proxy("call_method", "forward", (m, *args), kwargs)  # its code takes no proxies
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem(last=True)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What an attribute of a module gives: a proxy for parameters of the root."""
        if isinstance(attr_val, cresset.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if attr_val is parameter:
                    if name not in parameter_proxy_cache:
                        factory = None
                        if self.param_shapes_constant:
                            def factory(node):
                                return ParameterProxy(self, node, name, attr_val)

                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=factory)
                    return parameter_proxy_cache[name]
        elif self.proxy_buffer_attributes and isinstance(attr_val, cresset.Tensor):
            for name, buffer in self.root.named_buffers():
                if attr_val is buffer:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                    return parameter_proxy_cache[name]
        return attr_val

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """(function, arguments) with placeholders for the function's parameters."""
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args, skipped = [], 0
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            skipped, args = 1, [self.root]
        signature = inspect.signature(analysed)
        if isinstance(concrete_args, tuple):
            if len(names[skipped:total]) != len(concrete_args):
                if not code.co_flags & inspect.CO_VARARGS:
                    raise RuntimeError(f"Tracing expected {len(names[skipped:total])} arguments but got {len(concrete_args)} concrete arguments")
                return self._with_varargs(root_fn, args, names[skipped:total], concrete_args, signature, analysed)
            concrete_args = dict(zip(names[skipped:total], concrete_args))
        args.extend(self._proxy_placeholder(n, concrete_args, signature, analysed) for n in names[skipped:total])
        if code.co_kwonlyargcount > 0 or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._proxy_placeholder(f"*{names[total]}", concrete_args, signature, analysed))
                total += 1
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._proxy_placeholder(f"**{names[total]}", concrete_args, signature, analysed))
            root_fn = _patch_function(analysed, len(args))
        flat, in_spec = pytree.tree_flatten(tuple(args))
        if any(not child.is_leaf() for child in in_spec.children_specs):
            self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names[skipped : code.co_argcount + code.co_kwonlyargcount], in_spec, None))
            if is_module:
                flat, in_spec = pytree.tree_flatten(tuple(args[1:]))
                self.graph._codegen.pytree_info = self.graph._codegen.pytree_info._replace(in_spec=in_spec)
                flat = [args[0], *flat]

            def flattened(*values):
                front = values[:skipped]
                out = root_fn(*front, *pytree.tree_unflatten(list(values[skipped:]), in_spec))
                leaves, out_spec = pytree.tree_flatten(out)
                self.graph._codegen.pytree_info = self.graph._codegen.pytree_info._replace(out_spec=out_spec)
                return leaves

            return flattened, flat
        return root_fn, args

    def _with_varargs(self, root_fn, args, names, concrete, signature, analysed):
        """*args of a known number: an input for each that is PH."""
        names = [*names, *(f"_{i}" for i in range(len(concrete) - len(names)))]
        table = dict(zip(names, concrete))
        args.extend(self._proxy_placeholder(n, table, signature, analysed) for n in names)
        return root_fn, args

    def _proxy_placeholder(self, name, concrete_args, sig, fn_for_analysis):
        parameter = sig.parameters.get(name)
        default = () if name[0] == "*" or parameter is None or parameter.default is inspect.Parameter.empty else (parameter.default,)
        if concrete_args is not None and name in concrete_args:
            count = 0

            def replace(value):
                nonlocal count
                count += 1
                made = self.create_proxy("placeholder", f"{name}_{count}", default, {})
                if isinstance(value, PHBase):
                    if value is not PH:
                        _transfer_attrs(fr=value, to=made.node)
                    return made
                self._assert_specialised(name, value, made)
                return value

            return pytree.tree_map(replace, concrete_args[name])
        return self.create_proxy("placeholder", name, default, {}, type_expr=fn_for_analysis.__annotations__.get(name))

    def _assert_specialised(self, name, value, proxy):
        if isinstance(value, (str, int, float, bool)) and not isinstance(value, cresset.Tensor):
            cresset._assert(proxy == value, f"{name} has been specialized to have value {value} but got another value")
        elif value is None:
            args = (proxy, f"{name} has been specialized to have value None but got another value")
            self.create_proxy("call_function", _assert_is_none, args, {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the user to make sure that "
                "your inputs match the inputs you specialized the function with.",
                stacklevel=4,
            )

    def trace(self, root, concrete_args=None):
        """The graph of a module or function.

        concrete_args: {parameter: value} (or a tuple) of what is no input but a constant; PH inside of trees marks what is an input.
        """
        global _is_fx_tracing_flag
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            if isinstance(root, cresset.nn.Module):
                from ._lazy_graph_module import _LazyGraphModule

                _LazyGraphModule.force_recompile(root)
                self.root = root
                assert hasattr(type(root), self.traced_func_name), f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                fn = getattr(type(root), self.traced_func_name)
                self.root_module_name = root._get_name()
                self.submodule_paths = {module: name for name, module in root.named_modules()}
            else:
                self.root, fn = cresset.nn.Module(), root
            if not hasattr(inspect.unwrap(fn), "__code__"):
                assert callable(fn), f"Expected FunctionType, got {type(fn)}"
                fn = fn.__call__ if not isinstance(fn, functools.partial) else _named_partial(fn)
            self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
            assert hasattr(inspect.unwrap(fn), "__code__"), f"symbolic tracing needs a module, or a function with Python code; {root} has none."
            code = inspect.unwrap(fn).__code__
            self.graph._co_fields = {"co_name": code.co_name, "co_filename": code.co_filename, "co_firstlineno": code.co_firstlineno}
            self._collect_tensor_attrs()
            fn_globals = getattr(inspect.unwrap(fn), "__globals__", {})
            if isinstance(fn, types.MethodType):
                fn = _as_function(fn)
            fn, args = self.create_args_for_root(fn, isinstance(root, cresset.nn.Module), concrete_args)
            returned = getattr(fn, "__annotations__", {}).get("return")
            with self._patched(fn_globals):
                result = self.create_arg(fn(*args))
                self.create_node("output", "output", (result,), {}, type_expr=returned)
            self.submodule_paths = None
            return self.graph
        finally:
            _is_fx_tracing_flag = before

    def _collect_tensor_attrs(self):
        self.tensor_attrs = {}

        def collect(module, prefix):
            for name, value in vars(module).items():
                if isinstance(value, (cresset.Tensor, cresset.ScriptObject)):
                    self.tensor_attrs[value] = ".".join([*prefix, name])
            for name, child in module.named_children():
                collect(child, [*prefix, name])

        collect(self.root, [])

    @contextlib.contextmanager
    def _patched(self, fn_globals):
        """For a block, modules' calls and attributes, and wrapped functions, come here."""
        cache = {}
        module_class = cresset.nn.Module

        @functools.wraps(_orig_module_getattr)
        def module_getattr(mod, attr):
            return self.getattr(attr, _orig_module_getattr(mod, attr), cache)

        @functools.wraps(_orig_module_call)
        def module_call(mod, *args, **kwargs):
            def forward(*args, **kwargs):
                return _orig_module_call(mod, *args, **kwargs)

            _autowrap_check(patcher, getattr(getattr(mod, "forward", mod), "__globals__", {}), self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        with _new_patcher() as patcher:
            patcher.patch_method(module_class, "__getattr__", module_getattr, deduplicate=False)
            patcher.patch_method(module_class, "__call__", module_call, deduplicate=False)
            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, fn_globals, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, vars(module), self._autowrap_function_ids)
            yield patcher

    def __deepcopy__(self, memo):
        made = Tracer.__new__(type(self))
        for name, value in vars(self).items():
            made.__dict__[name] = value if isinstance(value, (ModuleType, CodeType)) or name == "_autowrap_search" else copy.deepcopy(value, memo)
        return made


def _as_function(method):
    """A bound method as a function without self."""
    function = method.__func__
    names = [p for p in inspect.signature(function).parameters.values()][1:]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY) for p in names):
        return function.__get__(method.__self__)
    text = f"lambda {', '.join(p.name for p in names)}: _method({', '.join(p.name for p in names)})"
    made = eval(text, {"_method": method})
    made.__defaults__, made.__annotations__ = function.__defaults__, function.__annotations__
    made.__name__ = function.__name__
    return made


def _named_partial(partial):
    """A function of the parameters that functools.partial leaves open."""
    open_ones = [p for p in inspect.signature(partial).parameters.values() if p.name not in partial.keywords and p.kind is not p.KEYWORD_ONLY]
    names = ", ".join(p.name for p in open_ones)
    return eval(f"lambda {names}: _partial({names})", {"_partial": partial})


def symbolic_trace(root, concrete_args=None):
    """A GraphModule of what a module or function does, recorded by a Tracer.

    concrete_args: {parameter: value} of what is no input but a constant, so that conditions may depend on it.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, cresset.nn.Module) else getattr(root, "__name__", type(root).__name__)
    from ._lazy_graph_module import _make_graph_module

    return _make_graph_module(tracer.root, graph, name)
