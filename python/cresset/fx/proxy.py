"""Proxy: the value that stands for a node while a program is traced."""

import dis
import enum
import inspect
import operator
import sys
import traceback as _python_traceback
from collections import OrderedDict
from dataclasses import fields, is_dataclass

import cresset

from .. import _C
from . import traceback as fx_traceback
from ._names import is_from_torch
from .graph import magic_methods, reflectable_magic_methods
from .immutable_collections import immutable_dict, immutable_list
from .node import Argument, Node, base_types, map_aggregate  # noqa: F401  others import Argument from here
from .operator_schemas import check_for_mutable_operation

__all__ = ["TracerBase", "GraphAppendingTracer", "TraceError", "Proxy", "MetaProxy", "Attribute", "ParameterProxy", "Scope", "ScopeContextManager"]

_ITERATION = (
    "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument. See the "
    "torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow can be traced, and check out the Proxy docstring for "
    "help troubleshooting Proxy iteration errors"
)


class Scope:
    """Where a tracer is: path and type of the innermost module."""

    def __init__(self, module_path, module_type):
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Another scope for a block."""

    def __init__(self, scope, current_scope):
        self._prev_scope = Scope(scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self):
        return self._scope

    def __exit__(self, *args):
        self._scope.module_path, self._scope.module_type = self._prev_scope.module_path, self._prev_scope.module_type


class TraceError(ValueError):
    """The program does something with a value that a trace cannot follow."""


def assert_fn(x):
    """What a traced assertion calls."""
    assert x


def _instruction_at(frame):
    """(instructions, index) of what a frame executes."""
    found = list(dis.get_instructions(frame.f_code))
    return found, next(i for i, inst in enumerate(found) if inst.offset == frame.f_lasti)


class TracerBase:
    """What proxies ask to make nodes. `graph` is the graph that grows."""

    graph: object
    record_stack_traces = False
    _record_forward_stack_traces_only = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """A node with arguments that are nodes and constants already. Override it to change what is recorded."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            current = fx_traceback.get_current_meta()
            for key, value in current.items():
                if key in ("stack_trace", "nn_module_stack", "custom") or key not in ("val", "tensor_meta", "example_value"):
                    node.meta[key] = value
            if "stack_trace" in current:
                node.stack_trace = current["stack_trace"]
        if self.module_stack and "nn_module_stack" not in node.meta:
            node.meta["nn_module_stack"] = self.module_stack.copy()
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = self._user_stack()
        return node

    def _user_stack(self):
        here = __file__.rpartition("/")[0]
        frames = _python_traceback.extract_stack()
        start = max((i for i, f in enumerate(frames) if f.name == "trace" and f.filename.startswith(here)), default=-1)
        user = [f for f in frames[start + 1 :] if not f.filename.startswith(here) and "/nn/modules/" not in f.filename]
        return "".join(_python_traceback.format_list(user)).strip() or None

    def _find_user_frame(self):
        """The frame of the traced program."""
        here = __file__.rpartition("/")[0]
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_filename.startswith(here):
            frame = frame.f_back
        return frame

    def proxy(self, node):
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """A node, with arguments that may hold proxies, and its proxy."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        assert isinstance(args, tuple) and isinstance(kwargs, dict)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return self.proxy(node) if not proxy_factory_fn else proxy_factory_fn(node)

    def create_arg(self, a):
        """A value as an argument of a node; NotImplementedError for a type that cannot be one."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(x) for x in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return immutable_list([self.create_arg(x) for x in a]) if isinstance(a, immutable_list) else [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            made = {self._key(k): self.create_arg(v) for k, v in a.items()}
            return immutable_dict(made) if isinstance(a, immutable_dict) else made
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if is_dataclass(a) and not isinstance(a, type):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", a.__class__, (), values)
        if isinstance(a, (*base_types, Node, enum.Enum)) or a is None or a is ... or isinstance(a, type):
            return a
        if type(a).__name__ in ("OpOverloadPacket", "HigherOrderOperator", "FakeScriptObject") or isinstance(a, cresset.Generator):
            return a
        if inspect.isroutine(a) and is_from_torch(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key):
        def refuse(node):
            if isinstance(node, Node):
                raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
            return node

        made = self.create_arg(key)
        map_aggregate(made, refuse)
        return made

    def to_bool(self, obj):
        """A proxy as a condition: TraceError, unless an assertion is traced (trace_asserts). Override it to decide otherwise."""
        if self.trace_asserts:
            found, at = _instruction_at(self._find_user_frame())
            if "JUMP" in found[at].opname and at + 1 < len(found) and found[at + 1].opname == "LOAD_ASSERTION_ERROR":
                self.create_proxy("call_function", assert_fn, (obj,), {})
                return True
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """A proxy that is iterated over: TraceError. Override it to give an iterator."""
        raise TraceError(_ITERATION)

    def keys(self, obj):
        """A proxy whose keys are asked for, which `**proxy` does."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends nodes to a graph."""

    def __init__(self, graph):
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


