"""`cresset.export`: a module's forward as a graph of operators, and programs that torch.export.save has written (.pt2)."""

import os

from cresset import _C

from . import dynamic_shapes, exported_program, graph_signature
from ._program import LoadedProgram
from ._trace import export
from .dynamic_shapes import Dim, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec

__all__ = [
    "export", "load", "Dim", "dims", "ExportedProgram", "ExportBackwardSignature", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec",
    "ModuleCallEntry", "ModuleCallSignature", "default_decompositions", "dynamic_shapes", "exported_program", "graph_signature",
]  # fmt: skip


def load(f, *, extra_files=None, expected_opset_version=None):
    """Read a program from a path or a file object. Nothing in the file is run.

    The result has the graph, the weights, and the ranges of sizes; `load(f).module()` is called as the exported module was.
    """
    del expected_opset_version
    if extra_files:
        raise NotImplementedError("export.load: extra_files are not read.")
    source = f.read() if hasattr(f, "read") else os.fspath(f)
    return LoadedProgram(_C._export_load(source))
