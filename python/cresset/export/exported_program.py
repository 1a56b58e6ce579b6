"""Exported programs: a flat graph of operators, what its inputs and outputs stand for, and the tensors that it needs."""

import copy
import dataclasses
import textwrap

import cresset
from cresset import fx
from cresset.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from cresset.utils import _pytree as pytree

from ._decompose import decomposed
from .graph_signature import (  # noqa: F401
    ArgumentSpec, ConstantArgument, CustomObjArgument, ExportBackwardSignature, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec,
    SymBoolArgument, SymFloatArgument, SymIntArgument, TensorArgument, TokenArgument,
)  # fmt: skip

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "CallSpec", "default_decompositions"]


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module is called: its arguments in the graph, and the structure of what it takes and gives."""

    inputs: list
    outputs: list
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    forward_arg_names: list | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program by name; that of the program itself has a signature."""

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclasses.dataclass
class CallSpec:
    """The structure of (args, kwargs), and that of the result."""

    in_spec: pytree.TreeSpec | None
    out_spec: pytree.TreeSpec | None


def default_decompositions():
    """What run_decompositions replaces beside composite operators, which it always takes apart: nothing."""
    return {}


class ExportedProgram:
    """A program of export: `module()` is called as the exported module was.

    `graph_module` takes parameters, buffers, constants and the leaves of the arguments, as `graph_signature` says, and gives the leaves of the
    result. Sizes are those of the example.
    """

    def __init__(self, root, graph, graph_signature, state_dict, range_constraints, module_call_graph, example_inputs=None, constants=None, **_):
        graph._codegen = fx.graph.CodeGen()
        self._graph_module = fx.GraphModule(root, graph, "GraphModule")
        self._graph_signature, self._state_dict = graph_signature, state_dict
        self._range_constraints, self._module_call_graph = range_constraints, module_call_graph
        self._example_inputs, self._constants = example_inputs, constants or {}

    @property
    def graph_module(self):
        """The flat graph as a module."""
        return self._graph_module

    @property
    def graph(self):
        """The flat graph."""
        return self.graph_module.graph

    @property
    def graph_signature(self):
        """What its inputs and outputs are."""
        return self._graph_signature

    @property
    def state_dict(self):
        """Parameters and persistent buffers by name."""
        return self._state_dict

    @property
    def constants(self):
        """Tensors that are no state, and buffers that no state_dict holds, by name."""
        return self._constants

    tensor_constants = constants

    @property
    def range_constraints(self):
        """{symbol: (least, most)}."""
        return self._range_constraints

    @property
    def module_call_graph(self):
        """A ModuleCallEntry for the program and for each of its modules."""
        return self._module_call_graph

    @property
    def call_spec(self):
        """The structure of arguments and result."""
        signature = self.module_call_graph[0].signature
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def example_inputs(self):
        """(args, kwargs) of the example."""
        return self._example_inputs

    @property
    def dialect(self):
        """Which operators the graph may have."""
        return "TRAINING"

    def parameters(self):
        """The parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self):
        """(name, parameter) of each."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self):
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self):
        """(name, buffer) of each."""
        hidden = self.graph_signature.non_persistent_buffers
        for name in self.graph_signature.buffers:
            yield name, (self.constants if name in hidden else self.state_dict)[name]

    def module(self, check_guards=True):
        """The program as a module that owns its tensors (those of this object) and is called as the exported one was.

        ValueError for arguments of another structure; with check_guards AssertionError for other sizes, dtypes or constants than the example had.
        """
        return _unlifted(self, check_guards)

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """The program without writes and with composite operators taken apart; what it writes to buffers and inputs becomes outputs.

        decomp_table: {overload: function} of what is replaced as well. Gradients through the result are those of its operators.
        """
        del decompose_custom_triton_ops
        root, graph, signature = decomposed(self, default_decompositions() if decomp_table is None else decomp_table)
        return ExportedProgram(
            root, graph, signature, self.state_dict, self.range_constraints, self.module_call_graph, self.example_inputs, self.constants
        )

    def validate(self):
        """RuntimeError where graph and signature disagree."""
        self.graph.lint()
        names = [n.name for n in self.graph.nodes if n.op == "placeholder"]
        said = [s.arg.name for s in self.graph_signature.input_specs]
        if names != said:
            raise RuntimeError(f"ExportedProgram: the graph has the inputs {names}; its signature says {said}.")

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def __str__(self):
        code = textwrap.indent(self.graph_module.print_readable(print_output=False), "    ")
        return f"ExportedProgram:\n{code}\nGraph signature: {textwrap.indent(str(self.graph_signature), '    ', lambda line: line != chr(10))}\nRange constraints: {self.range_constraints}\n"


