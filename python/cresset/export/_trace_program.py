"""One run of a module with fake tensors, as a flat graph of the operators that its code calls."""

import contextlib
import functools
import inspect
import itertools
import re
import traceback
import warnings

import cresset
from cresset import _C, _rare_functions, fx
from cresset._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode
from cresset._subclasses.unknown_values import UnknownValues
from cresset.autograd.function import _transforms
from cresset.fx.experimental._pre_dispatch import below, operators_as_called
from cresset.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, PythonKeyTracer, _note_value, _of_calls, _ValueGuard
from cresset.fx.experimental.symbolic_shapes import ShapeEnv
from cresset.fx.graph import Graph
from cresset.fx.proxy import Proxy
from cresset.nn.utils.stateless import _reparametrize_module
from cresset.utils import _pytree as pytree
from cresset.utils._python_dispatch import _disable_current_modes

from . import _autocast
from ._effects import has_effect
from ._errors import UserError, UserErrorType, data_dependent
from ._module_calls import ModuleStack
from ._objects import argument_of, fake_attributes, fake_of, is_fake_object, real_of
from ._scans import RECORDERS
from ._unchecked import UNCHECKED
from .graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument

__all__ = ["Traced", "trace", "argument_names", "input_names"]

_PLAIN = (int, float, bool, str, complex, type(None), cresset.dtype, cresset.device, cresset.memory_format, cresset.layout, type(Ellipsis))


class Traced:
    """graph: a flat Graph, its placeholders in the order of `inputs` (InputSpec); its output a tuple as `outputs` (OutputSpec).

    constants: {target: tensor} of what is neither parameter nor buffer. out_spec: the structure of the result. values: the leaves of the result,
    where they are no tensors; None in place of tensors.
    """

    def __init__(self):
        self.graph, self.inputs, self.outputs, self.constants, self.out_spec = None, [], [], {}, None
        self.calls = {}  # ModuleCall of the calls whose signatures are preserved, by path and number
        self.inner = {}  # graph modules of branches and loops, by name
        self.called = {}  # functions of the package that the program called, by the first part of meta["torch_fn"]
        self.divisors = {}  # of the symbols in quotients among the operators' numbers: {symbol: the greatest}
        self.values = {}  # kinds of the values of tensors that the program asked for, by their order
        self.samples = {}  # of symbols of such values: numbers that the program takes


def argument_names(mod, args, kwargs):
    """The names of the arguments as forward has them, with the values: {name: value}; *args are a tuple, **kwargs are by their own names."""
    signature = inspect.signature(mod.forward)
    bound = signature.bind(*args, **kwargs)
    named = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    ordered = {k: v for k, v in named.items() if k not in kwargs}
    ordered.update((k, kwargs[k]) for k in kwargs)  # keyword inputs in the order in which they are given
    return ordered


def _key_text(key):
    return str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))))


def input_names(mod, args, kwargs):
    """The placeholders' names of the leaves of (args, kwargs), in their order."""
    paths, _ = pytree.tree_flatten_with_path(argument_names(mod, args, kwargs))
    return [re.sub(r"[^a-zA-Z0-9]", "_", "_".join(map(_key_text, path))).lower() for path, _ in paths]


# Functions of the library by the types that the interpreter gives such functions.
_KINDS = {"builtin_function": "builtin_function_or_method", "builtin_method": "method_descriptor", "overridable": "function"}


class _Functions(cresset.overrides.TorchFunctionMode):
    """Which function of the package the program called: (its name and number, its kind), as meta["torch_fn"] has it."""

    def __init__(self):
        super().__init__()
        self._counts, self.current, self.called = {}, None, {}  # called: {name and number: function}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name, before = getattr(func, "__name__", None), self.current
        if name is not None and before is None and not name.startswith("__get"):
            self._counts[name] = self._counts.get(name, 0) + 1
            kind = type(func).__name__
            self.current = f"{name}_{self._counts[name]}", f"{_KINDS.get(kind, kind)}.{name}"
            self.called[self.current[0]] = func
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.current = before


