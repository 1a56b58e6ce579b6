"""Programs of files: their graph is that of the IR."""

from cresset import _C
from cresset.jit._recursive import RecursiveScriptModule, _adopt

from ._sizes import Symbol, ValueRanges, int_oo
from .exported_program import ExportedProgram
from .graph_signature import ConstantArgument, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument

__all__ = ["ExportedModule", "LoadedProgram"]


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


_INPUTS = {
    "user_input": InputKind.USER_INPUT, "constant_input": InputKind.USER_INPUT, "parameter": InputKind.PARAMETER, "buffer": InputKind.BUFFER,
    "constant_tensor": InputKind.CONSTANT_TENSOR,
}  # fmt: skip


def _input_spec(kind, name, target, persistent):
    argument = ConstantArgument(name, None) if kind == "constant_input" else TensorArgument(name)
    return InputSpec(_INPUTS[kind], argument, target or None, persistent if kind == "buffer" else None)


class LoadedProgram(ExportedProgram):
    """A program of a .pt2 file. `graph` is a graph of the IR; there is no graph_module, and it is not decomposed again."""

    def __init__(self, program):
        self._program = program
        self._object = _C._export_module(program)

    def module(self, check_guards=True):
        """The program as a module. It shares the weights with this object."""
        del check_guards
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
        inputs = [_input_spec(*one) for one in _C._export_inputs(self._program)]
        outputs = [OutputSpec(OutputKind[kind.upper()], TensorArgument(name), target or None) for kind, name, target, _ in _C._export_outputs(self._program)]
        return ExportGraphSignature(inputs, outputs)

    @property
    def range_constraints(self):
        """{symbol of a size: ValueRanges}"""
        limits = _C._export_ranges(self._program)
        return {Symbol(s): ValueRanges(-int_oo if least is None else least, int_oo if most is None else most) for s, (least, most) in limits.items()}

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

    def named_parameters(self):
        yield from self._object.named_parameters()

    def named_buffers(self):
        yield from self._object.named_buffers()

    @property
    def example_inputs(self):
        raise NotImplementedError("ExportedProgram.example_inputs: the inputs in a file are a pickle, which is not read.")

    def __getattr__(self, name):
        raise AttributeError(f"ExportedProgram: a program of a file has no '{name}'; it has module(), graph, graph_signature, state_dict, constants and range_constraints.")

    @property
    def graph_module(self):
        raise NotImplementedError("ExportedProgram.graph_module: a program of a file has a graph of the IR (graph), and no fx.GraphModule.")

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        raise NotImplementedError("ExportedProgram.run_decompositions: a program of a file has a graph of the IR; decompose before saving.")

    def __str__(self):
        return f"ExportedProgram:\n{self.graph}\nRange constraints: {self.range_constraints}\n"


def _at(c, path):
    for part in path.split("."):
        c = c.getattr(part) if isinstance(c, _C.ScriptModule) else getattr(c, part)
    return c
