"""save and load of checkpoints: what comes back, sharing, targets, options."""

import collections
import contextlib
import copy
import gzip
import io
import mmap
import os
import pickle
import sys
import zipfile

import cresset
import pytest
from cresset import nn, serialization

FORMS = [True, False]


def through(obj, zipped=True, **options):
    f = io.BytesIO()
    cresset.save(obj, f, _use_new_zipfile_serialization=zipped)
    f.seek(0)
    return cresset.load(f, **options)


@pytest.mark.parametrize("zipped", FORMS)
def test_storages_stay_shared(zipped):
    x = cresset.arange(12.0).reshape(3, 4)
    state = through({"x": x, "t": x.t(), "row": x[1], "other": x.clone(), "s": x.storage()}, zipped)
    assert state["x"].data_ptr() == state["t"].data_ptr() and state["t"].stride() == (1, 4)
    state["x"].fill_(7)
    assert state["row"].tolist() == [7] * 4 and state["other"][0, 1] == 1 and state["s"].tolist() == [7] * 12
    assert state["row"].storage_offset() == 4


@pytest.mark.parametrize("zipped", FORMS)
def test_subclasses_attributes_and_leaves(zipped):
    with serialization.safe_globals([Noted]):
        x = cresset.ones(2, requires_grad=True).as_subclass(Noted)
        x.note, x.slot = {"a": [1]}, 3
        back = through(x, zipped)
    assert type(back) is Noted and back.note == {"a": [1]} and back.slot == 3 and back.is_leaf and back.requires_grad
    p = nn.Parameter(cresset.ones(1))
    p.kind = "bias"
    assert through(p, zipped).kind == "bias" and type(through(p, zipped)) is nn.Parameter


class Noted(cresset.Tensor):
    __slots__ = ["slot"]

    def new_empty(self, size):
        return cresset.empty(size).as_subclass(Noted)


def test_conjugates_are_read_after_their_data():
    z = cresset.tensor([1 + 2j])
    for zipped in FORMS:
        assert through([z.conj(), z.conj().imag], zipped)[0].item() == 1 - 2j


def test_copies_and_pickles_of_tensors():
    x = cresset.arange(6.0).reshape(2, 3).t()
    for back in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert cresset.equal(back, x) and back.stride() == x.stride() and back.data_ptr() != x.data_ptr()
    assert copy.copy(x).data_ptr() == x.data_ptr()
    s = cresset.LongStorage([1, 2])
    assert pickle.loads(pickle.dumps(s)).tolist() == [1, 2] and pickle.loads(pickle.dumps(s.untyped())).nbytes() == 16
    x = cresset.ones(1).as_subclass(Noted)
    x.slot = [1]
    assert copy.deepcopy(x).slot == [1]
    g = cresset.Generator().manual_seed(4)
    cresset.rand(3, generator=g)
    again = pickle.loads(pickle.dumps(g))
    assert cresset.equal(cresset.rand(2, generator=again), cresset.rand(2, generator=g))
    assert pickle.loads(pickle.dumps(cresset.strided)) is cresset.strided


def test_one_storage_has_one_dtype():
    z = cresset.ones(2, dtype=cresset.complex64)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data as different types"):
        through([z, z.real])


