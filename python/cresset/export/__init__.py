"""`cresset.export`: programs that torch.export.save has written (.pt2), as modules with graphs of the IR."""

import os

from cresset import _C

from ._program import ExportedProgram, ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec

__all__ = ["load", "ExportedProgram", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec"]


def load(f, *, extra_files=None, expected_opset_version=None):
    """Read a program from a path or a file object. Nothing in the file is run.

    The result has the graph, the weights, and the ranges of sizes; `load(f).module()` is called as the exported module was.
    """
    del expected_opset_version
    if extra_files:
        raise NotImplementedError("export.load: extra_files are not read.")
    source = f.read() if hasattr(f, "read") else os.fspath(f)
    return ExportedProgram(_C._export_load(source))
