"""Checks of exported programs: what their graphs may have, and whether the signature says what the graph is."""

import math
import operator

import cresset
from cresset.export.graph_signature import CustomObjArgument, InputKind, OutputKind, SymBoolArgument, SymFloatArgument, SymIntArgument, TensorArgument, TokenArgument
from cresset.fx import GraphModule, Node
from cresset.utils import _pytree as pytree

__all__ = ["SpecViolationError", "TrainingIRVerifier", "Verifier", "load_verifier"]

_PLAIN = (int, float, bool, str, complex, type(None), cresset.dtype, cresset.device, cresset.memory_format, cresset.layout)


class SpecViolationError(Exception):
    """A program is not as its dialect requires."""


def _check_value(node):
    """Has the node's meta what it gives?"""

    def known(value):
        return isinstance(value, (cresset.Tensor, CustomObjArgument, cresset.SymInt, cresset.SymFloat, cresset.SymBool, *_PLAIN)) or type(value).__name__ == "FakeScriptObject"

    if "val" not in node.meta:
        if node.op == "call_function" and _gives_nothing(node):
            return
        raise SpecViolationError(f"Node.meta {node.name} is missing val field.")
    bad = [x for x in pytree.tree_leaves(node.meta["val"]) if not known(x)]
    if bad:
        raise SpecViolationError(f"Node.meta {node.name} has an invalid val field {bad[0]}")


def _gives_nothing(node):
    schema = getattr(node.target, "_schema", None)
    return schema is None and not node.users or schema is not None and not schema.returns


def _check_calls(node):
    """torch_fn is a pair of texts, where there is one."""
    found = node.meta.get("torch_fn")
    if found is not None and not (isinstance(found, tuple) and len(found) == 2 and all(isinstance(x, str) for x in found)):
        raise SpecViolationError(f"Node.meta {node.name} has an invalid torch_fn field {found}")


class Verifier:
    """check(program): SpecViolationError unless a program of core operators is as it should be. Subclasses have other dialects.

    The graph calls operators (overloads), higher-order operators and functions of numbers, all nodes have their values, operators write nothing, and
    inputs and outputs are those of the signature, whose targets exist.
    """

    dialect = "ATEN"
    functional = True

    def allowed_builtin_ops(self):
        """Functions of numbers that graphs may call."""
        names = "getitem add mul sub truediv ge le gt lt eq ne floordiv mod and_ or_ not_ pow neg abs lshift rshift"
        return [*(getattr(operator, name) for name in names.split()), math.ceil, math.floor, math.trunc, math.sqrt, round, min, max]

    def allowed_op_types(self):
        """Classes of what graphs may call."""
        return cresset._ops.OpOverload, cresset._ops.HigherOrderOperator

    def allowed_getattr_types(self):
        """Classes of attributes that graphs may read."""
        return (GraphModule,)

    def allowed_getattr_types_for_subgm(self):
        """The same in graphs of branches and loops."""
        return (GraphModule, cresset.nn.Parameter, cresset.Tensor, cresset.ScriptObject)

    def check_valid_op(self, op):
        """Override to check operators; SpecViolationError for those that the dialect has not."""

    def check_additional(self, gm):
        """Override for more checks of a graph."""

    def check(self, ep):
        """SpecViolationError unless the program is sound."""
        self._check_graph_module(ep.graph_module)
        _check_calls_of_modules(ep)
        _check_signature(ep)

    def _check_operator(self, node):
        op = node.target
        functions = self.allowed_builtin_ops()
        if not isinstance(op, self.allowed_op_types()) and op not in functions:
            raise SpecViolationError(f"Operator '{op}' is not an allowed operator type: {self.allowed_op_types()}\nValid builtin ops: {functions}")
        if isinstance(op, cresset._ops.OpOverload) and self.functional and op._schema.is_mutable:
            raise SpecViolationError(f"operator '{op}' is not functional")
        self.check_valid_op(op)

    def _check_attribute(self, gm, node, inner):
        value = operator.attrgetter(node.target)(gm) if _has(gm, node.target) else None
        if value is None:
            raise SpecViolationError(f"Attribute {node.target} of the graph does not exist.")
        allowed = self.allowed_getattr_types_for_subgm() if inner else self.allowed_getattr_types()
        if not isinstance(value, allowed):
            raise SpecViolationError(f"Invalid get_attr type {type(value)} on target {node.target}. \nValid get_attr types: {allowed}")

    def _check_graph_module(self, gm, inner=False):
        gm.graph.lint()
        for node in gm.graph.nodes:
            if node.op in ("call_module", "call_method"):
                raise SpecViolationError(f"{node.op} is not valid: got '{node.target}' ")
            if node.op in ("placeholder", "call_function"):
                _check_value(node)
                _check_calls(node)
            if node.op == "call_function":
                self._check_operator(node)
            elif node.op == "get_attr":
                self._check_attribute(gm, node, inner)
                value = operator.attrgetter(node.target)(gm)
                if isinstance(value, GraphModule):
                    self._check_graph_module(value, inner=True)
        self.check_additional(gm)


class TrainingIRVerifier(Verifier):
    """That of programs as export gives them: operators may write."""

    dialect = "TRAINING"
    functional = False


def _has(owner, path):
    try:
        operator.attrgetter(path)(owner)
    except AttributeError:
        return False
    return True


