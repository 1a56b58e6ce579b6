"""Exported programs in Python."""

import dataclasses
import enum

from cresset import _C
from cresset.jit._recursive import RecursiveScriptModule, _adopt

__all__ = ["ExportedProgram", "ExportedModule", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec"]


class InputKind(enum.Enum):
    USER_INPUT = "user_input"
    CONSTANT_INPUT = "constant_input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT_TENSOR = "constant_tensor"


class OutputKind(enum.Enum):
    USER_OUTPUT = "user_output"
    BUFFER_MUTATION = "buffer_mutation"
    PARAMETER_MUTATION = "parameter_mutation"
    USER_INPUT_MUTATION = "user_input_mutation"


@dataclasses.dataclass(frozen=True)
class InputSpec:
    """One input of the flat graph: its name there, and the attribute it stands for."""

    kind: InputKind
    arg: str
    target: str | None
    persistent: bool | None = None


@dataclasses.dataclass(frozen=True)
class OutputSpec:
    """One output of the flat graph; mutations are written to their target."""

    kind: OutputKind
    arg: str
    target: str | None


@dataclasses.dataclass(frozen=True)
class ExportGraphSignature:
    """What the inputs and outputs of a program's flat graph are."""

    input_specs: list
    output_specs: list

    def _inputs(self, kind, what):
        return tuple(getattr(s, what) for s in self.input_specs if s.kind is kind)

    @property
    def parameters(self):
        return self._inputs(InputKind.PARAMETER, "target")

    @property
    def buffers(self):
        return self._inputs(InputKind.BUFFER, "target")

    @property
    def non_persistent_buffers(self):
        return tuple(s.target for s in self.input_specs if s.kind is InputKind.BUFFER and not s.persistent)

    @property
    def lifted_tensor_constants(self):
        return self._inputs(InputKind.CONSTANT_TENSOR, "target")

    @property
    def user_inputs(self):
        return self._inputs(InputKind.USER_INPUT, "arg")

    @property
    def user_outputs(self):
        return tuple(s.arg for s in self.output_specs if s.kind is OutputKind.USER_OUTPUT)

    @property
    def inputs_to_parameters(self):
        return {s.arg: s.target for s in self.input_specs if s.kind is InputKind.PARAMETER}

    @property
    def inputs_to_buffers(self):
        return {s.arg: s.target for s in self.input_specs if s.kind is InputKind.BUFFER}

    @property
    def buffers_to_mutate(self):
        return {s.arg: s.target for s in self.output_specs if s.kind is OutputKind.BUFFER_MUTATION}


class ExportedModule(RecursiveScriptModule):
    """An exported program as a module: calls check the inputs against the sizes it was exported for."""

    def _take_methods(self):
        """Methods are not taken from the object: calls go through the checks."""

    def forward(self, *args, **kwargs):
        return _C._export_run(self._program, args, kwargs)

    @property
    def graph(self):
        return self._c._get_method("forward").graph

    @property
    def inlined_graph(self):
        return self.graph.copy()

    @property
    def code(self):
        return self._c._get_method("forward").code

    def train(self, mode=True):
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self):
        raise NotImplementedError("Calling eval() is not supported yet.")


class ExportedProgram:
    """A program of torch.export."""

    def __init__(self, program):
        self._program = program
        self._object = _C._export_module(program)

    def module(self):
        """The program as a module. It shares the weights with this object."""
        face = ExportedModule.__new__(ExportedModule)
        _adopt(face, self._object, None)
        face.__dict__["_program"] = self._program
        return face

    @property
    def graph(self):
        """The graph: `self`, then the inputs as the program takes them."""
        return self._object._get_method("forward").graph

    @property
    def graph_signature(self):
        inputs = [
            InputSpec(InputKind(kind), name, target or None, persistent if kind == "buffer" else None)
            for kind, name, target, persistent in _C._export_inputs(self._program)
        ]
        outputs = [
            OutputSpec(OutputKind(kind), name, target or None) for kind, name, target, _ in _C._export_outputs(self._program)
        ]
        return ExportGraphSignature(inputs, outputs)

    @property
    def range_constraints(self):
        """{symbol: (least, most)}; None where there is no bound."""
        return _C._export_ranges(self._program)

    @property
    def state_dict(self):
        """Parameters and persistent buffers by name."""
        hidden = set(self.graph_signature.non_persistent_buffers)
        tensors = dict(self._object.named_parameters())
        tensors.update((name, t) for name, t in self._object.named_buffers() if name not in hidden)
        return tensors

    @property
    def constants(self):
        """Tensors of the program that are no state, by name."""
        return {name: _at(self._object, name) for name in self.graph_signature.lifted_tensor_constants}

    def parameters(self):
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self):
        yield from self._object.named_parameters()

    def buffers(self):
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self):
        yield from self._object.named_buffers()

    @property
    def example_inputs(self):
        raise NotImplementedError("ExportedProgram.example_inputs: the inputs in a file are a pickle, which is not read.")

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def __str__(self):
        return f"ExportedProgram:\n{self.graph}\nRange constraints: {self.range_constraints}\n"


def _at(c, path):
    for part in path.split("."):
        c = c.getattr(part) if isinstance(c, _C.ScriptModule) else getattr(c, part)
    return c