_OWN_PARTS = (
    "export/", "_export/", "fx/", "_library/", "_subclasses/", "utils/_python_dispatch", "utils/_pytree", "overrides", "_ops", "nn/modules/module.py", "nn/modules/_hooks.py", "_higher_order",
    "_rare_functions", "_settings", "_functions",
)  # fmt: skip
_OWN_FILES = tuple(f"/cresset/{part}" for part in _OWN_PARTS)


def _stack_trace():
    frames = [f for f in traceback.extract_stack() if not any(part in f.filename for part in _OWN_FILES)]
    return "".join(traceback.format_list(frames[-8:])).rstrip() + "\n" if frames else None


class _ExportTracer(PythonKeyTracer):
    """Tensors that the trace has not seen become constants of the program: placeholders in front of the user's inputs."""

    def __init__(self, mod, traced, preserved, fake_mode, names):
        super().__init__()
        self.traced, self.modules, self.functions = traced, ModuleStack(mod, preserved, self._leaf), _Functions()
        self.root, self.graph, self.tensor_attrs = cresset.nn.Module(), Graph(tracer_cls=PythonKeyTracer), {}
        self.fake_mode, self.names = fake_mode, names
        self.first_input, self.constant_specs, self._lifted = None, [], 0
        self.source = None  # the node that runs, where the program is a graph module
        self.objects = {}  # fakes of the modules' objects of C++ classes, with their paths, by id
        self._paths = {}  # those of a tensor's attributes, by its id
        for path, module in mod.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, cresset.Tensor):
                    self._paths.setdefault(id(value), []).append(f"{path}.{name}" if path else name)

    def create_node(self, *args, **kwargs):
        node = super().create_node(*args, **kwargs)
        self.describe(node)
        return node

    keeps_operand_names = ("true_graph", "false_graph", "body_graph")

    @property
    def inner(self):
        """Graph modules of branches and loops, by name."""
        return self.traced.inner

    def _leaf(self, value):
        return self.node_of(value) if isinstance(value, cresset.Tensor) else value

    def node_of(self, tensor):
        """The node of a tensor; a constant's where the trace has not seen it."""
        proxy = self.proxy_of(tensor)
        return proxy.node if isinstance(proxy, Proxy) else self.constant(tensor).node

    def describe(self, node):
        """Note where the program is."""
        if node.op == "call_function":
            node.meta["nn_module_stack"] = self.modules.current()
            if self.source is not None:
                node.meta.update((k, self.source.meta[k]) for k in _PLACES if k in self.source.meta)
                if "stack_trace" in self.source.meta:
                    return
            if self.functions.current is not None:
                node.meta["torch_fn"] = self.functions.current
            trace_text = _stack_trace()
            if trace_text is not None:
                node.meta["stack_trace"] = trace_text

    def create_arg(self, a):
        """Tensors and objects that are not known are constants."""
        if isinstance(a, cresset.Tensor) and not isinstance(a, Proxy):
            return self.constant(a).node
        if is_fake_object(a):
            return self.object(a)
        return super().create_arg(a)

    def object(self, fake):
        """The node of the fake of a module's object of a C++ class."""
        if id(fake) in self.known:
            return self.known[id(fake)][1].node
        if id(fake) not in self.objects:
            raise UserError(UserErrorType.ANTI_PATTERN, f"export: an object of {fake.script_class_name} was used that is neither an input nor an attribute of a module.")
        targets = self.objects[id(fake)][1]
        node = self._lifted_placeholder("obj_" + targets[0].replace(".", "_"))
        self.track_object(fake, Proxy(node, self))
        self.constant_specs.append(InputSpec(InputKind.CUSTOM_OBJ, argument_of(node, fake), targets[0]))
        self.traced.constants.update(dict.fromkeys(targets, real_of(fake)))
        return node

    def _lifted_placeholder(self, name):
        name = self.names.free(name)
        with self.graph.inserting_before(self.first_input) if self.first_input is not None else contextlib.nullcontext():
            return self.graph.create_node("placeholder", name, (), {}, name=name)

    def constant(self, tensor):
        """The proxy of a tensor that comes from elsewhere than the inputs and the state."""
        if isinstance(tensor, FakeTensor):
            raise UserError(
                UserErrorType.ANTI_PATTERN,
                f"export: a tensor {tensor.dtype}{list(tensor.shape)} without values was used that no recorded operator gave.",
            )
        targets = self._paths.get(id(tensor))
        if targets is None:
            inside = self.modules.path()
            targets = [f"{inside}.lifted_tensor_{self._lifted}" if inside else f"lifted_tensor_{self._lifted}"]
            self._lifted += 1
        target = targets[0]
        node = self._lifted_placeholder("c_" + target.replace(".", "_"))
        self.constant_specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target))
        with _disable_current_modes(), below():
            held = tensor.detach() if tensor.requires_grad and not isinstance(tensor, cresset.nn.Parameter) else tensor
        self.traced.constants.update(dict.fromkeys(targets, held))
        proxy = Proxy(node, self)
        self.track(tensor, proxy)
        _note_value(self, proxy, tensor)
        return proxy