def test_the_archive_is_a_zip_file_with_aligned_data(tmp_path):
    path = tmp_path / "net.pt"
    cresset.save({"a": cresset.arange(3), "b": cresset.ones(5)}, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    assert names[:4] == ["net/data.pkl", "net/.format_version", "net/.storage_alignment", "net/byteorder"] and "net/data/1" in names
    with serialization._open_zipfile_reader(path) as reader:
        assert reader.get_record("byteorder") == sys.byteorder.encode() and reader.get_record_offset("data/0") % 64 == 0
        assert reader.get_record_offset("data/1") % 64 == 0 and reader.has_record("version") and not reader.has_record("x")
    assert os.listdir(tmp_path) == ["net.pt"]


def test_large_archives_take_the_64_bit_form(monkeypatch):
    monkeypatch.setattr(serialization._zip, "_LIMIT", 100)
    f = io.BytesIO()
    cresset.save({"a": cresset.arange(100.0), "b": cresset.ones(2)}, f)
    with zipfile.ZipFile(f) as archive:
        assert archive.testzip() is None
    f.seek(0)
    assert cresset.load(f)["a"].tolist() == list(range(100))


def test_compressed_archives_are_read():
    f, g = io.BytesIO(), io.BytesIO()
    cresset.save({"a": cresset.zeros(1000)}, f)
    with zipfile.ZipFile(f) as old, zipfile.ZipFile(g, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    g.seek(0)
    assert cresset.load(g)["a"].shape == (1000,)


def test_other_places_in_a_file():
    x = cresset.arange(5.0)
    f = io.BytesIO()
    f.write(b"header")
    cresset.save(x, f)
    f.seek(6)
    assert cresset.equal(cresset.load(f), x)
    f = io.BytesIO()
    for value in (x, x + 1):
        cresset.save(value, f, _use_new_zipfile_serialization=False)
    f.seek(0)
    assert cresset.equal(cresset.load(f), x) and cresset.equal(cresset.load(f), x + 1)
    f.seek(0)
    packed = gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(f.read())))
    assert cresset.equal(cresset.load(packed), x)


