"""Loading of .pt2 files."""

import dataclasses
import io
import os
import zipfile

import cresset
from cresset import _C
from cresset.utils import _pytree as pytree

from ._loaded import LoadedProgram
from ._loops_of_files import with_loops
from ._read import read_program
from ._read_tensors import read_tensors
from ._save import archive_bytes
from .exported_program import ExportedProgram

__all__ = ["ir_module", "load", "register_dataclass"]


def load(f, *, extra_files=None, expected_opset_version=None):
    """Read a program from a path or a file object. Nothing in the file is run.

    The result has the graph, the weights, and the ranges of sizes; `load(f).module()` is called as the exported module was.
    extra_files: a dict whose keys are names of texts that may be in the file; those that are there become its values.
    """
    del expected_opset_version
    source = f.read() if hasattr(f, "read") else os.fspath(f)
    text, examples, config = _entries(source, "/models/model.json", "/data/sample_inputs/model.pt", "/data/constants/model_constants_config.json")
    try:
        program = LoadedProgram(_C._export_load(with_loops(source)), text, examples, config)
    except RuntimeError as problem:  # graphs of the IR do not have all that fx graphs have
        if "not supported" not in str(problem) or text is None:
            raise
        program = _without_ir(source, text, examples)
    if extra_files:
        _read_extra(source, extra_files)
    return program


def _without_ir(source, text, examples):
    """The program of a file that cannot be a graph of the IR."""
    module, signature, ranges, calls, dialect = read_program(text)
    weights, constants = (read_tensors(lambda end: _entries(source, end)[0], kind) for kind in ("weights", "constants"))
    given = cresset.load(io.BytesIO(examples), weights_only=True) if examples else None
    return ExportedProgram(module, module.graph, signature, weights, ranges, calls, given, constants, dialect=dialect)


def _entries(source, *ends):
    """The bytes of the archive's entries that end so; None for those that are not there."""
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            names = archive.namelist()
            return [next((archive.read(n) for n in names if n.endswith(end)), None) for end in ends]
    except (OSError, zipfile.BadZipFile):
        return [None] * len(ends)  # the reader of the IR says what is wrong


def _read_extra(source, extra_files):
    """Put the texts that were saved beside the program into the dict, where it asks for them."""
    with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
        texts = {path.partition("/extra/")[2]: path for path in archive.namelist() if "/extra/" in path}
        for name in extra_files:
            if name in texts:
                extra_files[name] = archive.read(texts[name]).decode()


def ir_module(program):
    """A program as a script module, a graph of the IR: what engines and lowering take. It has copies of the tensors, unless the program is of a file
    and its graph is the file's."""
    if not isinstance(program, LoadedProgram) or program.is_changed():
        program = LoadedProgram(_C._export_load(with_loops(archive_bytes(program))))
    return program.ir_module()


def register_dataclass(cls, *, serialized_type_name=None):
    """Instances of a dataclass are containers among inputs and outputs. AssertionError for other classes."""
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