_PLACES = ("stack_trace", "nn_module_stack", "torch_fn", "custom")


class _Again(fx.Interpreter):
    """Runs a graph module node by node, so that what is recorded is where the nodes are."""

    def __init__(self, module, tracer):
        super().__init__(module)
        self.tracer = tracer

    def run_node(self, n):
        """What the node gives."""
        before, self.tracer.source = self.tracer.source, n
        try:
            return super().run_node(n)
        finally:
            self.tracer.source = before

    def __call__(self, *args, **kwargs):
        bound = inspect.signature(type(self.module).forward).bind(self.module, *args, **kwargs)
        return self.run(*list(bound.arguments.values())[1:])


def _is_generated(mod):
    code = getattr(type(mod).forward, "__code__", None)
    return isinstance(mod, fx.GraphModule) and "forward" not in vars(mod) and code is not None and code.co_filename.startswith("<eval_with_key>")


def _bare(value):
    """Numbers that stand for values as plain ones."""
    return int(value) if isinstance(value, cresset.SymInt) else float(value) if isinstance(value, cresset.SymFloat) else value


def assertion_nodes(create_node, compare, numbers, text):
    """The two nodes of a condition on two numbers. The numbers in its text may be those of one run."""
    compared = create_node("call_function", compare, tuple(map(_bare, numbers)), {})
    compared.meta["val"], compared.meta["asserted"] = True, tuple(getattr(n, "text", None) for n in numbers)
    create_node("call_function", cresset.ops.aten._assert_scalar.default, (compared, text), {}).meta["val"] = None


class _Recorder(ProxyTorchDispatchMode):
    """Records operators as the program calls them, those made of others too. No mode: it stands at a dispatch key above all others."""

    def __init__(self, tracer):
        super().__init__(tracer, "fake", pre_dispatch=True, _error_on_data_dependent_ops=False)

    def handle(self, func, args, kwargs):
        """One operator."""
        if str(func) in _NOT_RECORDED:
            return func(*args, **kwargs)
        # What vmap makes of an operator is recorded, and what a composite one is made of where gradients of functions are computed.
        if any(_C._is_batched(t) for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, cresset.Tensor)) or (_transforms.depth and _autocast.is_composite(func)):
            with self.switched(True):
                return func.redispatch(_autocast.keys_below(args, kwargs), *args, **kwargs)
        if _autocast.casts(func, args, kwargs):
            with self.switched(True):
                return _autocast.through(func, args, kwargs)
        func, args, kwargs = _as_called(func, args, kwargs)
        if str(func) == "aten.nonzero_numpy.default" and args[0].dim():  # a list of tensors, whose size no node would have
            return self._record(cresset.ops.aten.unbind.int, (self._record(cresset.ops.aten.nonzero.default, args, {}), 1), {})
        if args and type(args[0]) in (int, float, bool, complex) and func._schema.arguments[0].type == "Tensor":
            return self._of_number(func, args, kwargs)
        return self._record(func, args, kwargs)

    def _of_number(self, func, args, kwargs):
        """`1 - x`, `2 / x` and what else has a number in place of the first tensor, which operators of PyTorch's graphs do not take."""
        if str(func) == "aten.sub.Tensor" and type(args[0]) is not bool and args[1].dtype != cresset.bool:
            return self._record(cresset.ops.aten.rsub.Scalar, (args[1], args[0], *args[2:]), kwargs)
        if str(func) in ("aten.add.Tensor", "aten.mul.Tensor") and len(args) == 2 and not kwargs:
            return self._record(func, (args[1], args[0]), {})
        if str(func) == "aten.div.Tensor":
            return self._record(cresset.ops.aten.mul.Tensor, (self._record(cresset.ops.aten.reciprocal.default, (args[1],), {}), args[0]), {})
        with _disable_current_modes():
            number = cresset.tensor(args[0])
        return self._record(func, (number, *args[1:]), kwargs)

    def _result_of(self, func, args, kwargs):
        form = _FORMS.get(str(func))
        result = form(*args, **kwargs) if form is not None else None
        return func(*args, **kwargs) if result is None else result

    @contextlib.contextmanager
    def switched(self, on):
        """For a block operators of this thread are recorded, or not."""
        before = _C._dispatch_tls_is_dispatch_key_included(_KEY)
        _C._dispatch_tls_set_dispatch_key_included(_KEY, on)
        try:
            yield
        finally:
            _C._dispatch_tls_set_dispatch_key_included(_KEY, before)

    def records(self):
        """Are operators of this thread recorded?"""
        return _C._dispatch_tls_is_dispatch_key_included(_KEY)

    def values(self, run, tensors):
        """None: all tensors are fakes."""
        return None

    def _seen(self, func, args, kwargs):
        with self.switched(False):
            return self.handle(func, args, kwargs)

    @contextlib.contextmanager
    def recording(self):
        """For a block operators of this thread are recorded."""
        own = {name: functools.partial(record, self) for name, record in RECORDERS.items()}
        before, _rare_functions._recorders = _rare_functions._recorders, own
        _of_calls.append(self)
        try:
            with operators_as_called(self._seen), self.switched(True):
                yield
        finally:
            _of_calls.pop()
            _rare_functions._recorders = before