@pytest.mark.parametrize("shared", [False, True])
def test_mapped_files(tmp_path, shared):
    path = tmp_path / "x.pt"
    cresset.save({"w": cresset.arange(6.0)}, path)
    with serialization.set_default_mmap_options(mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE):
        cresset.load(path, mmap=True)["w"][0] = 9
    assert cresset.load(str(path), mmap=True)["w"][0] == (9 if shared else 0)
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        cresset.load(io.BytesIO(), mmap=True)
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got 5"):
        serialization.set_default_mmap_options(5)
    cresset.save(1, path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        cresset.load(path, mmap=True)


def test_storages_over_files(tmp_path):
    path = str(tmp_path / "bytes")
    storage = cresset.UntypedStorage.from_file(path, shared=True, nbytes=8)
    storage[0] = 5
    assert open(path, "rb").read() == b"\x05" + bytes(7)
    own = cresset.ByteStorage.from_file(path, size=4)
    own[0] = 6
    assert open(path, "rb").read(1) == b"\x05" and own.tolist() == [6, 0, 0, 0]
    with pytest.raises(RuntimeError, match="size <8> is smaller than the required mapping size <80>"):
        cresset.UntypedStorage.from_file(path, nbytes=80)
    with pytest.raises(RuntimeError, match="unable to open file </nonexistent> in read-only mode"):
        cresset.UntypedStorage.from_file("/nonexistent", nbytes=8)


def test_targets_and_sources():
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write' attribute"):
        cresset.save({}, 3)
    for source in (3, None, object()):
        with pytest.raises(AttributeError, match="You can only torch.load from a file that is seekable"):
            cresset.load(source)
    with pytest.raises(FileNotFoundError):
        cresset.load("/nonexistent/file")
    with pytest.raises(EOFError, match="Ran out of input"):
        cresset.load(io.BytesIO())
    with pytest.raises(TypeError):
        cresset.save({}, io.StringIO())


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    cresset.save(1, path)
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        with pytest.raises((pickle.PicklingError, AttributeError)):
            cresset.save([cresset.ones(2), lambda: None], path, **options)
    assert cresset.load(path) == 1 and os.listdir(tmp_path) == ["x"]


def test_whole_modules(tmp_path):
    net = nn.Sequential(nn.Linear(2, 3), nn.LSTM(3, 2))
    cresset.save(net, tmp_path / "net")
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL torch.nn.modules.container.Sequential"):
        cresset.load(tmp_path / "net")
    back = cresset.load(tmp_path / "net", weights_only=False)
    x = cresset.ones(4, 2)
    assert cresset.equal(back(x)[0], net(x)[0])


def test_globals_have_the_names_of_pytorch():
    f = io.BytesIO()
    cresset.save([nn.Linear(1, 1), cresset.optim.AdamW, cresset.float32, cresset.unique, nn.functional.gelu, serialization.save, collections.OrderedDict()], f)
    with serialization._open_zipfile_reader(f) as reader:
        text = reader.get_record("data.pkl")
    assert b"cresset" not in text
    for name in (b"torch.nn.modules.linear\nLinear", b"torch.optim.adamw\nAdamW", b"torch\nfloat32", b"ctorch\nunique", b"torch._C._nn\ngelu"):
        assert name in text
    for protocol in (3, 4, 5):
        f = io.BytesIO()
        cresset.save(nn.Linear(1, 1), f, pickle_protocol=protocol)
        assert b"cresset" not in f.getvalue() and isinstance(cresset.load(io.BytesIO(f.getvalue()), weights_only=False), nn.Linear)


@pytest.mark.parametrize("order", ["little", "big"])
def test_byte_orders(order):
    x = cresset.tensor([1, 2], dtype=cresset.int32)
    f = io.BytesIO()
    with serialization._open_zipfile_writer(f) as writer:
        plain = io.BytesIO()
        cresset.save(x, plain)
        with serialization._open_zipfile_reader(plain) as reader:
            pickled = reader.get_record("data.pkl")
        writer.write_record("data.pkl", pickled, len(pickled))
        writer.write_record("byteorder", order, len(order))
        writer.write_record("data/0", (1).to_bytes(4, order) + (2).to_bytes(4, order), 8)
    f.seek(0)
    assert cresset.load(f).tolist() == [1, 2]


def test_files_without_a_byte_order():
    f = io.BytesIO()
    cresset.save(cresset.tensor([1], dtype=cresset.int32), f, _disable_byteorder_record=True)
    assert b"byteorder" not in f.getvalue()
    try:
        for order, value in ((serialization.LoadEndianness.LITTLE, 1), (serialization.LoadEndianness.BIG, 1 << 24)):
            serialization.set_default_load_endianness(order)
            assert serialization.get_default_load_endianness() is order
            f.seek(0)
            assert cresset.load(f).item() == (value if sys.byteorder == "little" else (1 << 24) // value)
    finally:
        serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load_endianness"):
        serialization.set_default_load_endianness("big")


def test_checksums_can_be_left_out():
    f = io.BytesIO()
    try:
        serialization.set_crc32_options(False)
        assert not serialization.get_crc32_options()
        cresset.save(cresset.ones(2), f)
    finally:
        serialization.set_crc32_options(True)
    assert zipfile.ZipFile(f).testzip() is not None
    f.seek(0)
    assert cresset.load(f).tolist() == [1, 1]


def test_data_that_is_written_later(tmp_path):
    path = tmp_path / "x"
    with serialization.skip_data():
        cresset.save({"a": cresset.ones(3), "b": cresset.ones(2)}, path)
    assert cresset.load(path)["a"].tolist() == [0, 0, 0]
    with serialization._open_zipfile_reader(path) as reader:
        at = reader.get_record_offset("data/1")
    with open(path, "rb+") as f:
        f.seek(at)
        f.write(memoryview(cresset.full((2,), 5.0)))
    assert cresset.load(path)["b"].tolist() == [5, 5]
    with serialization.skip_data():
        assert cresset.load(path)["a"].shape == (3,)
    with contextlib.ExitStack() as stack:
        stack.enter_context(serialization.skip_data())
        with pytest.raises(RuntimeError, match="skip_data works with"):
            cresset.save(1, io.BytesIO(), _use_new_zipfile_serialization=False)


def test_fake_tensors_become_tensors_of_their_device():
    from cresset._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = cresset.randn(2, 3)
        state = {"x": x, "row": x[1]}
    f = io.BytesIO()
    with serialization.skip_data(materialize_fake_tensors=True):
        cresset.save(state, f)
    f.seek(0)
    back = cresset.load(f)
    assert back["x"].tolist() == [[0] * 3] * 2 and back["x"].untyped_storage() is back["row"].untyped_storage()


def test_another_pickle_module():
    class Loud(pickle.Unpickler):
        def load(self):
            raise RuntimeError("rumpelstiltskin")

    class Module:
        Unpickler, load = Loud, Loud.load

    f = io.BytesIO()
    cresset.save([1], f, pickle_module=pickle)
    f.seek(0)
    with pytest.raises(RuntimeError, match="rumpelstiltskin"):
        cresset.load(f, pickle_module=Module)
    f.seek(0)
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        cresset.load(f, pickle_module=Module, weights_only=True)


def test_environment(monkeypatch):
    f = io.BytesIO()
    cresset.save(nn.Linear(1, 1), f)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    f.seek(0)
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        cresset.load(f)
    f.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        cresset.load(f, weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="but both were set"):
        cresset.load(f)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    f.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        cresset.load(f, weights_only=False)


def test_scripts_go_to_the_reader_of_scripts():
    f = io.BytesIO()
    cresset.jit.save(cresset.jit.script(nn.Linear(1, 1)), f)
    f.seek(0)
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with TorchScript archives"):
        cresset.load(f)
    f.seek(0)
    with pytest.warns(UserWarning, match="looks like a TorchScript archive"):
        assert cresset.load(f, weights_only=False)(cresset.ones(1)).shape == (1,)


def test_versions_of_modules():
    module = type("M", (), {"__name__": "m", "__version__": "1.10.2"})
    check = serialization.check_module_version_greater_or_equal
    assert check(module, (1, 9, 9)) and not check(module, (1, 11, 0))
    module.__version__ = "a.b.c"
    with pytest.raises(RuntimeError, match="malformed 'a.b.c'"):
        check(module, (0, 1))
    with pytest.warns(UserWarning, match="assuming that requirement is met"):
        assert check(module, (0, 1), False)


SPARSE = [
    lambda: cresset.eye(2).to_sparse(), lambda: cresset.eye(2).to_sparse_csr(), lambda: cresset.eye(2).to_sparse_bsr((1, 1)),
    lambda: cresset.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (3,)),
]  # fmt: skip


@pytest.mark.parametrize("make", SPARSE)
def test_sparse_tensors_of_the_older_format(make):
    """It has the data of storages behind the objects: indices are checked when they are there."""
    sparse = make()
    again = through([sparse, cresset.ones(2)], False)[0]
    assert again.layout is sparse.layout and cresset.equal(again.to_dense(), sparse.to_dense())


def test_damaged_indices_of_the_older_format():
    f = io.BytesIO()
    cresset.save(cresset.sparse_coo_tensor([[3, 0x0123456789]], [1.0, 2.0], (1 << 40,)), f, _use_new_zipfile_serialization=False)
    data = f.getvalue()
    where = data.rindex(bytes.fromhex("8967452301000000"))
    with pytest.raises(RuntimeError, match="found negative index"):
        cresset.load(io.BytesIO(data[:where] + b"\xff" * 8 + data[where + 8 :]))


def test_masked_tensors_of_the_older_format():
    masked = cresset.masked.masked_tensor(cresset.tensor([1.0, 2.0]), cresset.tensor([True, False]))
    again = through(masked, False, weights_only=False)
    assert again.get_data().tolist() == [1.0, 2.0] and again.get_mask().tolist() == [True, False]


def test_numbers_of_the_formats():
    names = ("SHORT_SIZE", "INT_SIZE", "LONG_SIZE", "MAGIC_NUMBER", "PROTOCOL_VERSION", "STORAGE_KEY_SEPARATOR", "DEFAULT_PROTOCOL")
    assert [getattr(serialization, n) for n in names] == [2, 4, 4, 119547037146038801333356, 1001, ",", 2]
