"""Damaged files and texts of every kind: an error of the documented classes, in little memory; the process goes on."""

import contextlib
import io
import pickle
import random
import struct
import tracemalloc
import zipfile

import cresset
import cresset.export
import pytest
from cresset import nn


def saved(what, **options):
    out = io.BytesIO()
    cresset.save(what, out, **options)
    return out.getvalue()


def script():
    out = io.BytesIO()
    cresset.jit.save(cresset.jit.script(nn.Sequential(nn.Linear(3, 2), nn.ReLU())), out)
    return out.getvalue()


def safetensors(header, data=bytes(8)):
    return struct.pack("<Q", len(header)) + header + data


def load(content):
    return cresset.load(io.BytesIO(content))


def compile_schema(text):
    return cresset._C.parse_schema(text.decode("utf8", "replace"))


CONTENT = {"w": cresset.ones(2, 3), "h": cresset.ones(2, dtype=cresset.bfloat16), "n": [1, 2.5, "x", None, (True, b"b")]}
LOAD_ERRORS = (pickle.UnpicklingError, RuntimeError, EOFError)
TEXT_ERRORS = (RuntimeError, ValueError, TypeError, IndexError)
# By kind: what is damaged, what reads it, what that may raise.
KINDS = {
    "checkpoint": (lambda: saved(CONTENT), load, LOAD_ERRORS),
    "legacy": (lambda: saved(CONTENT, _use_new_zipfile_serialization=False), load, LOAD_ERRORS),
    "safetensors": (lambda: safetensors(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"k":"v"}}'), load, LOAD_ERRORS),
    "archive": (script, lambda b: cresset.jit.load(io.BytesIO(b)), (RuntimeError, ValueError)),
    "schema": (lambda: b'a::b(Tensor(a!) x, int[2] y=[1,2], str s="x", *, Device? z=None) -> (Tensor(a!), int[])', compile_schema, TEXT_ERRORS),
    "einsum": (lambda: b"...ij, jk -> ...ik", lambda b: cresset.einsum(b.decode("utf8", "replace"), cresset.ones(2, 3), cresset.ones(3, 2)), TEXT_ERRORS),
    "input specification": (lambda: b"[(1,3,8);(2,3,16);(4,3,32)]@f16%nhwc", lambda b: cresset._C._lowering_input(b.decode("utf8", "replace")), (ValueError,)),
    "type": (lambda: b"List[Dict[str, Tuple[int, Optional[Tensor]]]]", lambda b: cresset._C._jit_parse_type(b.decode("utf8", "replace")), TEXT_ERRORS),
}  # fmt: skip
PIECES = [b"\0", b"\xff", b"(", b"]", b",", b":", b"-1", b"9223372036854775807", b"18446744073709551616", b"...", b"None", b'"', b"\xc3\xa9", b"@", b"(" * 5000]


def damaged(rng, content):
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, how = rng.randrange(len(content) or 1), rng.randrange(6)
        if how == 0:
            content[at : at + 1] = [rng.randrange(256)]
        elif how == 1:
            del content[at : at + rng.choice((1, 4, 30))]
        elif how == 2:
            content[at:at] = rng.choice(PIECES)
        elif how == 3:
            content[at:at] = content[at : at + rng.choice((1, 8, 64))] * rng.choice((1, 40))
        elif how == 4:
            content[at : at + 4] = struct.pack("<I", rng.choice((0, 2**31, 2**32 - 1, 70000)))
        else:
            content[at : at + 8] = struct.pack("<Q", rng.choice((0, 2**63 - 1, 2**64 - 1, 2**40)))
    return bytes(content)


def inside(rng, content):
    """A zip file with one damaged record, whose checksum is right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = rng.choice([n for n in names if n.endswith((".pkl", ".py"))])
        for n in names:
            new.writestr(n, damaged(rng, old.read(n)) if n == chosen else old.read(n))
    return out.getvalue()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_damage_raises_documented_errors(kind):
    make, read, errors = KINDS[kind]
    whole = make()
    read(whole)
    is_zip = zipfile.is_zipfile(io.BytesIO(whole))
    for number in range(150):
        rng = random.Random(f"{kind} {number}")
        content = inside(rng, whole) if is_zip and number % 3 else damaged(rng, whole)
        with contextlib.suppress(*errors):
            read(content)


def persistent(view):
    """A legacy checkpoint with a storage that is a part of another one."""
    def text(s):
        return b"X" + struct.pack("<I", len(s)) + s

    storage = b"ctorch\nFloatStorage\n"
    saved_id = b"(" + text(b"storage") + storage + text(b"0") + text(b"cpu") + b"K\x02" + view + b"tQ"
    head = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)
    return head + b"\x80\x02" + saved_id + b"." + pickle.dumps(["0"], 2) + struct.pack("<q2f", 2, 1, 2)


def test_parts_of_storages_that_are_no_parts():
    assert load(persistent(b"(X\x01\x00\x00\x00vK\x00K\x01t")).nbytes() == 4
    for view in (b"K\x01", b"]", b"(K\x01K\x02t", b"(]K\x00K\x01t", b"(X\x01\x00\x00\x00vX\x01\x00\x00\x00vK\x01t", b"(X\x01\x00\x00\x00vK\x00Nt"):
        with pytest.raises(cresset.serialization.FileError, match="must have a key, an offset and a number of elements"):
            load(persistent(view))
    with pytest.raises(cresset.serialization.FileError, match="reaches beyond it"):
        load(persistent(b"(X\x01\x00\x00\x00vK\x01K\x02t"))


def test_a_dtype_that_is_no_text():
    with pytest.raises(cresset.serialization.FileError, match=r"unknown dtype \[1\]"):
        load(safetensors(b'{"a":{"dtype":[1],"shape":[2],"data_offsets":[0,8]}}'))


def test_a_table_that_promises_more_than_the_file_asks_for_no_memory():
    content = bytearray(saved(CONTENT))
    at = content.index(b"PK\x01\x02")
    assert b"data.pkl" in content[at : at + 80]
    content[at + 20 : at + 28] = struct.pack("<II", 900_000_000, 900_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(cresset.serialization.FileError):
            load(bytes(content))
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_a_value_for_an_attribute_that_the_class_has_not():
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(script())) as old, zipfile.ZipFile(out, "w") as new:
        for n in old.namelist():
            content = old.read(n)
            new.writestr(n, content.replace(b"training", b"trainin?") if n.endswith("data.pkl") else content)
    with pytest.raises(RuntimeError, match=r"has no attribute 'trainin\?', for which the file has a value"):
        cresset.jit.load(io.BytesIO(out.getvalue()))
