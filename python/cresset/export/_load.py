"""Loading of .pt2 files."""

import dataclasses
import os

from cresset import _C
from cresset.utils import _pytree as pytree

from ._loaded import LoadedProgram
from ._save import archive_bytes

__all__ = ["ir_module", "load", "register_dataclass"]


def load(f, *, extra_files=None, expected_opset_version=None):
    """Read a program from a path or a file object. Nothing in the file is run.

    The result has the graph, the weights, and the ranges of sizes; `load(f).module()` is called as the exported module was.
    """
    del expected_opset_version
    if extra_files:
        raise NotImplementedError("export.load: extra_files are not read.")
    source = f.read() if hasattr(f, "read") else os.fspath(f)
    return LoadedProgram(_C._export_load(source))


def ir_module(program):
    """A program as a script module, a graph of the IR: what engines and lowering take. It has copies of the tensors, unless the program is of a file."""
    if not isinstance(program, LoadedProgram):
        program = LoadedProgram(_C._export_load(archive_bytes(program)))
    return program.module()


def register_dataclass(cls, *, serialized_type_name=None):
    """Instances of a dataclass are containers among inputs and outputs. AssertionError for other classes."""
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
