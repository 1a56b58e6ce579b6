"""make_fx: record the operators that a program runs, below autograd and the composite functions.

A dispatch mode sees every operator, decomposes those that are made of others, and adds a node for each. Tensors are known by their identity; those
the trace has not seen become attributes of the result.
"""

import contextlib
import functools
import importlib
import inspect
import sys

import cresset

from ... import _rare_functions, _recorded
from ..._subclasses import unknown_values
from ..._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from ..._subclasses.functional_tensor import FunctionalTensor
from ...utils import _pytree as pytree
from ...utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from .._lazy_graph_module import _make_graph_module
from .._symbolic_trace import PH, Tracer
from ..node import Node
from ..passes.shape_prop import _extract_tensor_metadata
from ..proxy import Proxy
from ._pre_dispatch import below, operators_as_called

__all__ = [
    "make_fx", "ProxyTorchDispatchMode", "PythonKeyTracer", "dispatch_trace", "get_proxy_mode", "get_innermost_proxy_mode", "maybe_handle_decomp",
    "disable_proxy_modes_tracing", "DecompositionInterpreter", "decompose", "wrapper_and_args_for_make_fx",
]  # fmt: skip

CURRENT_DECOMPOSITION_TABLE = {}
_modes = []


@contextlib.contextmanager
def decompose(decomposition_table):
    """For a block, these operators are replaced by what the functions do: {overload: function}."""
    global CURRENT_DECOMPOSITION_TABLE
    before = CURRENT_DECOMPOSITION_TABLE
    CURRENT_DECOMPOSITION_TABLE = decomposition_table or {}
    try:
        yield CURRENT_DECOMPOSITION_TABLE
    finally:
        CURRENT_DECOMPOSITION_TABLE = before


def get_innermost_proxy_mode():
    """The innermost mode that records, or None."""
    return _modes[-1] if _modes else None


def get_proxy_mode():
    """The mode that records, or None."""
    return get_innermost_proxy_mode()


_of_calls = _recorded.recorders  # modes that record operators as they are called, innermost last


def recorder_of_calls():
    """The mode that records operators as they are called, in front of the modes that dispatch asks, or None."""
    return _of_calls[-1] if _of_calls and _of_calls[-1].records() else None


@contextlib.contextmanager
def disable_proxy_modes_tracing():
    """For a block, nothing is recorded."""
    mode = get_innermost_proxy_mode()
    before = mode.enabled if mode is not None else None
    if mode is not None:
        mode.enabled = False
    try:
        yield mode
    finally:
        if mode is not None:
            mode.enabled = before


def maybe_handle_decomp(proxy_mode, op, args, kwargs):
    """What a decomposition of op gives, or NotImplemented."""
    function = CURRENT_DECOMPOSITION_TABLE.get(op)
    if function is None:
        return NotImplemented
    with proxy_mode:
        return function(*args, **kwargs)


