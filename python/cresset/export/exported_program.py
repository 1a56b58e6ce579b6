"""Exported programs: a flat graph of operators, the tensors that it takes, and how calls of the module map to it."""

import copy
import dataclasses
from typing import NamedTuple

import cresset
from cresset.utils import _pytree as pytree

from ._checks import reordered
from ._text import program_text
from .graph_signature import (  # noqa: F401
    ConstantArgument, CustomObjArgument, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, SymIntArgument, TensorArgument,
)  # fmt: skip

__all__ = ["CallSpec", "ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


class CallSpec(NamedTuple):
    """The structures of a call: of ((positional inputs), {keyword inputs}), and of the result."""

    in_spec: object
    out_spec: object


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module is called: nodes of its inputs and outputs, and their structures."""

    inputs: list
    outputs: list
    in_spec: object
    out_spec: object
    forward_arg_names: list | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    """A module that the program calls; "" is the program itself."""

    fqn: str
    signature: ModuleCallSignature | None = None


def signature_of(call):
    """The ModuleCallSignature of a ModuleCall; None for None."""

    def argument(leaf):
        if not isinstance(leaf, cresset.fx.Node):
            return ConstantArgument("", leaf)
        return SymIntArgument(leaf.name) if "expression" in leaf.meta else TensorArgument(leaf.name)

    return call and ModuleCallSignature(list(map(argument, call.inputs)), list(map(argument, call.outputs)), call.in_spec, call.out_spec)


class ExportedProgram:
    """What `export` and `load` give.

    graph_module: the flat graph; its placeholders are parameters, buffers, constants and the leaves of the user's inputs, its output is one tuple.
    state_dict: {path: tensor}, shared with the module that was exported. constants: {name: tensor} of what is no state; buffers that are not persistent
    are among them. The object is not callable: `module()` is.
    """

    def __init__(
        self, root, graph, graph_signature, state_dict, range_constraints, module_call_graph, example_inputs=None, constants=None, *, verifiers=None,
        opset_version=None, dialect="TRAINING",
    ):  # fmt: skip
        if isinstance(root, cresset.fx.GraphModule) and root.graph is graph:
            self._graph_module = root
        else:
            self._graph_module = cresset.fx.GraphModule(root, graph)
        self._graph_signature, self._state_dict = graph_signature, state_dict
        self._range_constraints, self._module_call_graph = dict(range_constraints), module_call_graph
        self._example_inputs, self._constants, self._dialect = example_inputs, dict(constants or {}), dialect
        self._verifiers, self._opset_version = verifiers or [], opset_version

    graph_module = property(lambda self: self._graph_module, doc="The flat graph as an fx.GraphModule.")
    graph = property(lambda self: self._graph_module.graph, doc="The flat graph.")
    graph_signature = property(lambda self: self._graph_signature, doc="What its inputs and outputs are.")
    state_dict = property(lambda self: self._state_dict, doc="Parameters and persistent buffers by their paths.")
    constants = property(lambda self: self._constants, doc="Tensors that are no state, by name.")
    tensor_constants = property(lambda self: self._constants, doc="The same.")
    range_constraints = property(lambda self: self._range_constraints, doc="{symbol of a size: ValueRanges}")
    module_call_graph = property(lambda self: self._module_call_graph, doc="[ModuleCallEntry]: the program, and the modules that it called.")
    dialect = property(lambda self: self._dialect, doc='"TRAINING" as export gives it, "ATEN" after run_decompositions.')

    @property
    def verifiers(self):
        """[the class of verifiers of the dialect], or what was given in its place."""
        from cresset._export.verifier import load_verifier

        return self._verifiers or [load_verifier(self._dialect)]

    verifier = property(lambda self: self.verifiers[0], doc="The first of the verifiers.")

    @property
    def example_inputs(self):
        """(positional inputs, keyword inputs) of the export; None where a file has none."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value):
        if value is not None:
            if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], dict)):
                raise ValueError("Example inputs should be a tuple containing example arguments (as a tuple), and example kwargs (as a dictionary).")
            spec = self.call_spec.in_spec
            names = spec.children_specs[1].context
            if set(value[1]) != set(names):
                raise ValueError(f"Ran into a kwarg keyword mismatch: Got the following keywords {list(value[1])} but expected {list(names)}")
            value = reordered(*value, spec)
            given = pytree.tree_structure(value)
            if given != spec:
                raise ValueError(f"Trying to flatten user inputs with exported input tree spec: \n{spec}\nbut actually got inputs with tree spec of: \n{given}")
        self._example_inputs = value

    @property
    def call_spec(self):
        """CallSpec of the program."""
        signature = self._module_call_graph[0].signature
        return CallSpec(signature.in_spec, signature.out_spec)

    # --- state

    def parameters(self):
        """The parameters, in the order of the inputs."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self):
        """(path, parameter), in the order of the inputs."""
        for path in self._graph_signature.parameters:
            yield path, self._state_dict[path]

    def buffers(self):
        """The buffers, in the order of the inputs."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self):
        """(path, buffer), in the order of the inputs; those that are not persistent too."""
        hidden = set(self._graph_signature.non_persistent_buffers)
        for path in self._graph_signature.buffers:
            yield path, self._constants[path] if path in hidden else self._state_dict[path]

    # --- uses

    def module(self, check_guards=True):
        """The program as a module, called as the exported one was. It shares the tensors with this object.

        A call checks its inputs, unless check_guards is False: their structure (ValueError), the sizes of tensors and the values of what is no tensor
        (RuntimeError). train() and eval() raise NotImplementedError: the graph is that of one mode.
        """
        from ._unlift import unlifted_module

        return unlifted_module(self, check_guards)

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """A program of core operators that write nothing: composite operators come apart, new values of buffers and inputs are outputs.

        decomp_table: {overload: function} of what comes apart; without it that of default_decompositions, which leaves PyTorch's core operators. An
        empty table only takes writes out.
        """
        del decompose_custom_triton_ops
        from ._decompose import decomposed

        return decomposed(self, decomp_table)

    def validate(self):
        """RuntimeError unless the graph is sound and has the placeholders and outputs that the signature names."""
        self.graph.lint()
        names = [n.name for n in self.graph.nodes if n.op == "placeholder"]
        expected = [s.arg.name for s in self._graph_signature.input_specs]
        if names != expected:
            raise RuntimeError(f"ExportedProgram: the graph has the placeholders {names}; the signature names {expected}.")
        outputs = next(n for n in self.graph.nodes if n.op == "output").args[0]
        if len(outputs) != len(self._graph_signature.output_specs):
            raise RuntimeError(f"ExportedProgram: the graph has {len(outputs)} outputs; the signature names {len(self._graph_signature.output_specs)}.")

    _validate = validate

    def _update(self, graph_module, graph_signature, *, state_dict=None, constants=None, dialect=None, range_constraints=None, calls=None):
        """A program with another graph and the same calls. calls: {path and number: ModuleCall} of the signatures of modules, where nodes have other names."""
        entries = copy.deepcopy(self._module_call_graph)
        for entry in entries[1:] if calls is not None else ():
            entry.signature = signature_of(calls.get(entry.fqn))
        return ExportedProgram(
            graph_module, graph_module.graph, graph_signature, self._state_dict if state_dict is None else state_dict,
            self._range_constraints if range_constraints is None else range_constraints, entries, self._example_inputs,
            self._constants if constants is None else constants, dialect=dialect or self._dialect,
        )  # fmt: skip

    def _transform_do_not_use(self, *passes):
        """The program after passes: functions of a GraphModule that give a PassResult. Outputs and inputs may get other names; the program itself stays as it is.
        RuntimeError where they get others in number."""
        from cresset.fx.passes.infra.pass_manager import PassManager

        result = PassManager(list(passes))(copy.deepcopy(self._graph_module))
        if not result.modified:
            return self
        graph, signature = result.graph_module.graph, copy.deepcopy(self._graph_signature)
        inputs = [n.name for n in graph.nodes if n.op == "placeholder"]
        outputs = next(n for n in graph.nodes if n.op == "output").args[0]
        if len(inputs) != len(signature.input_specs) or len(outputs) != len(signature.output_specs):
            raise RuntimeError(f"A pass gave a graph with {len(inputs)} inputs and {len(outputs)} outputs; the program has {len(signature.input_specs)} and {len(signature.output_specs)}.")
        names = dict(zip((s.arg.name for s in signature.input_specs), inputs))
        for spec, name in zip(signature.input_specs, inputs):
            spec.arg.name = name
        for spec, value in zip(signature.output_specs, outputs):
            if isinstance(value, cresset.fx.Node):
                spec.arg.name = value.name
            spec.target = names.get(spec.target, spec.target) if spec.kind is OutputKind.USER_INPUT_MUTATION else spec.target
        return self._update(result.graph_module, signature)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def __str__(self):
        return program_text(self)


def default_decompositions():
    """The CustomDecompTable of what run_decompositions takes apart; what is taken out of it stays whole."""
    from .decomp_utils import CustomDecompTable

    return CustomDecompTable()
