"""Programs of files."""

import copy
import io
import json

import cresset
from cresset import _C
from cresset.jit._recursive import RecursiveScriptModule, _adopt

from ._read import read_program
from .exported_program import ExportedProgram
from .graph_signature import InputKind

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


class LoadedProgram(ExportedProgram):
    """A program of a .pt2 file. Its fx graph is made when it is asked for; the tensors are those of the graph of the IR (`ir_module`)."""

    def __init__(self, program, text=None, examples=None, config=None):
        self._program, self._object = program, _C._export_module(program)
        self._text, self._examples, self._config = text, examples, config

    def _read(self):
        """Make what ExportedProgram has of the file's text."""
        module, signature, ranges, calls, dialect = read_program(self._text)
        tensors = dict(self._object.named_parameters())
        for parameter in tensors.values():
            parameter._is_param = True
        tensors.update(self._object.named_buffers())
        hidden = {*signature.non_persistent_buffers, *signature.lifted_tensor_constants}
        state = {s.target: tensors[s.target] for s in signature.input_specs if s.kind in (InputKind.PARAMETER, InputKind.BUFFER) and s.target not in hidden}
        constants = {name: tensors[name] if name in tensors else _at(self._object, name) for name in hidden}
        places = {} if self._config is None else {name: json.dumps(entry) for name, entry in json.loads(self._config)["config"].items()}
        for name, place in places.items():  # further names of one tensor
            other = next((n for n in constants if places.get(n) == place), None)
            if name not in constants and other is not None:
                constants[name] = constants[other]
        self._as_read = str(module.graph)
        super().__init__(module, module.graph, signature, state, ranges, calls, None, constants, dialect=dialect)

    def __getattr__(self, name):
        if name in _PARTS:
            self._read()
            return self.__dict__[name]
        raise AttributeError(f"'ExportedProgram' object has no attribute '{name}'")

    @property
    def example_inputs(self):
        if self._example_inputs is None and self._examples:
            self._example_inputs = cresset.load(io.BytesIO(self._examples), weights_only=True)
            self._examples = None
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value):
        ExportedProgram.example_inputs.fset(self, value)

    def ir_module(self):
        """The program as a script module. It shares the weights with this object."""
        face = ExportedModule.__new__(ExportedModule)
        _adopt(face, self._object, None)
        face.__dict__["_program"] = self._program
        return face

    def is_changed(self):
        """Is the fx graph another one than the file's?"""
        return "_graph_module" in self.__dict__ and str(self.graph) != self._as_read

    def __deepcopy__(self, memo):
        """A program that knows of no file."""
        parts = copy.deepcopy([getattr(self, name) for name in _PARTS], memo)
        new = memo[id(self)] = ExportedProgram.__new__(ExportedProgram)
        new.__dict__.update(zip(_PARTS, parts))
        new._example_inputs = copy.deepcopy(self.example_inputs, memo)
        return new


_PARTS = (
    "_graph_module", "_graph_signature", "_state_dict", "_range_constraints", "_module_call_graph", "_example_inputs", "_constants", "_dialect", "_verifiers",
    "_opset_version",
)  # fmt: skip


def _at(c, path):
    for part in path.split("."):
        c = c.getattr(part) if isinstance(c, _C.ScriptModule) else getattr(c, part)
    return c
