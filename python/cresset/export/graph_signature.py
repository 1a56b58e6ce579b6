"""What the inputs and outputs of an exported program's flat graph are."""

import dataclasses
import enum

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec",
    "SymBoolArgument", "SymFloatArgument", "SymIntArgument", "TensorArgument", "TokenArgument",
]  # fmt: skip


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token that orders effects, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A number, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A truth, by the name of its node."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a registered class, by the name of its node."""

    name: str
    class_fqn: str
    fake_val: object = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that is no tensor; `name` is that of the placeholder, "" in outputs."""

    name: str
    value: object


class InputKind(enum.Enum):
    """What an input of the flat graph stands for."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """What an output of the flat graph stands for."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


@dataclasses.dataclass
class InputSpec:
    """One input of the flat graph: what it is, its argument there, and the attribute it stands for."""

    kind: InputKind
    arg: object
    target: str | None
    persistent: bool | None = None

    def __post_init__(self):
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self):
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """One output of the flat graph; mutations are written to their target."""

    kind: OutputKind
    arg: object
    target: str | None

    def __str__(self):
        return f"{self.arg.name}: {self.kind.name}" + ("" if self.target is None else f" target='{self.target}'")


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs of a joint graph are gradients of which inputs."""

    gradients_to_parameters: dict
    gradients_to_user_inputs: dict
    loss_output: str


def _shown(arg):
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of a program's flat graph, in their order: parameters, buffers, constants, user inputs; mutations, user outputs."""

    input_specs: list
    output_specs: list

    def _targets(self, kind):
        return tuple(s.target for s in self.input_specs if s.kind is kind)

    def _inputs_to(self, kind):
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind}

    def _outputs_to(self, kind):
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind}

    @property
    def parameters(self):
        """Their paths in the module."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self):
        """Their paths in the module."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self):
        """Paths of the buffers that are not in the state."""
        return tuple(s.target for s in self.input_specs if s.kind is InputKind.BUFFER and not s.persistent)

    @property
    def lifted_tensor_constants(self):
        """Their names in `constants`."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self):
        """Their names in `constants`."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self):
        """Names of nodes; the values of those that are no tensors."""
        return tuple(_shown(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self):
        """Names of nodes; the values of those that are no tensors."""
        return tuple(_shown(s.arg) for s in self.output_specs if s.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT))

    @property
    def inputs_to_parameters(self):
        """{node: path}"""
        return self._inputs_to(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self):
        """{node: path}"""
        return self._inputs_to(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self):
        """{node: name}"""
        return self._inputs_to(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self):
        """{node: name}"""
        return self._inputs_to(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self):
        """{node of the new value: path}"""
        return self._outputs_to(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self):
        """{node of the new value: path}"""
        return self._outputs_to(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self):
        """{node of the new value: the input's node}"""
        return self._outputs_to(OutputKind.USER_INPUT_MUTATION)

    @property
    def input_tokens(self):
        """Names of nodes."""
        return tuple(s.arg.name for s in self.input_specs if s.kind is InputKind.TOKEN)

    @property
    def output_tokens(self):
        """Names of nodes."""
        return tuple(s.arg.name for s in self.output_specs if s.kind is OutputKind.TOKEN)

    @property
    def backward_signature(self):
        """ExportBackwardSignature of a joint graph, or None."""
        loss = next((s.arg.name for s in self.output_specs if s.kind is OutputKind.LOSS_OUTPUT), None)
        if loss is None:
            return None
        to_parameters, to_inputs = self._outputs_to(OutputKind.GRADIENT_TO_PARAMETER), self._outputs_to(OutputKind.GRADIENT_TO_USER_INPUT)
        return ExportBackwardSignature(to_parameters, to_inputs, loss)

    @property
    def assertion_dep_token(self):
        """None: assertions are kept by their position."""
        return None

    def replace_all_uses(self, old, new):
        """A node has another name now."""
        for spec in (*self.input_specs, *self.output_specs):
            if getattr(spec.arg, "name", None) == old:
                spec.arg.name = new
            if isinstance(spec, OutputSpec) and spec.kind is OutputKind.USER_INPUT_MUTATION and spec.target == old:
                spec.target = new

    def get_replace_hook(self, replace_inputs=False):
        """A hook for GraphModule._set_replace_hook that keeps the signature right."""

        def replace(old, new, user):
            if user.op == "output":
                self.replace_all_uses(old.name, new)
            elif replace_inputs and old.op == "placeholder":
                self.replace_all_uses(old.name, new)

        return replace

    def __str__(self):
        lines = ["", "# inputs", *map(str, self.input_specs), "", "# outputs", *map(str, self.output_specs), ""]
        return "\n".join(lines)