class Proxy:
    """Stands for the value of a node: operators, functions of the package, attributes, methods and indexing add nodes.

    Not possible are uses for control flow and iteration, except for unpacking into a known number of names: TraceError.
    """

    def __init__(self, node, tracer=None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, k):
        return Attribute(self, k)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, d):
        self.__dict__ = d

    def __deepcopy__(self, memo):
        import copy

        made = object.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return made

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        frame = sys._getframe(1)
        found, at = _instruction_at(frame)
        if found[at].opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(found[at].argval))
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self):
        return self.tracer.to_bool(self)

    def keys(self):
        """What `**proxy` asks first."""
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call torch.fx.wrap('len') at module scope"
        )

    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        tracers = {}

        def find(a):
            if isinstance(a, Proxy):
                tracers[a.tracer] = None

        map_aggregate(args, find)
        map_aggregate(kwargs, find)
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}")
        (tracer,) = tracers
        if _is_method(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _is_method(function):
    if type(function) is _C.builtin_function:
        return False
    if isinstance(function, _C.overridable):  # functions and methods that are written in Python
        return vars(cresset.Tensor).get(function.__name__) is function
    return inspect.ismethoddescriptor(function)


class Attribute(Proxy):
    """An attribute of a proxy: a node of its own once it is used otherwise than for calling it, which is a method."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer, self._node = root, attr, root.tracer, None

    @property
    def node(self):
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class MetaProxy(Proxy):
    """A proxy for values on the meta device: factory functions with it use the fake mode."""

    def __init__(self, node, tracer=None, fake_mode=None):
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self):
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        meta = next(a for a in (args or ()) if isinstance(a, MetaProxy))
        assert meta.fake_mode is not None, "MetaProxy: a fake mode is needed"
        with meta.fake_mode:
            return orig_method(*(args or ()), **(kwargs or {}))


class ParameterProxy(Proxy):
    """The proxy of a parameter whose shape is a constant of the trace."""

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        assert isinstance(param, cresset.nn.Parameter)
        self.param, self.name = param, name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        """The parameter's shape."""
        return self.param.shape

    def size(self):
        """The parameter's shape."""
        return self.param.size()

    def dim(self):
        """How many dimensions the parameter has."""
        return self.param.dim()

    @property
    def ndim(self):
        """How many dimensions the parameter has."""
        return self.param.ndim

    def numel(self):
        """How many elements the parameter has."""
        return self.param.numel()

    def nelement(self):
        """How many elements the parameter has."""
        return self.param.nelement()


def _forward_operator(name):
    target = getattr(operator, name)

    def impl(*args, **kwargs):
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    impl.__name__ = f"__{name.strip('_')}__"
    setattr(Proxy, impl.__name__, impl)


def _define_reflectable(name):
    target = getattr(operator, name)

    def impl(self, rhs):
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    impl.__name__ = impl.__qualname__ = f"__r{name.strip('_')}__"
    setattr(Proxy, impl.__name__, impl)


for _name in magic_methods:
    if _name != "div":
        _forward_operator(_name)
for _name in reflectable_magic_methods:
    if _name != "div":
        _define_reflectable(_name)
