"""What fuzzing found and reached (tests/fuzz/corpus) through the ordinary build: a clear error, or a sound graph or module."""

import io
import zipfile
from pathlib import Path

import pytest

import cresset
from cresset import _C

CORPUS = Path(__file__).resolve().parents[1] / "fuzz/corpus"
ERRORS = (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError, MemoryError)
TARGETS = {}


def target(function):
    TARGETS[function.__name__] = function
    return function


@target
def ir_text(data):
    graph = _C.parse_ir(data.decode("utf-8", "surrogateescape"))
    graph.lint()
    printed = str(graph)
    try:
        assert str(_C.parse_ir(printed)) == printed
    except RuntimeError as e:
        raise AssertionError(f"what was printed is not read back: {e}") from e


@target
def script_source(data):
    for function in _C.CompilationUnit(data.decode("utf-8", "surrogateescape")).get_functions():
        function.graph.lint()


def archive_of(data):
    """As tests/fuzz/bundle.cpp: entries under lines `=== name` become a zip file."""
    if not data.startswith(b"=== "):
        return data
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for part in (b"\n" + data).split(b"\n=== ")[1:]:
            name, _, content = part.partition(b"\n")
            name = name.decode("latin-1")
            if name and name not in z.namelist():
                z.writestr(name, content)
    return out.getvalue()


@target
def archive(data):
    cresset.jit.load(io.BytesIO(archive_of(data)))


@target
def exported_program(data):
    cresset.export.load(io.BytesIO(archive_of(data)))


def test_every_target_has_a_corpus():
    assert {folder.name for folder in CORPUS.iterdir()} == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_corpus(name):
    files, fine = sorted((CORPUS / name).iterdir()), 0
    for file in files:
        try:
            TARGETS[name](file.read_bytes())
            fine += 1
        except ERRORS:
            continue
    assert fine > 3