def load_verifier(dialect):
    """The class for a dialect: "ATEN" or "TRAINING". KeyError for another."""
    found = {cls.dialect: cls for cls in (Verifier, TrainingIRVerifier)}
    return found[dialect]


def _check_calls_of_modules(program):
    """Every name in the signatures of modules is that of a node, or stands for a value."""
    nodes = {n.name for n in program.graph.nodes}
    for entry in program.module_call_graph:
        if entry.signature is None:
            continue
        for argument in (*entry.signature.inputs, *entry.signature.outputs):
            if isinstance(argument, (TensorArgument, SymIntArgument)) and argument.name and argument.name not in nodes:
                raise SpecViolationError(f"Input/output {argument.name} of the call of {entry.fqn!r} does not exist in the graph.")


def _check_inputs(program, signature):
    nodes = [n.name for n in program.graph.nodes if n.op == "placeholder"]
    names = [s.arg.name for s in signature.input_specs]
    if len(nodes) != len(names):
        raise SpecViolationError(
            f"Number of graph inputs ({len(nodes)}) does not match number of inputs in the graph signature ({len(names)})\n"
            f"Placeholders missing input_specs: {set(nodes) - set(names)}\nInput_specs missing placeholders: {set(names) - set(nodes)}"
        )
    for spec, node in zip(signature.input_specs, nodes):
        if spec.arg.name != node:
            raise SpecViolationError(f"Input spec name {spec.arg.name} does not match node name {node}")
        if spec.kind is not InputKind.USER_INPUT and spec.kind is not InputKind.TOKEN:
            _check_state(program, spec)


_KINDS = {
    InputKind.PARAMETER: ("Parameter", TensorArgument), InputKind.BUFFER: ("Buffer", TensorArgument), InputKind.CONSTANT_TENSOR: ("Constant tensor", TensorArgument),
    InputKind.CUSTOM_OBJ: ("Custom object", CustomObjArgument),
}  # fmt: skip


def _check_state(program, spec):
    word, kind = _KINDS[spec.kind]
    if not isinstance(spec.arg, kind):
        raise SpecViolationError(f"{word} {spec.arg} is not a {kind.__name__}. Found {type(spec.arg)} instead.")
    if spec.target is None:
        raise SpecViolationError(f"InputSpec for {spec.arg.name} has no target.")
    if spec.kind is InputKind.PARAMETER:
        if spec.target not in program.state_dict:
            raise SpecViolationError(f"Parameter {spec.target} is not in the state dict.")
        if not isinstance(program.state_dict[spec.target], cresset.nn.Parameter):
            raise SpecViolationError(f"State dict entry for parameter {spec.target} is not an instance of torch.nn.Parameter.")
    elif spec.kind is InputKind.BUFFER:
        if spec.persistent is None:
            raise SpecViolationError(f"Buffer {spec.target} is missing a persistence flag")
        if spec.persistent and spec.target not in program.state_dict:
            raise SpecViolationError(f"Buffer {spec.target} is not in the state dict.")
        if not spec.persistent and spec.target in program.state_dict:
            raise SpecViolationError(f"Non-persistent buffer {spec.target} is in the state dict, it should not be.")
    elif spec.target not in program.constants:
        raise SpecViolationError(f"{word} {spec.target} is not in the constants dictionary.")


def _check_outputs(program, signature):
    (output,) = (n for n in program.graph.nodes if n.op == "output")
    values = [x.name if isinstance(x, Node) else x for x in output.args[0]]
    specs = signature.output_specs
    names = [s.arg.name for s in specs if isinstance(s.arg, (TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, TokenArgument, CustomObjArgument))]
    if len(values) != len(specs):
        nodes = {x.name for x in output.args[0] if isinstance(x, Node)}
        raise SpecViolationError(
            f"Number of output nodes {len(values)} is different Than the number of outputs specified by the graph signature: {len(specs)}\n"
            f"Nodes missing output_specs: {nodes - set(names)}\nOutput_specs missing nodes: {set(names) - nodes}"
        )
    for spec, value in zip(specs, values):
        _check_output(program, signature, spec, value)


def _check_output(program, signature, spec, value):
    if spec.kind is OutputKind.BUFFER_MUTATION and spec.target not in signature.buffers:
        raise SpecViolationError(
            f"Buffer output {value} does not point to a buffer that exists. \nDict of buffers that are mutated, in order: {signature.buffers_to_mutate} \n"
            f"Buffer nodes available: {signature.buffers} \n"
        )
    if spec.kind is OutputKind.PARAMETER_MUTATION and spec.target not in signature.parameters:
        raise SpecViolationError(f"Parameter output {value} does not point to a parameter that exists. \nParameters available: {signature.parameters}")
    if spec.kind is OutputKind.USER_INPUT_MUTATION and spec.target not in signature.user_inputs:
        raise SpecViolationError(f"User input output {value} does not point to a user input that exists. \nUser inputs available: {signature.user_inputs} \n")
    if spec.kind is OutputKind.USER_OUTPUT:
        expected = getattr(spec.arg, "value", spec.arg.name)
        if expected is not value and expected != value:
            raise SpecViolationError(f"User output {value} is not in the correct order or is not found in the exported program's user_output list: {signature.user_outputs}. ")


def _check_signature(program):
    signature = program.graph_signature
    _check_inputs(program, signature)
    _check_outputs(program, signature)