class _Guards:
    """Refuses arguments that the graph was not made for."""

    def __init__(self, program):
        self.spec = program.call_spec.in_spec
        values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
        self.checks = [
            (s.arg.name, s.arg.value if isinstance(s.arg, ConstantArgument) else values.get(s.arg.name))
            for s in program.graph_signature.input_specs
            if s.kind is InputKind.USER_INPUT
        ]

    def __call__(self, module, args, kwargs):
        leaves, given = pytree.tree_flatten((args, self._ordered(kwargs)))
        if given != self.spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{self.spec}\nbut actually got inputs with tree spec of: \n{given}.\n"
                "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing."
            )
        for value, (name, wanted) in zip(leaves, self.checks):
            if not isinstance(wanted, cresset.Tensor):
                if value is not wanted and value != wanted:
                    raise AssertionError(f"Guard failed: {name} == {wanted!r}, not {value!r}")
                continue
            if not isinstance(value, cresset.Tensor):
                raise AssertionError(f"Guard failed: {name} is a tensor, not a {type(value).__name__}")
            if value.dtype != wanted.dtype:
                raise AssertionError(f"Guard failed: {name}.dtype == {wanted.dtype}, not {value.dtype}")
            if value.dim() != wanted.dim():
                raise AssertionError(f"Guard failed: {name}.dim() == {wanted.dim()}, not {value.dim()}")
            for at, (size, example) in enumerate(zip(value.shape, wanted.shape)):
                if size != example:
                    raise AssertionError(f"Guard failed: {name}.size()[{at}] == {example}, not {size}")
        return None

    def _ordered(self, kwargs):
        """Keyword arguments in the order of the example."""
        known = self.spec.children_specs[1].context if self.spec.children_specs else []
        return {k: kwargs[k] for k in known if k in kwargs} | {k: v for k, v in kwargs.items() if k not in known}


def _refuses(name):
    def method(self, mode=True):
        raise NotImplementedError(f"Calling {name}() is not supported yet.")

    return method


def _assign(root, target, value):
    *path, name = target.split(".")
    for part in path:
        if not hasattr(root, part):
            root.add_module(part, cresset.nn.Module())
        root = getattr(root, part)
    return root, name, value


def _own_state(root, program):
    """Registers the tensors of a program in a module, under their names."""
    hidden = set(program.graph_signature.non_persistent_buffers)
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.PARAMETER:
            owner, name, value = _assign(root, spec.target, program.state_dict[spec.target])
            owner.register_parameter(name, value)
        elif spec.kind is InputKind.BUFFER:
            kept = spec.target not in hidden
            owner, name, value = _assign(root, spec.target, (program.state_dict if kept else program.constants)[spec.target])
            owner.register_buffer(name, value, persistent=kept)
        elif spec.kind is InputKind.CONSTANT_TENSOR:
            owner, name, value = _assign(root, spec.target, program.constants[spec.target])
            setattr(owner, name, value)
    for name, child in program.graph_module.named_children():
        if not hasattr(root, name):
            root.add_module(name, child)


def _unlifted(program, check_guards):
    root, graph, at = cresset.nn.Module(), fx.Graph(), {}
    _own_state(root, program)
    inputs = {s.arg.name: s for s in program.graph_signature.input_specs}
    owners = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            spec = inputs[node.name]
            if spec.kind is InputKind.USER_INPUT:
                at[node] = graph.placeholder(node.name)
            else:
                at[node] = graph.get_attr(spec.target)
                owners[spec.target] = at[node]
            at[node].meta = copy.copy(node.meta)
        elif node.op == "output":
            results = _written_back(program, graph, node, at, owners)
            graph.output(results)
        else:
            at[node] = graph.node_copy(node, lambda n: at[n])
    spec = program.call_spec
    graph._codegen = _PyTreeCodeGen(_PyTreeInfo(_argument_names(program), spec.in_spec, spec.out_spec))
    module = fx.GraphModule(root, graph, "GraphModule")
    if check_guards:
        module.register_forward_pre_hook(_Guards(program), with_kwargs=True)
    module.validate_inputs = check_guards
    type(module).train = _refuses("train")
    type(module).eval = _refuses("eval")
    return module


def _argument_names(program):
    names = program.module_call_graph[0].signature.forward_arg_names
    if names is not None:
        return list(names)
    args, kwargs = program.call_spec.in_spec.children_specs
    return [f"arg_{i}" for i in range(args.num_children)] + list(kwargs.context)


def _written_back(program, graph, node, at, owners):
    """The results for the caller, behind the writes of what the other outputs are new values of."""
    placeholders = {n.name: at[n] for n in program.graph.nodes if n.op == "placeholder"}
    results = []
    for value, spec in zip(node.args[0], program.graph_signature.output_specs):
        value = fx.node.map_arg(value, lambda n: at[n])
        if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT):
            results.append(value)
        elif spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
            graph.call_function(cresset.ops.aten.copy_.default, (owners[spec.target], value))
        elif spec.kind is OutputKind.USER_INPUT_MUTATION:
            graph.call_function(cresset.ops.aten.copy_.default, (placeholders[spec.target], value))
    return tuple(results)
