"""export: a module's forward, run once with fake tensors and recorded as the operators that it calls."""

import contextlib
import inspect
import traceback

import cresset
from cresset import fx
from cresset.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from cresset.utils import _pytree as pytree

from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import ConstantArgument, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument

__all__ = ["export"]


def export(mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, preserve_module_call_signature=(), prefer_deferred_runtime_asserts_over_guards=False):
    """The ExportedProgram of mod(*args, **kwargs).

    args: a tuple of example arguments, trees of tensors and constants. The graph has the operators that forward calls, composite ones whole, and
    in-place ones as they are (`run_decompositions` makes it functional). Sizes are those of the example. strict is taken: there is one way to trace.

    ValueError unless mod is a Module; UserError unless args is a tuple; RuntimeError where a value of a tensor decides; NotImplementedError for
    dynamic_shapes that name a dynamic dimension, and for preserve_module_call_signature.
    """
    from cresset._dynamo.exc import UserError

    del strict, prefer_deferred_runtime_asserts_over_guards
    if not isinstance(mod, cresset.nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if isinstance(mod, cresset.jit.ScriptModule):
        raise ValueError("Exporting a ScriptModule is not supported. Export the module that it was made from.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if preserve_module_call_signature:
        raise NotImplementedError("export: preserve_module_call_signature is not followed; the program's own signature is kept.")
    _refuse_dynamic(dynamic_shapes)
    return _Export(mod, args, dict(kwargs or {})).program()


def _refuse_dynamic(shapes):
    from .dynamic_shapes import _is_dynamic

    if any(map(_is_dynamic, pytree.tree_leaves(shapes, is_leaf=_is_dynamic))):
        raise NotImplementedError(
            "export: dynamic_shapes: sizes of an exported program are those of the example, since fake tensors have numbers as sizes. "
            "Use compile(dynamic=True), jit.trace or jit.script for programs that take other sizes."
        )


class _Modules:
    """While it is open, the modules of a root that run, and the function that is called: meta of the nodes that are recorded."""

    def __init__(self, root):
        self.names = {id(m): name for name, m in root.named_modules()}
        self.open, self.calls, self.function = [], {}, None

    def __enter__(self):
        register = cresset.nn.modules.module
        self.hooks = [
            register.register_module_forward_pre_hook(self._enter),
            register.register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *exc_info):
        for hook in self.hooks:
            hook.remove()

    def _enter(self, module, args):
        if id(module) in self.names:
            self.open.append(module)

    def _leave(self, module, args, result):
        if self.open and self.open[-1] is module:
            self.open.pop()

    def stack(self):
        """{key: (name, class)} of the modules that run, outermost first."""
        found = {}
        for module in self.open:
            name, cls = self.names[id(module)], type(module)
            found["L__self__" + (f"_{name}" if name else "")] = (name, f"{cls.__module__}.{cls.__qualname__}")
        return found


class _Functions(cresset.overrides.TorchFunctionMode):
    """Which of PyTorch's functions is being called: (its name and number, its kind)."""

    def __init__(self):
        super().__init__()
        self.counts, self.current = {}, None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", None)
        before = self.current
        if name is not None and before is None and not name.startswith("__get"):
            self.counts[name] = self.counts.get(name, 0) + 1
            self.current = f"{name}_{self.counts[name]}", f"{type(func).__name__}.{name}"
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.current = before


_HERE = tuple(cresset.__path__)


def _user_stack():
    """The lines of the program that called an operator, without those of the runtime (but with those of its modules)."""
    frames = traceback.extract_stack()
    first = max((i for i, f in enumerate(frames) if f.filename == __file__), default=-1)
    frames = traceback.extract_stack()
    start = max((i for i, f in enumerate(frames) if f.name == "_run_forward" and f.filename == __file__), default=first)
    kept = [f for f in frames[start + 1 :] if not f.filename.startswith(_HERE) or "/nn/modules/" in f.filename and not f.filename.endswith("/module.py")]
    return "".join(traceback.format_list(kept)).strip() or None


class _Export:
    """One export."""

    def __init__(self, mod, args, kwargs):
        self.mod, self.args, self.kwargs = mod, args, kwargs
        self.leaves, self.in_spec = pytree.tree_flatten((args, kwargs))
        self.state = {}
        for name, parameter in mod.named_parameters():
            self.state[name] = (InputKind.PARAMETER, parameter)
        hidden = {f"{prefix}.{n}" if prefix else n for prefix, m in mod.named_modules() for n in m._non_persistent_buffers_set}
        self.hidden = {name for name, _ in mod.named_buffers() if name in hidden}
        for name, buffer in mod.named_buffers():
            self.state[name] = (InputKind.BUFFER, buffer)
        self.out_spec, self.rebound = None, {}

    def program(self):
        """Trace, then name and describe what the graph takes and gives."""
        names, count = list(self.state), len(self.state)
        example = [tensor for _, tensor in self.state.values()] + self.leaves

        def flat(*values):
            state = dict(zip(names, values[:count]))
            given, named = pytree.tree_unflatten(list(values[count:]), self.in_spec)
            result, self.rebound = self._run_forward(state, given, named)
            leaves, self.out_spec = pytree.tree_flatten(result)
            for leaf in leaves:
                if not isinstance(leaf, (cresset.Tensor, int, float, bool, str, complex, type(None), cresset.dtype, cresset.device)):
                    raise ValueError(f"export: a result is a {type(leaf)}, which no graph has. Return trees of tensors and constants.")
            return leaves + list(self.rebound.values())

        traced = make_fx(flat, tracing_mode="fake", pre_dispatch=True, _allow_non_fake_inputs=True)(*example)
        return self._describe(traced)

    def _run_forward(self, state, args, kwargs):
        given = dict(state)
        modules, functions = _Modules(self.mod), _Functions()
        with modules, functions, _noting(modules, functions):
            result = cresset.func.functional_call(self.mod, state, args, kwargs)
        return result, {name: state[name] for name in given if state[name] is not given[name]}

    def _describe(self, traced):
        graph, at, inputs, outputs, constants = fx.Graph(), {}, [], [], {}
        placeholders = [n for n in traced.graph.nodes if n.op == "placeholder"]
        paths = self._input_names()
        attributes = {n.target: getattr(traced, n.target) for n in traced.graph.nodes if n.op == "get_attr" and isinstance(getattr(traced, n.target), cresset.Tensor)}
        lifted = self._constant_names(attributes)

        def take(name, kind, target, value, node, persistent=None, constant=None):
            made = graph.placeholder(name)
            made.meta = {k: v for k, v in node.meta.items() if k in ("val", "tensor_meta")} if node is not None else {}
            if not isinstance(value, cresset.Tensor):
                made.meta["val"] = value
            argument = TensorArgument(made.name) if isinstance(value, cresset.Tensor) else ConstantArgument(made.name, value)
            inputs.append(InputSpec(kind, argument, target, persistent))
            return made

        for (name, (kind, value)), node in zip(self.state.items(), placeholders):
            prefix = "p_" if kind is InputKind.PARAMETER else "b_"
            at[node] = take(prefix + _identifier(name), kind, name, value, node, name not in self.hidden if kind is InputKind.BUFFER else None)
        by_target = {}
        for target, value in attributes.items():
            node = next(n for n in traced.graph.nodes if n.op == "get_attr" and n.target == target)
            path, name = lifted[target]
            if path not in by_target:
                by_target[path] = take(name, InputKind.CONSTANT_TENSOR, path, value, node)
                constants[path] = value
            lifted[target] = by_target[path]
        for name, value, node in zip(paths, self.leaves, placeholders[len(self.state) :]):
            at[node] = take(name, InputKind.USER_INPUT, None, value, node)
        for node in traced.graph.nodes:
            if node.op == "get_attr" and node.target in lifted:
                at[node] = lifted[node.target]
            elif node.op == "output":
                results = fx.node.map_arg(tuple(pytree.tree_leaves(node.args[0], is_leaf=lambda x: x is None)), lambda n: at[n])
                outputs = self._output_specs(results)
                graph.output(results)
            elif node.op != "placeholder":
                at[node] = graph.node_copy(node, lambda n: at[n])
        state = {n: v for n, (_, v) in self.state.items() if n not in self.hidden}
        constants |= {n: self.state[n][1] for n in self.hidden}
        names = list(inspect.signature(self.mod.forward).parameters)
        signature = ModuleCallSignature([], [], self.in_spec, self.out_spec, self._argument_names(names))
        calls = [ModuleCallEntry("", signature), *(ModuleCallEntry(n) for n, _ in self.mod.named_modules() if n)]
        return ExportedProgram(traced, graph, ExportGraphSignature(inputs, outputs), state, {}, calls, (self.args, self.kwargs), constants)

    def _output_specs(self, results):
        count = len(results) - len(self.rebound)
        specs = []
        for value in results[:count]:
            argument = TensorArgument(value.name) if isinstance(value, fx.Node) else ConstantArgument("", value)
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, argument, None))
        for name, value in zip(self.rebound, results[count:]):
            kind = OutputKind.BUFFER_MUTATION if self.state[name][0] is InputKind.BUFFER else OutputKind.PARAMETER_MUTATION
            specs.append(OutputSpec(kind, TensorArgument(value.name), name))
        return specs

    def _argument_names(self, names):
        bound = inspect.signature(self.mod.forward).bind(*self.args, **self.kwargs)
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in bound.signature.parameters.values()):
            return None
        return [*names[: len(self.args)], *self.kwargs]

    def _input_names(self):
        """A name for each leaf of the arguments: the parameter's, and the way to it."""
        bound = inspect.signature(self.mod.forward).bind(*self.args, **self.kwargs)
        names = []
        for name, parameter in bound.signature.parameters.items():
            if name not in bound.arguments or parameter.kind is parameter.VAR_KEYWORD:
                continue
            value = bound.arguments[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [_path(f"{name}_{i}", way) for i, v in enumerate(value) for way, _ in pytree.tree_flatten_with_path(v)[0]]
            elif parameter.kind is not parameter.KEYWORD_ONLY and name not in self.kwargs:
                names += [_path(name, way) for way, _ in pytree.tree_flatten_with_path(value)[0]]
        for name, value in self.kwargs.items():
            names += [_path(name, way) for way, _ in pytree.tree_flatten_with_path(value)[0]]
        return names

    def _constant_names(self, attributes):
        """{attribute of the trace: (name in the program, name of the input)}."""
        own = {id(v): f"{p}.{n}" if p else n for p, m in self.mod.named_modules() for n, v in vars(m).items() if isinstance(v, cresset.Tensor)}
        found, others = {}, 0
        for target, value in attributes.items():
            path = own.get(id(value))
            if path is None:
                path, others = f"lifted_tensor_{others}", others + 1
            found[target] = path, "c_" + _identifier(path)
        return found


@contextlib.contextmanager
def _noting(modules, functions):
    """For a block, nodes that are recorded say where they come from."""
    tracer = get_proxy_mode().tracer
    create = tracer.create_node

    def create_node(kind, *args, **kwargs):
        node = create(kind, *args, **kwargs)
        if kind not in ("placeholder", "output"):
            node.meta["nn_module_stack"] = modules.stack()
            node.meta["stack_trace"] = _user_stack()
            if functions.current is not None:
                node.meta["torch_fn"] = functions.current
        return node

    tracer.create_node = create_node
    try:
        yield
    finally:
        del tracer.create_node


def _identifier(name):
    return "".join(c if c.isalnum() else "_" for c in name).lower()


def _path(name, way):
    parts = [name]
    for key in way:
        found = getattr(key, "key", getattr(key, "idx", getattr(key, "name", None)))
        parts.append(_identifier(str(found)))
    return "_".join(parts)