class PythonKeyTracer(Tracer):
    """The Tracer of make_fx: modules are no nodes, tensors are known by identity."""

    def __init__(self):
        super().__init__(autowrap_modules=())
        self.known = {}  # id -> (tensor, proxy)
        self.constants = {}  # id -> (tensor, value that it has)
        self.places = {}  # where a tensor lies -> its proxy; autograd gives out other objects for views and for results that it saved

    keeps_operand_names = ()  # kinds of graphs of functions whose placeholders have the names of the values around

    @functools.cached_property
    def inner(self):
        """Graphs of functions that control flow chooses, by name."""
        return {}

    def call_module(self, m, forward, args, kwargs):
        """What forward gives."""
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """Attributes are themselves."""
        return attr_val

    def is_leaf_module(self, m, module_qualified_name):
        """No module is a node."""
        return False

    def create_arg(self, a):
        """Parameters and tensors that the trace has not seen become attributes."""
        if isinstance(a, cresset.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self._constant(name, a)
            name = self.get_fresh_qualname("_param_constant")
            setattr(self.root, name, a)
            return self._constant(name, a)
        if isinstance(a, cresset.Tensor):
            node = super().create_arg(a)
            return self._describe(node, a)
        if is_fake_object(a):
            return super().create_arg(a.real_obj)
        if isinstance(a, (cresset.SymInt, cresset.SymFloat, cresset.SymBool)):
            return a.node.constant if hasattr(a, "node") and a.node.constant is not None else a
        return super().create_arg(a)

    def describe(self, node):
        """What is noted at a node when it is made: nothing."""

    def _constant(self, name, value):
        return self._describe(self.create_node("get_attr", name, (), {}), value)

    def _describe(self, node, value):
        if isinstance(node, Node):
            node.meta["val"] = self.fakes(value)
        return node

    def fakes(self, value):
        """The value with fake tensors instead of tensors."""

        def fake(t):
            if isinstance(t, FakeTensor) or not isinstance(t, cresset.Tensor):
                return t
            return self.fake_mode.from_tensor(t)

        with _disable_current_modes():
            return pytree.tree_map(fake, value)

    def track_object(self, fake, proxy):
        """This fake of an object is that node's value."""
        self.known[id(fake)] = (fake, proxy)
        proxy.node.meta["val"] = fake

    def track(self, tensor, proxy):
        """This tensor is that node's value."""
        self.known[id(tensor)] = (tensor, proxy)  # alive, so that neither its id nor its storage is given out again
        self.places[_place(tensor)] = proxy

    def proxy_of(self, value):
        """The proxy of a tensor that the trace knows, or the value."""
        found = self.known.get(id(value))
        if found is not None:
            return found[1]
        if self.places and isinstance(value, cresset.Tensor) and not isinstance(value, cresset.nn.Parameter):
            return self.places.get(_place(value), value)
        return value


def _place(tensor):
    if tensor.layout is not cresset.strided:
        return id(tensor)  # it has no storage
    with _disable_current_modes():
        storage = tensor.untyped_storage()._cdata
        return storage, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype


def _note_value(tracer, proxy, value):
    fake = tracer.fakes(value)
    if type(fake) is FakeTensor:  # as it is now: later operators may change its sizes
        with _disable_current_modes():
            fake = fake.fake_mode.snapshot(fake)
    proxy.node.meta["val"] = fake
    if isinstance(fake, cresset.Tensor):
        with _disable_current_modes():
            proxy.node.meta["tensor_meta"] = _extract_tensor_metadata(fake)


def _track_tree(tracer, value, proxy):
    if isinstance(value, cresset.Tensor):
        tracer.track(value, proxy)
        _note_value(tracer, proxy, value)
    elif isinstance(value, (tuple, list)):
        proxy.node.meta["val"] = tracer.fakes(list(value) if isinstance(value, list) else tuple(value))
        for at, item in enumerate(value):
            if isinstance(item, (cresset.Tensor, tuple, list)):
                _track_tree(tracer, item, proxy[at])
    elif value is not None:
        proxy.node.meta["val"] = value


class ProxyTorchDispatchMode(TorchDispatchMode):
    """The mode that records: a node in the tracer's graph for each operator."""

    def __init__(self, tracer, tracing_mode="real", pre_dispatch=False, _allow_fake_constant=False, _error_on_data_dependent_ops=True):
        super().__init__()
        self.tracer, self.tracing_mode, self.enabled = tracer, tracing_mode, True
        self.pre_dispatch = pre_dispatch
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops

    def __enter__(self):
        _modes.append(self)
        if not self.pre_dispatch:
            return super().__enter__()
        self._grad, self._autocast = cresset.is_grad_enabled(), cresset._C._is_any_autocast_enabled()
        self._called = operators_as_called(self._call)
        self._called.__enter__()
        _of_calls.append(self)
        return self

    def __exit__(self, *exc_info):
        _modes.pop()
        if not self.pre_dispatch:
            return super().__exit__(*exc_info)
        _of_calls.pop()
        self._note_grad_mode()
        return self._called.__exit__(*exc_info)

    def records(self):
        """Are operators recorded now?"""
        return self.enabled

    def _call(self, func, args, kwargs):
        """An operator as the program calls it (pre_dispatch)."""
        decomposition = CURRENT_DECOMPOSITION_TABLE.get(func) if self.enabled else None
        if decomposition is not None:
            return decomposition(*args, **kwargs)
        with below():
            if not self.enabled:
                return func(*args, **kwargs)
            if cresset._C._is_any_autocast_enabled() != self._autocast:
                raise NotImplementedError("make_fx: with pre_dispatch autocast cannot change inside of the function. Put autocast around the trace.")
            self._note_grad_mode()
            return self._record(func, args, kwargs)

    def _note_grad_mode(self):
        now = cresset.is_grad_enabled()
        if now != self._grad:
            self._grad = now
            self.tracer.create_node("call_function", cresset._C._set_grad_enabled, (now,), {})

    @classmethod
    def is_infra_mode(cls):
        """Yes."""
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.enabled:
            return func(*args, **kwargs)
        if any(self._is_foreign(a) for a in pytree.tree_leaves((args, kwargs)) if isinstance(a, cresset.Tensor)):
            return NotImplemented
        result = maybe_handle_decomp(self, func, args, kwargs)
        if result is not NotImplemented:
            return result
        if _is_composite(func):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._record(func, args, kwargs)

    def _is_foreign(self, tensor):
        """Does a subclass dispatch for a tensor that the trace does not know? What it does is recorded in place of the operator."""
        cls = type(tensor)
        return (
            cls not in _OWN_TYPES
            and cls.__torch_dispatch__ is not cresset._C._disabled_torch_dispatch_impl
            and not isinstance(tensor, (FakeTensor, FunctionalTensor))
            and id(tensor) not in self.tracer.known
        )

    def _record(self, func, args, kwargs):
        tracer = self.tracer
        tensors = [a for a in pytree.tree_leaves((args, kwargs)) if isinstance(a, cresset.Tensor)]
        constants = [tracer.constants.get(id(t)) for t in tensors]
        all_constant = bool(tensors) and all(c is not None for c in constants)
        if _wants_value(func):
            if all_constant:
                with _disable_current_modes():
                    return func(*[tracer.constants[id(a)][1] if isinstance(a, cresset.Tensor) else a for a in args], **kwargs)
            if self.tracing_mode != "real" and func._schema.name not in ("aten::_local_scalar_dense", "aten::item", "aten::is_nonzero"):
                raise DataDependentOutputException(func)
            if self._error_on_data_dependent_ops and any(id(t) in tracer.known for t in tensors):
                raise RuntimeError(_DATA_DEPENDENT.format(func))
        name = str(func).split(".")[1]
        lifted = None
        if name == "lift_fresh":
            lifted = args[0]
            func = cresset.ops.aten.lift_fresh_copy.default  # a fresh copy of a constant
            name = "lift_fresh_copy"
        proxy_args, proxy_kwargs = pytree.tree_map(tracer.proxy_of, (args, _with_options(name, kwargs)))
        proxy = tracer.create_proxy("call_function", func, proxy_args, proxy_kwargs, name=tracer.graph._target_to_str(name))
        result = self._with_values(proxy, func, args, kwargs)
        written = _written(func, args, kwargs)
        for tensor in written:
            tracer.constants.pop(id(tensor), None)
            if result is tensor or isinstance(result, (tuple, list)) and any(r is tensor for r in result):
                continue
            tracer.track(tensor, proxy)
        _track_tree(tracer, result, proxy)
        if written and isinstance(result, cresset.Tensor) and name.endswith("_"):
            tracer.track(args[0], proxy)
        if isinstance(result, cresset.Tensor) and not written:
            self._note_constant(func, args, kwargs, result, lifted, all_constant)
        return result

    def record_whole(self, func, *args, **kwargs):
        """A composite operator as one node."""
        with self.switched(False):
            return self._record(func, args, kwargs)

    def record_higher_order(self, func, *args, **kwargs):
        """A higher-order operator as one node, when none of its arguments is a function."""
        tracer = self.tracer
        proxy = tracer.create_proxy("call_function", func, *pytree.tree_map(tracer.proxy_of, (args, kwargs)), name=tracer.graph._target_to_str(func.name()))
        with self.switched(False):
            result = func(*args, **kwargs)
        _track_tree(tracer, result, proxy)
        return result

    def _with_values(self, proxy, func, args, kwargs):
        """What the operator gives, its node in `proxy` marked where a number stands for a value that it asks for."""
        values = unknown_values.active
        if values is None:
            return self._result_of(func, args, kwargs)
        values.made = None
        before = values.allowed("sizes") if str(func) in unknown_values.CHOOSING else None
        try:
            result = self._result_of(func, args, kwargs)
        finally:
            if str(func) in unknown_values.CHOOSING:
                values.allowed(before)
        if values.made is not None:
            proxy.node.meta["value"] = values.made
            if not isinstance(result, cresset.Tensor):
                proxy.node.meta["val"] = result
        return result

    def _result_of(self, func, args, kwargs):
        return func(*args, **kwargs)

    @contextlib.contextmanager
    def switched(self, on):
        """For a block operators are recorded, or not."""
        before, self.enabled = self.enabled, on
        try:
            yield
        finally:
            self.enabled = before

    def values(self, run, tensors):
        """What `run` gives, not recorded, where all tensors have values; else None. NotImplementedError where gradients go through the functions."""
        _refuse_gradients(tensors)
        return None if any(isinstance(t, FakeTensor) for t in tensors) else run()

    @contextlib.contextmanager
    def recording_control_flow(self):
        """For a block cond, while_loop, map, scan and associative_scan become nodes."""
        before, _rare_functions._recorders = _rare_functions._recorders, {name: functools.partial(self._flow, name) for name in _FLOWS}
        try:
            yield
        finally:
            _rare_functions._recorders = before

    def _flow(self, name, *arguments):
        flows = importlib.import_module("cresset.export._scans")
        tensors = [t for t in pytree.tree_leaves(arguments) if isinstance(t, cresset.Tensor)]
        batched = any(cresset._C._functorch.is_batchedtensor(t) for t in tensors)
        if not self.enabled or batched and name in _IN_PARTS:
            before, _rare_functions._recorders = _rare_functions._recorders, None
            try:
                return flows.PLAIN[name](*arguments)
            finally:
                _rare_functions._recorders = before
        if batched:
            raise NotImplementedError(f"make_fx: torch.{name} of tensors of vmap is not recorded. Put vmap inside of its functions.")
        if any(isinstance(t, FunctionalTensor) for t in tensors):
            return importlib.import_module("cresset._subclasses._functional_flow").FUNCTIONAL[name](*arguments)
        record = functools.partial(flows.RECORDERS[name], self)
        if cresset.is_grad_enabled() and name != "while_loop":
            return importlib.import_module("cresset.export._flow_gradients").DIFFERENTIABLE[name](self, record, *arguments)
        _refuse_gradients(tensors)
        return record(*arguments)

    def _note_constant(self, func, args, kwargs, result, lifted, all_constant):
        """Small results of constants are constants, so that their values may be asked for."""
        table = self.tracer.constants
        if lifted is not None and not isinstance(lifted, FakeTensor):
            with _disable_current_modes():
                table[id(result)] = (result, lifted.clone())
        elif all_constant and result.numel() <= 1 and not _draws(func):
            with _disable_current_modes():
                values = pytree.tree_map(lambda a: table[id(a)][1] if isinstance(a, cresset.Tensor) else a, (args, kwargs))
                table[id(result)] = (result, func(*values[0], **values[1]))


_FLOWS = ("cond", "while_loop", "map", "scan", "associative_scan")
_IN_PARTS = ("map", "scan", "associative_scan")


def _refuse_gradients(tensors):
    if cresset.is_grad_enabled() and any(t.requires_grad for t in tensors):
        words = "make_fx: gradients through torch.while_loop are not recorded."
        raise NotImplementedError(f"{words} Trace under torch.no_grad(), or with tensors that do not require a gradient.")


class _ValueGuard(cresset.overrides.TorchFunctionMode):
    """Refuses what asks for values of tensors that the trace made."""

    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if args and getattr(func, "__name__", None) in _VALUES and isinstance(args[0], cresset.Tensor) and self.mode.enabled:
            return self._value(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))

    def _value(self, func, args, kwargs):
        tracer = self.mode.tracer
        constant = tracer.constants.get(id(args[0]))
        if constant is not None:
            with _disable_current_modes():
                return func(constant[1], *args[1:], **kwargs)
        if self.mode._error_on_data_dependent_ops and isinstance(tracer.proxy_of(args[0]), Proxy):
            raise RuntimeError(_DATA_DEPENDENT.format("aten._local_scalar_dense.default"))
        values = unknown_values.active
        if values is not None and values.decides and func.__name__ in _TRUTHS:
            return bool(self._value(cresset.Tensor.item, args, {}))
        if values is None or func.__name__ != "item":
            return func(*args, **kwargs)
        before, values.made = values.allowed("items"), None
        try:
            number = func(*args, **kwargs)
        finally:
            values.allowed(before)
        return number if values.made is None else values.wrapped(number, values.made)