_KEY = "TESTING_ONLY_GenericMode"  # above autograd, autocast and the composite operators; nothing else uses it
_NOT_RECORDED = frozenset({"prim.device.default", "aten.is_complex.default", "aten.is_floating_point.default"})
# Results of operators that look at values to check them; None where the result depends on the values.
_FORMS = {**UNCHECKED, "aten.one_hot.default": lambda x, n=-1: x.new_empty((*x.shape, n)) if n >= 0 else None}


def _as_called(func, args, kwargs):
    """The overload that PyTorch chooses where the package has one for several."""
    if str(func) == "aten.to.dtype_layout" and len(args) == 1 and set(kwargs) == {"dtype"}:
        return cresset.ops.aten.to.dtype, (*args, kwargs["dtype"]), {}
    return func, args, kwargs


def _independent(leaf):
    """A tensor of the same form that shares nothing with others."""
    if leaf.layout is not cresset.strided:
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)
    return empty_of(leaf, leaf.size(), leaf.stride())


def empty_of(tensor, shape, strides):
    """A tensor of another form with the dtype, the device and the mode of one."""
    if isinstance(tensor, FakeTensor):
        with _disable_current_modes(), cresset.no_grad():
            made = tensor.fake_mode._wrap(cresset.empty_strided(shape, strides, dtype=tensor.dtype, device="meta"), tensor.fake_device)
        return made.requires_grad_(tensor.requires_grad) if tensor.requires_grad else made
    with cresset.no_grad():
        made = cresset.empty_strided(shape, strides, dtype=tensor.dtype, device=tensor.device)
    return made.requires_grad_(tensor.requires_grad) if tensor.requires_grad else made


def _is_example(leaf):
    return getattr(leaf, "_of_another_size", False)


def _check_leaf(leaf):
    if isinstance(leaf, (cresset.Tensor, cresset.ScriptObject, *_PLAIN)):
        return
    raise ValueError(
        f"Unsupported input type {type(leaf)}. Export only supports pytree containers of basic types (Tensor, int, float, ...) as input. To register a "
        "custom dataclass, use torch.export.register_dataclass. To register a custom container type, use torch.utils._pytree.register_pytree_node. To "
        "register a constant input, use torch.utils._pytree.register_constant"
    )


class _Names:
    """Names of placeholders: of equal ones the second is called name_1."""

    def __init__(self):
        self._taken = set()

    def free(self, name):
        """A name that nobody has yet."""
        found = next(n for n in itertools.chain((name,), (f"{name}_{i}" for i in itertools.count(1))) if n not in self._taken)
        self._taken.add(found)
        return found


