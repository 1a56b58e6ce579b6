"""save and load of safetensors files: state dicts, nested containers, damaged files."""

import fcntl
import io
import json
import os
import pickle
import subprocess
import sys
from collections import OrderedDict

import cresset
import pytest
from cresset import nn, optim
from cresset.serialization._safetensors import write_safetensors


def write(obj, f):
    """As save writes a path that ends in .safetensors."""
    write_safetensors(obj, f.write)


def through(obj):
    f = io.BytesIO()
    write(obj, f)
    f.seek(0)
    return cresset.load(f)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and cresset.equal(a, b)


DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def test_state_dict_file(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    path = tmp_path / "model.safetensors"
    cresset.save(model.state_dict(), path)
    state = cresset.load(path)
    assert type(state) is OrderedDict and list(state) == list(model.state_dict())
    assert state._metadata == model.state_dict()._metadata
    assert all(same(v, model.state_dict()[k]) for k, v in state.items())
    other = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    other.load_state_dict(state)
    assert cresset.equal(other[0].weight, model[0].weight)
    assert os.listdir(tmp_path) == ["model.safetensors"]
    cresset.save(model.state_dict(), str(path))


def test_the_bytes_are_safetensors():
    f = io.BytesIO()
    write({"b": cresset.tensor([1, 2], dtype=cresset.uint8), "a": cresset.tensor([[1.0, 2.0]])}, f)
    data = f.getvalue()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert size % 8 == 0 and list(header) == ["__metadata__", "b", "a"]
    # the wider dtype comes first, so that both are aligned
    assert header["a"] == {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}
    assert header["b"] == {"dtype": "U8", "shape": [2], "data_offsets": [8, 10]}
    assert data[8 + size :] == b"\x00\x00\x80?\x00\x00\x00@\x01\x02"


def test_a_file_written_by_hand():
    header = json.dumps({"x": {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    loaded = cresset.load(io.BytesIO(len(header).to_bytes(8, "little") + header + b"\x05\0\0\0\x06\0\0\0"))
    assert type(loaded) is dict and loaded["x"].tolist() == [5, 6] and loaded["x"].dtype == cresset.int32


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name):
    dtype = getattr(cresset, name)
    value = cresset.tensor([0, 1, 1]).to(dtype)
    assert same(through({"x": value})["x"], value)


def test_shapes_and_layouts():
    base = cresset.arange(12.0).reshape(3, 4)
    tensors = {
        "scalar": cresset.tensor(3.5),
        "empty": cresset.empty(0, 3),
        "t": base.t(),
        "rows": base[::2],
        "wide": base[:1].expand(5, 4),
    }
    loaded = through(tensors)
    assert list(loaded) == list(tensors) and all(
        same(loaded[k].contiguous(), v.contiguous()) for k, v in tensors.items()
    )


def test_loaded_tensors_are_independent_and_writable():
    loaded = through({"a": cresset.zeros(2), "b": cresset.zeros(2)})
    loaded["a"].add_(1)
    assert loaded["b"].tolist() == [0.0, 0.0] and not loaded["a"].requires_grad


def test_optimizer_and_checkpoint():
    model = nn.Linear(2, 2)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    model(cresset.ones(1, 2)).sum().backward()
    optimizer.step()
    checkpoint = {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "best": float("inf"), "note": None,
        "history": [1.5, (2, True)], 7: "seven", (1, "k"): cresset.float16, "device": cresset.device("cpu"),
    }  # fmt: skip
    loaded = through(checkpoint)
    assert list(loaded) == list(checkpoint)
    assert {k: v for k, v in loaded.items() if k not in ("model", "optimizer")} == {
        k: v for k, v in checkpoint.items() if k not in ("model", "optimizer")
    }
    assert type(loaded["model"]) is OrderedDict and loaded["model"]._metadata == model.state_dict()._metadata
    assert loaded["optimizer"]["param_groups"] == checkpoint["optimizer"]["param_groups"]
    fresh = optim.Adam(model.parameters())
    fresh.load_state_dict(loaded["optimizer"])
    p = model.weight
    assert (
        cresset.equal(fresh.state[p]["exp_avg"], optimizer.state[p]["exp_avg"]) and fresh.param_groups[0]["lr"] == 0.1
    )


def test_one_tensor_stays_one_tensor_in_nested_objects():
    shared = cresset.ones(2)
    loaded = through({"list": [shared, shared], "other": cresset.ones(2)})
    assert loaded["list"][0] is loaded["list"][1] and loaded["other"] is not loaded["list"][0]


def test_names_that_could_collide():
    obj = {"a": {"b": cresset.zeros(1)}, "a.b": cresset.ones(1), "__metadata__": cresset.full((1,), 2.0)}
    loaded = through(obj)
    assert loaded["a"]["b"].item() == 0 and loaded["a.b"].item() == 1 and loaded["__metadata__"].item() == 2
    assert through({"__metadata__": cresset.ones(1)})["__metadata__"].item() == 1
    assert same(through(cresset.ones(3)), cresset.ones(3)) and through({}) == {}


@pytest.mark.parametrize(
    "obj, words",
    [
        (nn.Linear(1, 1), r"got Linear\. Save module.state_dict\(\)"),
        ({"a": {"b": object()}}, "got object at 'a.b'"),
        ({object(): 1}, "got key object"),
    ],
)
def test_objects_that_are_refused(obj, words):
    with pytest.raises(TypeError, match=words):
        write(obj, io.BytesIO())


def test_refused_targets(tmp_path):
    with pytest.raises(NotImplementedError, match="'a' is on the meta device"):
        cresset.save({"a": cresset.ones(1, device="meta")}, tmp_path / "x.safetensors")


def test_a_refused_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.safetensors"
    cresset.save({"a": cresset.ones(1)}, path)
    with pytest.raises(TypeError):
        cresset.save({"a": object()}, path)
    assert cresset.load(path)["a"].item() == 1.0 and os.listdir(tmp_path) == ["x.safetensors"]


def test_damaged_files():
    f = io.BytesIO()
    write({"a": cresset.ones(3)}, f)
    data = f.getvalue()
    with pytest.raises(EOFError, match="Ran out of input"):
        cresset.load(io.BytesIO(b""))
    for bad, words in (
        (data[:4], "its pickle is damaged"),
        (data[:20], "it ends within the header"),
        (data[:-1], "it ends within the data of 'a'"),
        (data + b"x", "there is more data than the header describes"),
        (data.replace(b"F32", b"F64"), "'a' has 12 bytes, its shape .3. needs 24"),
        (data.replace(b"F32", b"X32"), "unknown dtype 'X32'"),
        (data.replace(b"[3]", b"-33"), "the entry 'a' is incomplete"),
        (data.replace(b"[0,12]", b"[12,0]"), "'a' has -12 bytes"),
        (data.replace(b"[0,12]", b"[1,13]"), "it ends within the data of 'a'"),
        (data.replace(b"[0,12]", b"[1,13]") + b"x", "begins at byte 1, not 0"),
        (b"PK\x03\x04" + data, "failed finding central directory"),
        (b"\xff" * 40, "Unsupported operand 255"),
        (data[:8] + b"{" * (len(data) - 8), "the header is not JSON"),
    ):
        with pytest.raises(pickle.UnpicklingError, match=words):
            cresset.load(io.BytesIO(bad))


def structured(text, **entries):
    """A file without tensors whose metadata are the given texts."""
    header = json.dumps({"__metadata__": {"cresset.structure": text, **{f"cresset.{k}": v for k, v in entries.items()}}}).encode()
    return io.BytesIO(len(header).to_bytes(8, "little") + header)


@pytest.mark.parametrize("file, words", [
    (structured('{"dtype": "load"}'), "unknown dtype 'load'"),
    (structured('{"dtype": "__builtins__"}'), "unknown dtype"),
    (structured('{"dtype": ["float32"]}'), "damaged"),
    (structured('{"tensor": "missing"}'), "its structure is damaged"),
    (structured('{"dict": 3}'), "its structure is damaged"),
    (structured('{"dict": [[{"list": []}, 1]]}'), "its structure is damaged"),
    (structured('{"float": "one"}'), "its structure is damaged"),
    (structured('{"list": ' * 5000 + "[]" + "}" * 5000), "is damaged"),
    (structured('{"list": ['), "its metadata is damaged"),
    (structured("null", complex128="[3]"), "its metadata is damaged"),
    (structured("null", devices="[]", versions="3"), "its structure is damaged"),
    (structured("null", devices="3"), "its metadata is damaged"),
    (structured('{"device": "../x"}'), "don.t know how to restore data location"),
])  # fmt: skip
def test_damaged_structures_raise_one_class(file, words):
    with pytest.raises(RuntimeError, match=words):
        cresset.load(file)


def test_a_header_that_promises_more_than_there_is_asks_for_no_memory():
    huge = json.dumps({"a": {"dtype": "U8", "shape": [1 << 45], "data_offsets": [0, 1 << 45]}}).encode()
    with pytest.raises(RuntimeError, match="it ends within the data of 'a'"):
        cresset.load(io.BytesIO(len(huge).to_bytes(8, "little") + huge))


def test_device_names_that_are_paths_load_no_library(tmp_path):
    # A library in the path's folder would be loaded by a plain name; paths that lead out of it are no names.
    (tmp_path / "plugins").mkdir()
    for name in ("evil", "plugins/libcresset_evil"):
        (tmp_path / f"{name}.so").write_bytes(b"not a library")
    code = "import cresset, sys\nfor n in sys.argv[1:]:\n  try: cresset.device(n)\n  except RuntimeError as e: print('does not load' in str(e))"
    names = ["evil", "../evil", str(tmp_path / "evil"), "./evil"]
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True,
                          env={**os.environ, "CRESSET_BACKEND_PATH": str(tmp_path / "plugins")})  # fmt: skip
    assert done.stdout.split() == ["True", "False", "False", "False"]


def test_leftovers_of_killed_saves_go_with_the_next(tmp_path):
    path = tmp_path / "x"
    stale, young, other = (tmp_path / f"x.{digits}.part" for digits in ("0123456789abcdef", "0123456789abcdee", "notours"))
    for file in (stale, young, other):
        file.write_bytes(b"half")
    os.utime(stale, (0, 0))
    os.utime(other, (0, 0))
    cresset.save({"a": cresset.ones(1)}, path)
    assert sorted(os.listdir(tmp_path)) == ["x", young.name, other.name]
    os.utime(young, (0, 0))
    with open(young, "rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)  # still being written
        cresset.save({"a": cresset.ones(1)}, path)
    assert young.exists()


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match=r"^Parent directory .* does not exist\.$"):
        cresset.save({"a": cresset.ones(1)}, tmp_path / "missing" / "x")
    with pytest.raises(RuntimeError, match=r"save: .* cannot be written: Is a directory\."):
        cresset.save({"a": cresset.ones(1)}, tmp_path)
    cresset.save({"a": cresset.ones(1)}, os.devnull)  # written in place
    assert not os.path.isfile(os.devnull) and os.listdir(tmp_path) == []


def test_readers_without_readinto():
    class OnlyRead:
        def __init__(self, data):
            file = io.BytesIO(data)
            self.read, self.seek, self.tell = file.read, file.seek, file.tell

    f = io.BytesIO()
    write({"a": cresset.arange(4.0)}, f)
    assert cresset.load(OnlyRead(f.getvalue()))["a"].tolist() == [0, 1, 2, 3]


def test_map_location():
    assert cresset.load(io.BytesIO(saved({"a": cresset.ones(2)})), map_location="cpu")["a"].device.type == "cpu"
    assert cresset.load(io.BytesIO(saved(cresset.ones(2))), map_location=cresset.device("meta")).is_meta
    assert cresset.load(io.BytesIO(saved({"a": cresset.ones(2)})), map_location="meta")["a"].is_meta


def saved(obj):
    f = io.BytesIO()
    write(obj, f)
    return f.getvalue()


def test_mapped_files(tmp_path):
    path = tmp_path / "x.safetensors"
    cresset.save({"a": cresset.arange(6.0).reshape(2, 3), "e": cresset.empty(0), "b": cresset.tensor([1, 2])}, path)
    loaded = cresset.load(path, mmap=True)
    assert loaded["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and loaded["b"].tolist() == [1, 2] and loaded["e"].shape == (0,)
    loaded["a"][0, 0] = 9
    assert cresset.load(path)["a"][0, 0] == 0 and not loaded["a"].untyped_storage().resizable()
    # data that is not aligned
    header = json.dumps({"x": {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}}).encode() + b" "
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\x05\0\0\0\x06\0\0\0")
    assert cresset.load(path, mmap=True)["x"].tolist() == [5, 6]