_OWN_TYPES = (cresset.Tensor, cresset.nn.Parameter, cresset.nn.Buffer)
_VALUES = frozenset("item __bool__ is_nonzero __int__ __float__ __index__ __complex__ tolist numpy".split())
_TRUTHS = ("__bool__", "is_nonzero")
_DATA_DEPENDENT = (
    "It appears that you're trying to get value out of a tracing tensor with {} - erroring out! It's likely that this is caused by data-dependent "
    "control flow or similar.  It may be possible to trace this with dynamic shapes; try setting tracing_mode='symbolic' in your make_fx call."
)
_FACTORIES = frozenset(cresset._C._factory_names)
_OPTIONS = ("dtype", "layout", "device", "pin_memory", "memory_format")


def _with_options(name, kwargs):
    """The options that a factory function has for what is left out, in the order of the schemas. With out= it has none."""
    if kwargs.get("out") is not None and name.removesuffix("_like") in _FACTORIES:
        return {k: v for k, v in kwargs.items() if k not in _OPTIONS or k == "memory_format"}
    if name in _FACTORIES and "device" not in kwargs:
        kwargs = {**kwargs, "device": cresset.get_default_device() if hasattr(cresset, "get_default_device") else cresset.device("cpu"), "pin_memory": False}
    elif name.endswith("_like") and name.removesuffix("_like") in _FACTORIES and "pin_memory" not in kwargs:
        kwargs = {**kwargs, "pin_memory": False}
    else:
        return kwargs
    others = {k: v for k, v in kwargs.items() if k not in _OPTIONS}
    return {**others, **{k: kwargs[k] for k in _OPTIONS if k in kwargs}}


