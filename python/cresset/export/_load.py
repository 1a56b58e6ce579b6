"""Loading of .pt2 files."""

import dataclasses
import io
import os
import zipfile

from cresset import _C
from cresset.utils import _pytree as pytree

from ._loaded import LoadedProgram
from ._loops_of_files import with_loops
from ._save import archive_bytes

__all__ = ["ir_module", "load", "register_dataclass"]


def load(f, *, extra_files=None, expected_opset_version=None):
    """Read a program from a path or a file object. Nothing in the file is run.

    The result has the graph, the weights, and the ranges of sizes; `load(f).module()` is called as the exported module was.
    extra_files: a dict whose keys are names of texts that may be in the file; those that are there become its values.
    """
    del expected_opset_version
    source = f.read() if hasattr(f, "read") else os.fspath(f)
    program = LoadedProgram(_C._export_load(with_loops(source)))
    if extra_files:
        _read_extra(source, extra_files)
    return program


def _read_extra(source, extra_files):
    """Put the texts that were saved beside the program into the dict, where it asks for them."""
    with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
        texts = {path.partition("/extra/")[2]: path for path in archive.namelist() if "/extra/" in path}
        for name in extra_files:
            if name in texts:
                extra_files[name] = archive.read(texts[name]).decode()


def ir_module(program):
    """A program as a script module, a graph of the IR: what engines and lowering take. It has copies of the tensors, unless the program is of a file."""
    if not isinstance(program, LoadedProgram):
        program = LoadedProgram(_C._export_load(with_loops(archive_bytes(program))))
    return program.module()


def register_dataclass(cls, *, serialized_type_name=None):
    """Instances of a dataclass are containers among inputs and outputs. AssertionError for other classes."""
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
