"""`cresset.export`: modules as programs: flat graphs of operators with their tensors, that can be changed, saved, and loaded elsewhere."""

from cresset._homes import settle

from . import dynamic_shapes, exported_program, graph_signature
from ._export import export
from ._load import load, register_dataclass
from ._save import save
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs", "Constraint", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram", "FlatArgsAdapter", "InputKind", "InputSpec", "ModuleCallEntry",
    "ModuleCallSignature", "OutputKind", "OutputSpec", "ShapesCollection", "UnflattenedModule", "default_decompositions", "dims", "dynamic_shapes", "export",
    "exported_program", "graph_signature", "load", "register_dataclass", "save", "unflatten",
]  # fmt: skip

settle(globals())