def _draws(func):
    return cresset.Tag.nondeterministic_seeded in func.tags


def _wants_value(func):
    return cresset.Tag.data_dependent_output in func.tags or str(func) in ("aten._local_scalar_dense.default", "aten.item.default", "aten.is_nonzero.default")


def _is_composite(func):
    return hasattr(func, "decompose")


def _written(func, args, kwargs):
    """The tensors that an operator writes to."""
    found = []
    for at, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[at] if at < len(args) else kwargs.get(argument.name)
            found.extend(t for t in pytree.tree_leaves(value) if isinstance(t, cresset.Tensor))
    return found


def fake_signature(fn, nargs):
    """fn with parameters arg0, arg1, …"""
    names = ",".join(f"arg{i}" for i in range(nargs))
    return eval(f"lambda {names}: fn({names})", {"fn": fn})


def dispatch_trace(root, tracer, concrete_args=None):
    """The GraphModule of what a function of proxies does."""
    graph = tracer.trace(root, concrete_args)
    for path, module in getattr(tracer, "inner", {}).items():
        setattr(tracer.root, path, module)
    name = type(root).__name__ if isinstance(root, cresset.nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


def _wrap_key(f, tensors, tracer, mode):
    """f for proxies: runs with the tensors, records, gives proxies."""
    flat, spec = pytree.tree_flatten(tensors)

    @functools.wraps(f)
    def wrapped(*proxies):
        flat_proxies, _ = pytree.tree_flatten(proxies)
        assert len(flat_proxies) == len(flat)
        for value, proxy in zip(flat, flat_proxies):
            if isinstance(value, cresset.Tensor):
                assert isinstance(proxy, Proxy)
                tracer.track(value, proxy)
                _note_value(tracer, proxy, value)
            elif is_fake_object(value):
                tracer.track_object(value, proxy)
        with _ValueGuard(mode), mode, mode.recording_control_flow():
            result = f(*pytree.tree_unflatten(flat, spec))
        return pytree.tree_map(lambda x: tracer.proxy_of(x) if isinstance(x, cresset.Tensor) or is_fake_object(x) else x, result)

    return wrapped


def make_fx(
    f, decomposition_table=None, tracing_mode="real", _allow_non_fake_inputs=False, *, pre_dispatch=False, record_module_stack=False,
    _allow_fake_constant=False, _error_on_data_dependent_ops=True,
):  # fmt: skip
    """wrapped(*args) → the GraphModule of the operators that f(*args) runs.

    decomposition_table: {overload: function} of what is recorded as what the function does. tracing_mode: "real" runs with the arguments, "fake"
    with fake tensors; "symbolic" shapes are those of the arguments too, since fake tensors here have numbers as sizes. ValueError for another mode.
    With pre_dispatch the operators are those that f calls, composite ones whole, and _set_grad_enabled where f changes the grad mode;
    NotImplementedError where f changes autocast.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")

    @functools.wraps(f)
    def wrapped(*args):
        placeholders = pytree.tree_map(lambda _: PH, args)
        plain = inspect.unwrap(f)
        func = f
        if not hasattr(plain, "__code__") or plain.__code__.co_flags & inspect.CO_VARARGS or inspect.ismethod(plain):
            func = fake_signature(f, len(placeholders))
        tracer = PythonKeyTracer()
        tracer.fake_mode = _fake_mode_of(args) or FakeTensorMode(
            allow_fallback_kernels=True, allow_non_fake_inputs=_allow_non_fake_inputs or tracing_mode == "real"
        )
        context = contextlib.nullcontext()
        if tracing_mode != "real":
            args = pytree.tree_map(lambda a: _as_fake(tracer.fake_mode, a), args)
            context = tracer.fake_mode
        mode = ProxyTorchDispatchMode(tracer, tracing_mode, pre_dispatch, _allow_fake_constant, _error_on_data_dependent_ops)
        key = _wrap_key(func, args, tracer, mode)
        with decompose(decomposition_table), context:
            return dispatch_trace(key, tracer, tuple(placeholders))

    return wrapped


def _as_fake(mode, value):
    if isinstance(value, cresset.Tensor) and not isinstance(value, FakeTensor):
        return mode.from_tensor(value)
    if isinstance(value, cresset.ScriptObject):
        return importlib.import_module("cresset._library.fake_class_registry").maybe_to_fake_obj(mode, value)
    return value


def is_fake_object(value):
    """Is it the fake of an object of a C++ class? The class is loaded where there are such objects."""
    registry = sys.modules.get("cresset._library.fake_class_registry")
    return registry is not None and isinstance(value, registry.FakeScriptObject)


def _fake_mode_of(args):
    for leaf in pytree.tree_leaves(args):
        if isinstance(leaf, FakeTensor):
            return leaf.fake_mode
    return None


def wrapper_and_args_for_make_fx(func, args, kwargs):
    """(function of one list, list) for make_fx of a function with keyword arguments."""
    flat, spec = pytree.tree_flatten((args, kwargs))

    def wrapped(flat_args):
        given, named = pytree.tree_unflatten(flat_args, spec)
        return func(*given, **named)

    return wrapped, flat


def get_isolated_graphmodule(func, args, kwargs, tracing_mode="real", decomposition_table=None):
    """make_fx of a call, not recorded by traces around it."""
    wrapped, flat = wrapper_and_args_for_make_fx(func, args, kwargs)
    with disable_proxy_modes_tracing():
        return make_fx(wrapped, decomposition_table=decomposition_table, tracing_mode=tracing_mode)(flat)


from ..interpreter import Interpreter  # noqa: E402


class DecompositionInterpreter(Interpreter):
    """Runs a graph with proxies: run(*args) adds its operators, decomposed, to new_graph."""

    def __init__(self, module, new_graph, decomposition_table=None, **kwargs):
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = PythonKeyTracer()
        self.tracer.graph, self.tracer.root, self.tracer.tensor_attrs = new_graph, module, {}
        self.tracer.fake_mode = FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True)
        self.decomposition_table = decomposition_table or {}
        self.mode = ProxyTorchDispatchMode(self.tracer)

    def placeholder(self, target, args, kwargs):
        """A placeholder of the new graph."""
        value = super().placeholder(target, args, kwargs)
        proxy = Proxy(self.new_graph.placeholder(target), self.tracer)
        _track_tree(self.tracer, value, proxy)
        return value

    def get_attr(self, target, args, kwargs):
        """A get_attr of the new graph."""
        value = super().get_attr(target, args, kwargs)
        _track_tree(self.tracer, value, Proxy(self.new_graph.get_attr(target), self.tracer))
        return value

    def output(self, target, args, kwargs):
        """The output of the new graph."""
        value = super().output(target, args, kwargs)
        nodes = pytree.tree_map(lambda x: p.node if isinstance(p := self.tracer.proxy_of(x), Proxy) else x, value)
        self.new_graph.output(nodes)
        return value

    def run(self, *args, **kwargs):
        """Run with tensors."""
        with decompose(self.decomposition_table), self.mode:
            return super().run(*args, **kwargs)
