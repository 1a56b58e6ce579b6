"""Programs as modules: the tensors are attributes again, and calls are checked."""

import copy

import cresset
from cresset import fx
from cresset.fx import _pytree as fx_pytree
from cresset.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from cresset.utils import _pytree as pytree

from ._checks import check_inputs, reordered
from .graph_signature import InputKind, OutputKind

__all__ = ["expected_inputs", "register_kinds", "unlifted_module"]


def _no_mode(name):
    def refuse(self, mode=True):
        raise NotImplementedError(f"Calling {name}() is not supported yet.")

    return refuse


def _place(root, path, tensor, spec):
    """Put a tensor where its path says, as what it was in the module that was exported; modules between are made."""
    *between, name = path.split(".")
    for part in between:
        if not isinstance(getattr(root, part, None), cresset.nn.Module):
            setattr(root, part, cresset.nn.Module())
        root = getattr(root, part)
    root._buffers.pop(name, None)  # fx makes persistent buffers of all tensors
    if isinstance(tensor, cresset.nn.Parameter):
        root.register_parameter(name, tensor)
    elif spec.kind is InputKind.BUFFER:
        root.register_buffer(name, tensor, persistent=bool(spec.persistent))
    else:
        setattr(root, name, tensor)


class _Unlifting:
    """The copy of a flat graph in which state is read from attributes and written to them."""

    def __init__(self, program):
        self.program, self.root, self.graph, self.nodes, self.targets = program, cresset.nn.Module(), fx.Graph(), {}, {}
        for name, inner in program.graph_module.named_children():
            setattr(self.root, name, inner)

    def _inputs(self):
        placeholders = [n for n in self.program.graph.nodes if n.op == "placeholder"]
        pairs = list(zip(placeholders, _inputs_of(self.program)))
        for node, (spec, tensor) in pairs:
            if spec.kind is InputKind.USER_INPUT:
                self.nodes[node] = self.graph.node_copy(node)
        for node, (spec, tensor) in pairs:
            if spec.kind is InputKind.USER_INPUT:
                continue
            path = spec.target
            _place(self.root, path, tensor, spec)
            copied = self.nodes[node] = self.graph.create_node("get_attr", path, name=path.replace(".", "_"))
            copied.meta = copy.copy(node.meta)

    def _outputs(self, output):
        values = [self.nodes[a] if isinstance(a, fx.Node) else a for a in output.args[0]]
        by_name = {n.name: self.nodes[n] for n in self.program.graph.nodes if n.op == "placeholder"}
        by_target = {s.target: by_name[s.arg.name] for s in self.program.graph_signature.input_specs if s.target is not None}
        results = []
        for spec, value in zip(self.program.graph_signature.output_specs, values):
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
                self.graph.call_function(cresset.ops.aten.copy_.default, (by_target[spec.target], value))
            elif spec.kind is OutputKind.USER_INPUT_MUTATION:
                self.graph.call_function(cresset.ops.aten.copy_.default, (by_name[spec.target], value))
            else:
                results.append(value)
        self.graph.output(tuple(results))

    def run(self):
        self._inputs()
        for node in self.program.graph.nodes:
            if node.op == "output":
                self._outputs(node)
            elif node.op != "placeholder":
                self.nodes[node] = self.graph.node_copy(node, lambda n: self.nodes[n])
        return self.root, self.graph


def _inputs_of(program):
    """[(spec, tensor or None)]: what the program's placeholders get, None for the user's inputs."""
    hidden = set(program.graph_signature.non_persistent_buffers)
    found = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            found.append((spec, None))
        elif spec.kind in (InputKind.CONSTANT_TENSOR, InputKind.CUSTOM_OBJ) or spec.target in hidden:
            found.append((spec, program.constants[spec.target]))
        else:
            found.append((spec, program.state_dict[spec.target]))
    return found


def register_kinds(spec):
    """Generated code takes containers of classes that programs have registered apart by their own functions."""
    kind = spec.type
    if kind is not None and kind not in fx_pytree.SUPPORTED_NODES and kind in pytree.SUPPORTED_NODES:
        fx_pytree.register_pytree_flatten_spec(kind, lambda value, _: list(pytree.SUPPORTED_NODES[kind].flatten_fn(value)[0]))
    for child in spec.children():
        register_kinds(child)


def expected_inputs(program):
    """[(example, sizes)] of the user's inputs, as check_inputs takes them."""
    count = program.call_spec.in_spec.num_leaves
    return [(n.meta.get("val"), n.meta.get("sizes")) for n in program.graph.nodes if n.op == "placeholder"][-count:] if count else []


def unlifted_module(program, check_guards):
    """A new fx.GraphModule around the program's tensors."""
    root, graph = _Unlifting(program).run()
    signature = program.module_call_graph[0].signature
    register_kinds(signature.in_spec)
    names = signature.forward_arg_names or [n.name for n in graph.nodes if n.op == "placeholder"]
    graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(list(names), signature.in_spec, signature.out_spec)))
    module = fx.GraphModule(root, graph, "GraphModule")
    for spec, tensor in _inputs_of(program):
        if tensor is not None:
            _place(module, spec.target, tensor, spec)
    if "custom" in program.graph_module.meta:
        module.meta["custom"] = program.graph_module.meta["custom"]
    module._in_spec, module._out_spec = signature.in_spec, signature.out_spec
    module.training = program.graph_module.training
    kind = type(module)
    kind.train, kind.eval = _no_mode("train"), _no_mode("eval")
    if check_guards:
        expected, ranges = expected_inputs(program), program.range_constraints

        def before(_, args, kwargs):
            args, kwargs = reordered(args, kwargs, signature.in_spec)
            check_inputs(args, kwargs, signature.in_spec, expected, ranges)
            return args, kwargs

        module.register_forward_pre_hook(before, with_kwargs=True)
    return module


def _unlift_exported_program_lifted_states(program, check_guards=False):
    """The program as a module, which does not check its inputs."""
    return unlifted_module(program, check_guards)
