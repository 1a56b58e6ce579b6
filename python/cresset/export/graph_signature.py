"""What the inputs and outputs of an exported program's flat graph stand for."""

import dataclasses
import enum
from typing import Any

__all__ = [
    "TensorArgument", "SymIntArgument", "SymFloatArgument", "SymBoolArgument", "CustomObjArgument", "ConstantArgument", "TokenArgument", "ArgumentSpec",
    "InputKind", "InputSpec", "OutputKind", "OutputSpec", "ExportGraphSignature", "ExportBackwardSignature",
]  # fmt: skip


@dataclasses.dataclass
class TensorArgument:
    """A tensor: the name of its node."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size that the graph computes."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A number that the graph computes."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A truth value that the graph computes."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class that is no tensor."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A value of the example, which is part of the program."""

    name: str
    value: Any


@dataclasses.dataclass
class TokenArgument:
    """What orders operators with effects."""

    name: str


ArgumentSpec = TensorArgument | SymIntArgument | SymFloatArgument | SymBoolArgument | CustomObjArgument | ConstantArgument | TokenArgument


class InputKind(enum.Enum):
    """What an input stands for."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """What an output stands for."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


def _spec_text(spec, persistent):
    target = f" target='{spec.target}'" if spec.target is not None else ""
    kept = f" persistent={persistent}" if persistent is not None else ""
    return f"{'' if isinstance(spec.arg, ConstantArgument) and spec.arg.name is None else spec.arg.name}: {spec.kind.name}{target}{kept}"


@dataclasses.dataclass
class InputSpec:
    """One input: its argument in the graph, and the attribute that it stands for. Buffers say whether a state_dict holds them."""

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self):
        if self.kind is InputKind.BUFFER:
            assert self.persistent is not None, "Failed to specify persistent flag on BUFFER."

    def __str__(self):
        return _spec_text(self, self.persistent)


@dataclasses.dataclass
class OutputSpec:
    """One output; mutations are written to their target."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self):
        return _spec_text(self, None)


@dataclasses.dataclass
class ExportBackwardSignature:
    """Names of gradients, and of the loss, among the outputs."""

    gradients_to_parameters: dict
    gradients_to_user_inputs: dict
    loss_output: str


def _name_or_value(arg):
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of a program's flat graph, in order."""

    input_specs: list
    output_specs: list

    def _targets(self, kind):
        return tuple(s.target for s in self.input_specs if s.kind is kind)

    def _by_name(self, specs, kind):
        return {s.arg.name: s.target for s in specs if s.kind is kind}

    @property
    def parameters(self):
        """Names of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self):
        """Names of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self):
        """Names of the buffers that no state_dict holds."""
        return tuple(s.target for s in self.input_specs if s.kind is InputKind.BUFFER and not s.persistent)

    @property
    def lifted_tensor_constants(self):
        """Names of the tensors that are no state."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self):
        """Names of the objects of other classes."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self):
        """Names of the caller's inputs, and values of those that are constants."""
        return tuple(_name_or_value(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self):
        """Names of the caller's outputs, and values of those that are constants."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_name_or_value(s.arg) for s in self.output_specs if s.kind in kinds)

    @property
    def inputs_to_parameters(self):
        """{input: parameter}."""
        return self._by_name(self.input_specs, InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self):
        """{input: buffer}."""
        return self._by_name(self.input_specs, InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self):
        """{input: constant}."""
        return self._by_name(self.input_specs, InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self):
        """{input: object}."""
        return self._by_name(self.input_specs, InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self):
        """{output: buffer that it is the new value of}."""
        return self._by_name(self.output_specs, OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self):
        """{output: parameter that it is the new value of}."""
        return self._by_name(self.output_specs, OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self):
        """{output: input that it is the new value of}."""
        return self._by_name(self.output_specs, OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self):
        """Where gradients are, for programs with a backward; None."""
        loss, parameters, inputs = None, {}, {}
        for spec in self.output_specs:
            if spec.kind is OutputKind.LOSS_OUTPUT:
                loss = spec.arg.name
            elif spec.kind is OutputKind.GRADIENT_TO_PARAMETER:
                parameters[spec.arg.name] = spec.target
            elif spec.kind is OutputKind.GRADIENT_TO_USER_INPUT:
                inputs[spec.arg.name] = spec.target
        return None if loss is None else ExportBackwardSignature(parameters, inputs, loss)

    @property
    def assertion_dep_token(self):
        """No program has one: None."""
        return None

    @property
    def input_tokens(self):
        """Names of the inputs that order effects."""
        return tuple(s.arg.name for s in self.input_specs if s.kind is InputKind.TOKEN)

    @property
    def output_tokens(self):
        """Names of the outputs that order effects."""
        return tuple(s.arg.name for s in self.output_specs if s.kind is OutputKind.TOKEN)

    def replace_all_uses(self, old, new):
        """Follow a node that got another name."""
        assert isinstance(old, str) and isinstance(new, str)
        for spec in (*self.input_specs, *self.output_specs):
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs=False):
        """For GraphModule._set_replace_hook: f(old node, new name, user) follows what replaces an output (and an input)."""

        def hook(old, new, user):
            if user.op in ("output", "input") or replace_inputs and old.op == "placeholder":
                self.replace_all_uses(old.name, new)

        return hook

    def __str__(self):
        lines = ["", "# inputs", *map(str, self.input_specs), "", "# outputs", *map(str, self.output_specs), ""]
        return "\n".join(lines)
