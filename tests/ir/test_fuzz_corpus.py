"""What fuzzing found and reached (tests/fuzz/corpus) through the ordinary build: a clear error, or a sound graph or module."""

import functools
import io
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest

import cresset
from cresset import _C

CORPUS = Path(__file__).resolve().parents[1] / "fuzz/corpus"
ERRORS = (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError, MemoryError)
TARGETS = {}
COMMAND = Path(__file__).resolve().parents[2] / "build/dev/bin/cresset"


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


@target
def pickle(data):
    entries = {"data.pkl": data, "constants.pkl": b"\x80\x02).", "version": b"3\n"}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, content in entries.items():
            z.writestr(f"a/{name}", content)
    with pytest.raises(ERRORS):  # no pickle of the corpus is a module
        cresset.jit.load(out)


@target
def schema_text(data):
    printed = _C._parse_schema(data.decode("utf-8", "surrogateescape"))
    assert _C._parse_schema(printed) == printed


@target
def names(data):
    text = data.decode("utf-8", "surrogateescape")
    tensors = [cresset.ones(2, 3), cresset.ones(3, 2), cresset.ones(2, 2, 3)]
    for attempt in [lambda: cresset.device(text), *(lambda n=n: cresset.einsum(text, *tensors[:n]) for n in (1, 2, 3))]:
        try:
            attempt()
        except ERRORS:
            continue


@target
def safetensors(data):
    cresset.load(io.BytesIO(data))


@target
def npy(data):
    with tempfile.NamedTemporaryFile(suffix=".npy") as f:
        f.write(data)
        f.flush()
        done = subprocess.run([COMMAND, "run", identity(), "-i", f.name], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    if done.returncode:
        raise ValueError(done.stderr)


@functools.cache
def identity():
    """A script that gives its tensor back."""
    folder = tempfile.mkdtemp()
    cresset.jit.trace(cresset.nn.Identity(), (cresset.ones(2),)).save(f"{folder}/identity.pt")
    return f"{folder}/identity.pt"


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
    assert fine > 0