def _fake_mode(mod, leaves):
    """The mode of fake tensors that the module or its inputs have already, or a new one."""
    held = itertools.chain(leaves, mod.parameters(), mod.buffers())
    known = next((t.fake_mode for t in held if isinstance(t, FakeTensor)), None)
    return known or FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True, shape_env=ShapeEnv())


class _Run:
    """The parts of one trace."""

    def __init__(self, mod, args, kwargs, names, preserved, values):
        self.mod, self.traced, self.values = mod, Traced(), values
        self.leaves, self.in_spec = pytree.tree_flatten((args, kwargs))
        self.names = _Names()
        self.input_names = [self.names.free(name) for name in names]  # the inputs' names come first
        self.tracer = _ExportTracer(mod, self.traced, preserved, _fake_mode(mod, self.leaves), self.names)
        self.state = {}

    def _placeholder(self, name, value):
        node = self.tracer.graph.create_node("placeholder", name, (), {}, name=name)
        if node.name != name:
            node.target = node.name
        proxy = Proxy(node, self.tracer)
        if isinstance(value, cresset.Tensor):
            self.tracer.track(value, proxy)
            _note_value(self.tracer, proxy, value)
        elif is_fake_object(value):
            self.tracer.track_object(value, proxy)
        else:
            node.meta["val"] = value
        return node

    def _add_state(self, kind, prefix, path, tensor, persistent=None):
        fake = self.state[path] = self.tracer.fake_mode.from_tensor(tensor)
        node = self._placeholder(self.names.free(prefix + re.sub(r"[^a-zA-Z0-9]", "_", path)), fake)
        self.traced.inputs.append(InputSpec(kind, TensorArgument(node.name), path, persistent))

    def _add_inputs(self):
        mod = self.mod
        for path, parameter in mod.named_parameters(remove_duplicate=False):
            self._add_state(InputKind.PARAMETER, "p_", path, parameter)
        hidden = _non_persistent(mod)
        for path, buffer in mod.named_buffers(remove_duplicate=False):
            self._add_state(InputKind.BUFFER, "b_", path, buffer, path not in hidden)
        values, specs = [], []
        for name, leaf in zip(self.input_names, self.leaves):
            _check_leaf(leaf)
            value = self._fake_input(leaf)
            node = self._placeholder(name, value)
            self.tracer.first_input = self.tracer.first_input or node
            values.append(value)
            specs.append(InputSpec(InputKind.USER_INPUT, _argument(node, value), None))
        return values, specs

    def _fake_input(self, leaf):
        if isinstance(leaf, cresset.Tensor):
            mode = self.tracer.fake_mode
            fake = mode.from_tensor(_independent(leaf))
            if mode.propagate_real_tensors:
                fake.real_tensor = None if isinstance(leaf, FakeTensor) or _is_example(leaf) else leaf.detach().clone()
            return fake
        return fake_of(self.tracer.fake_mode, leaf) if isinstance(leaf, cresset.ScriptObject) else leaf

    def run(self):
        values, specs = self._add_inputs()
        args, kwargs = pytree.tree_unflatten(values, self.in_spec)
        before, held = dict(self.state), _tensor_attributes(self.mod)
        try:
            with _reparametrize_module(self.mod, self.state, tie_weights=False), fake_attributes(self.mod, self.tracer.fake_mode) as self.tracer.objects:
                result = self._call(args, kwargs)
            self._write_assigned(before)
        finally:
            _put_back(self.mod, held)
        self._finish(result)
        self.traced.inputs += [*self.tracer.constant_specs, *specs]
        self.traced.graph, self.traced.called = self.tracer.graph, self.tracer.functions.called
        return self.traced

    def _call(self, args, kwargs):
        self.recorder = _Recorder(self.tracer)
        self.values.assertions, self.values.decides = self._assertion, self.tracer.fake_mode.propagate_real_tensors
        with self.values, self.tracer.modules.watching(), self.tracer.functions, self.tracer.fake_mode, _ValueGuard(self.recorder), self.recorder.recording():
            if not _is_generated(self.mod):
                return self.mod(*args, **kwargs)
            vars(self.mod)["forward"] = _Again(self.mod, self.tracer)
            try:
                return self.mod(*args, **kwargs)
            finally:
                del vars(self.mod)["forward"]

    def _assertion(self, condition):
        """A condition on numbers that stand for values, as nodes of the graph that is recorded now: the program's, or a branch's."""
        text = f"Runtime assertion failed for expression {condition}"
        assertion_nodes(self.recorder.tracer.create_node, condition.compare, (condition.number, condition.other), text)

    def _write_assigned(self, before):
        """`self.buffer = value` in forward is a write to the buffer."""
        places, values = {_place_of(fake) for fake in before.values()}, []
        with self.tracer.fake_mode, self.recorder.recording(), cresset.no_grad():
            for path, fake in before.items():
                now = self.state.get(path)
                if now is not None and now is not fake and isinstance(now, cresset.Tensor):
                    values.append((fake, now.clone() if _place_of(now) in places else now))  # other state may be written before
            for fake, value in values:
                fake.copy_(value)

    def _finish(self, result):
        leaves, self.traced.out_spec = pytree.tree_flatten(result)
        nodes = []
        for leaf in leaves:
            if isinstance(leaf, cresset.Tensor):
                node = self.tracer.node_of(leaf)
                nodes.append(node)
                self.traced.outputs.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None))
            elif isinstance(leaf, _PLAIN):
                nodes.append(leaf)
                self.traced.outputs.append(OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", leaf), None))
            elif is_fake_object(leaf):
                node = self.tracer.object(leaf)
                nodes.append(node)
                self.traced.outputs.append(OutputSpec(OutputKind.USER_OUTPUT, argument_of(node, leaf), None))
            else:
                raise ValueError(f"export: the module returned a {type(leaf).__name__}; tensors, numbers and strings in registered containers were required.")
        self.tracer.graph.output(tuple(_bare(n) for n in nodes))
        self.traced.calls = self.tracer.modules.calls
        kept = {node for call in self.traced.calls.values() for node in call.nodes()}
        self.traced.values = dict(self.values.kinds)
        self.tracer.graph.eliminate_dead_code(lambda node: node in kept or "value" in node.meta or has_effect(node))


def _place_of(tensor):
    return tensor.untyped_storage()._cdata if tensor.layout is cresset.strided else id(tensor)


def _argument(node, value):
    if isinstance(value, cresset.Tensor):
        return TensorArgument(node.name)
    return argument_of(node, value) if is_fake_object(value) else ConstantArgument(node.name, value)


def _non_persistent(mod):
    return {f"{path}.{name}" if path else name for path, m in mod.named_modules(remove_duplicate=False) for name in m._non_persistent_buffers_set}


def _tensor_attributes(mod):
    """The plain attributes of all modules, to put them back: forward must not leave fake tensors behind."""
    return [(m, dict(vars(m))) for m in mod.modules()]


def _put_back(mod, held):
    assigned, paths = [], {id(m): path for path, m in mod.named_modules()}
    for module, before in held:
        now = vars(module)
        for name in [n for n, v in now.items() if n not in before or v is not before[n]]:
            if not any(isinstance(x, cresset.Tensor) for x in pytree.tree_leaves(now[name])):
                continue
            path = paths[id(module)]
            assigned.append(f"self.{path}.{name}" if path else f"self.{name}")
            if name in before:
                now[name] = before[name]
            else:
                del now[name]
    if assigned:
        warnings.warn(
            f"The tensor attribute{'s' if len(assigned) > 1 else ''} {', '.join(assigned)} {'were' if len(assigned) > 1 else 'was'} assigned during export. Such "
            "attributes must be registered as buffers using the `register_buffer` API "
            "(https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer).",
            stacklevel=4,
        )


def trace(mod, args, kwargs, names, preserved=(), values=None):
    """The Traced of mod(*args, **kwargs). Nothing is computed, and the module stays as it was.

    names: of the placeholders of the inputs' leaves. preserved: paths of modules whose calls the result has. values: UnknownValues, what stands for
    the values of tensors that the program asks for.
    """
    try:
        return _Run(mod, args, kwargs, names, preserved, UnknownValues() if values is None else values).run()
    except (DataDependentOutputException, DynamicOutputShapeException) as problem:
        raise data_dependent(problem) from problem
