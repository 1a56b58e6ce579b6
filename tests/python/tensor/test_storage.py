"""Storages as objects, and the tensors over them."""

import copy
import io
import threading
import warnings
import weakref

import cresset
import numpy as np
import pytest


def test_views_share_one_storage():
    x = cresset.arange(6.0).reshape(2, 3)
    u = x.untyped_storage()
    assert u is x[1].untyped_storage() and u is not x.clone().untyped_storage()
    assert (len(u), u.nbytes(), u.element_size(), u.device) == (24, 24, 1, cresset.device("cpu"))
    assert u.data_ptr() == x.data_ptr() == x.storage().data_ptr()
    assert bytes(u.tolist()) == x.numpy().tobytes()
    u.fill_(0)
    assert not x.any()
    assert cresset.is_storage(u) and cresset.is_storage(x.storage()) and not cresset.is_storage(x)


def test_objects_say_how_large_they_are_with_their_memory():
    for storage in (lambda n: cresset.ones(n).untyped_storage(), lambda n: cresset.ones(n).storage()):
        assert storage(10).__sizeof__() - storage(0).__sizeof__() == 40 and storage(100).__sizeof__() - storage(0).__sizeof__() == 400


def test_typed_elements():
    x = cresset.arange(6.0).reshape(2, 3)
    s = x[1].storage()
    assert (len(s), s.nbytes(), s.dtype, s.tolist()) == (6, 24, cresset.float32, [0, 1, 2, 3, 4, 5])
    assert s[-1] == 5.0 and list(s) == s.tolist()
    s[1] = 7.0
    assert x[0, 1].item() == 7.0
    assert s == x.storage() and s != x.clone().storage()
    assert s.long().tolist() == [0, 7, 2, 3, 4, 5] and s.float() is s
    assert isinstance(s, cresset.FloatStorage) and not isinstance(s, cresset.DoubleStorage)
    assert (s.type(), x.storage_type()) == ("torch.FloatStorage", cresset.FloatStorage)
    with pytest.raises(IndexError, match="index 100 out of range for storage of size 6"):
        s[100]
    with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
        s[1:3]


def test_construction_and_copies():
    assert cresset.UntypedStorage([1, 2, 3]).tolist() == [1, 2, 3]
    assert cresset.FloatStorage([1, 2]).dtype == cresset.float32
    assert len(cresset.LongStorage(3)) == 3 and len(cresset.TypedStorage()) == 0
    a = cresset.DoubleStorage([1, 2, 3])
    for b in (a.clone(), copy.copy(a), copy.deepcopy(a)):
        assert b.tolist() == a.tolist() and b.data_ptr() != a.data_ptr()
    a.copy_(cresset.FloatStorage([4, 5, 6]))
    assert a.tolist() == [4.0, 5.0, 6.0]
    u = cresset.UntypedStorage([1, 2, 3, 4])
    assert u[1:3].tolist() == [2, 3] and u[-1] == 4
    u.byteswap(cresset.int16)
    assert u.tolist() == [2, 1, 4, 3]
    assert repr(cresset.LongStorage([5])) == " 5\n[cresset.storage.TypedStorage(dtype=cresset.int64, device=cpu) of size 1]"
    with pytest.raises(TypeError, match="a storage was required"):
        a.copy_([1, 2, 3])


def test_set():
    x = cresset.arange(6.0)
    y = cresset.empty(0).set_(x.untyped_storage())
    assert y.tolist() == x.tolist() and y.data_ptr() == x.data_ptr()
    y.set_(x.storage(), 1, (2, 2), (1, 2))
    assert y.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert cresset.empty(0, dtype=cresset.int64).set_(x.untyped_storage()).shape == (3,)
    assert cresset.FloatTensor(x.storage()).tolist() == x.tolist() == x.new(x.untyped_storage()).tolist()
    for arguments in ((5, (2, 2), (1, 2)), (0, (7,)), (1, (6,), (1,))):
        with pytest.raises(RuntimeError, match="are out of bounds for storage of size 24"):
            y.set_(x.untyped_storage(), *arguments)
    for arguments in ((-1, (1,)), (0, (-1,)), (0, (2,), (-1,))):
        with pytest.raises(RuntimeError):
            y.set_(x.untyped_storage(), *arguments)
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        cresset.empty(0, dtype=cresset.int64).set_(x.storage())


def test_resize():
    x = cresset.arange(6.0)
    u = x.untyped_storage()
    u.resize_(48)
    assert u.nbytes() == 48 and x.tolist() == [0, 1, 2, 3, 4, 5] and x.data_ptr() == u.data_ptr()
    u.resize_(0)
    assert x.untyped_storage().nbytes() == 0
    x.sum()  # the memory is still there
    assert u.resize_(24).nbytes() == 24
    outside = cresset.from_numpy(np.arange(4.0)).untyped_storage()
    assert not outside.resizable()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        outside.resize_(100)
    with pytest.raises(RuntimeError, match="at least 0"):
        u.resize_(-1)


def test_meta():
    u = cresset.empty(2, device="meta").untyped_storage()
    assert (u.nbytes(), u.data_ptr(), u.device.type) == (8, 0, "meta")
    assert u.resize_(16).nbytes() == 16
    assert cresset.UntypedStorage(8, device="meta").device.type == "meta"


def test_slices_share_the_memory():
    whole = cresset.UntypedStorage([1, 2, 3, 4])
    part = whole[1:3]
    part[0] = 9
    assert whole.tolist() == [1, 9, 3, 4] and part.tolist() == [9, 3] and not part.resizable()
    assert part.data_ptr() == whole.data_ptr() + 1 and whole[3:1].tolist() == [] and whole[-1:].tolist() == [4]
    del whole
    assert part.tolist() == [9, 3]
    with pytest.raises(RuntimeError, match="slice with a step of 2"):
        part[::2]


def test_kinds_and_places():
    from cresset import serialization

    storage = cresset.ones(2).storage()
    assert storage.type() == "torch.FloatStorage" and not storage.is_pinned() and not storage.untyped().is_pinned()
    assert serialization.location_tag(storage) == "cpu" == serialization.location_tag(cresset.device("cpu"))
    assert serialization.location_tag(cresset.UntypedStorage(4, device="meta")) == "meta"
    assert serialization.default_restore_location(storage, "cpu") is storage
    with pytest.raises(RuntimeError, match=r"don't know how to restore data location of torch.storage.UntypedStorage \(tagged with nochip:0\)"):
        serialization.default_restore_location(storage, "nochip:0")


def test_object_lives_as_long_as_it_is_used():
    x = cresset.arange(6.0)
    u = x.untyped_storage()
    del x
    assert len(u.float().tolist()) == 24
    y = cresset.arange(3.0)
    key = y.untyped_storage()._cdata
    assert y.untyped_storage()._cdata == key


@pytest.mark.parametrize("storage", [cresset.UntypedStorage(3, device="meta"), cresset.TypedStorage(3, device="meta", dtype=cresset.float32)], ids=["untyped", "typed"])
@pytest.mark.parametrize("index", [0, 9, "a", slice(1)], ids=repr)
def test_elements_of_meta_storages_are_refused(storage, index):
    for call in (lambda: storage[index], lambda: storage.__setitem__(index, 1)):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            call()


def test_legacy_classes_by_dtype():
    names = cresset.storage._dtype_to_storage_type_map()
    assert names[cresset.float64] == "DoubleStorage" and names[cresset.quint8] == "QUInt8Storage"
    plain = {dtype: name for dtype, name in names.items() if not name.startswith("Q")}
    assert len(plain) == 12 and all(getattr(cresset, name) is cresset.ones(1, dtype=dtype).storage_type() for dtype, name in plain.items())


def test_typed_storages_warn_once():
    storage = cresset.storage
    storage._reset_warn_typed_storage_removal()
    with pytest.warns(UserWarning, match="TypedStorage is deprecated") as caught:
        cresset.ones(1).storage()
        cresset.FloatStorage(2)
    assert len(caught) == 1 and caught[0].filename == __file__
    storage._set_always_warn_typed_storage_removal(True)
    try:
        assert storage._get_always_warn_typed_storage_removal()
        with pytest.warns(UserWarning, match="TypedStorage is deprecated") as caught:
            cresset.TypedStorage([1])
            cresset.ones(1).storage().clone().untyped()
        assert [w.filename for w in caught] == [__file__] * 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f = io.BytesIO()
            cresset.save(cresset.ones(2), f)
            f.seek(0)
            cresset.load(f)
    finally:
        storage._set_always_warn_typed_storage_removal(False)


@pytest.mark.parametrize("order", ["native", "little", "big"])
def test_storages_from_buffers(order):
    data = bytearray(range(16))
    for cls, kind in ((cresset.ByteStorage, "u1"), (cresset.ShortStorage, "i2"), (cresset.FloatStorage, "f4"), (cresset.ComplexFloatStorage, "c8")):
        size = int(kind[1:])
        found = cls.from_buffer(data, order, offset=8)
        wanted = np.frombuffer(data, {"big": ">", "little": "<", "native": "="}[order] + kind, offset=8)
        assert found.tolist() == wanted.tolist() and len(found) == 8 // size
        assert cls.from_buffer(data, order, count=1).tolist() == np.frombuffer(data, wanted.dtype, 1).tolist()
    assert cresset.BoolStorage.from_buffer(b"\0\2", order).tolist() == [False, True]
    data[0] = 99
    assert cresset.UntypedStorage.from_buffer(data, order, dtype=cresset.uint8)[0] == 99


def test_storages_from_wrong_buffers():
    for arguments, words in (
        ({"byte_order": "middle"}, "invalid byte_order"), ({"offset": 9}, "offset must be"), ({"offset": -1}, "offset must be"),
        ({"offset": 1}, "must be a multiple"), ({"count": 5}, "has only"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            cresset.ShortStorage.from_buffer(bytearray(8), **arguments)


def test_a_tensor_of_a_storage_shares_its_memory():
    source = cresset.arange(4, dtype=cresset.int16)
    for storage in (source.storage(), source.untyped_storage()):
        t = cresset.tensor(storage, dtype=cresset.int16)
        assert t.tolist() == [0, 1, 2, 3] and t.data_ptr() == source.data_ptr()
    assert cresset.as_tensor(source.storage()).dtype == cresset.int16
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        cresset.tensor(source.storage(), dtype=cresset.float32)


def test_memory_that_an_array_sees_stays():
    x = cresset.arange(4.0)
    array = x.numpy()
    assert not x.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(1000)
    assert array.tolist() == [0, 1, 2, 3]


def test_only_host_memory_is_shared():
    s = cresset.TypedStorage([1, 2], device="meta", dtype=cresset.int32)
    for share in (s._share_fd_cpu_, s._share_filename_cpu_):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            share()


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_memory_of_meta_is_not_there():
    typed = cresset.TypedStorage([1, 2], device="meta", dtype=cresset.uint8)
    for storage in (typed, typed.untyped()):
        with pytest.raises(NotImplementedError, match="Not available"):
            storage.tolist()


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_bytes_in_a_file(tmp_path):
    typed = cresset.TypedStorage([1, 2, 3], dtype=cresset.int16)
    numbers = b"\x01\x00\x02\x00\x03\x00"
    for storage, save_size, element_size, expected in [
        (typed, True, 2, b"\x03" + bytes(7) + numbers), (typed, False, 2, numbers), (typed.untyped(), True, 1, b"\x06" + bytes(7) + numbers),
    ]:  # fmt: skip
        with open(tmp_path / "bytes", "wb") as file:
            storage._write_file(file, True, save_size, element_size)
        assert (tmp_path / "bytes").read_bytes() == expected
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            cresset.TypedStorage([1, 2], device="meta", dtype=cresset.int16)._write_file(io.BytesIO(), False, True, 2)


# --- objects that outlive their last reference in Python ------------------------------------------------------------------------------


class Finalized(cresset.UntypedStorage):
    count = 0

    def __del__(self):
        Finalized.count += 1


class Tracked:
    pass


def test_attributes_live_as_long_as_the_memory():
    x = cresset.ones(3)
    s = x.untyped_storage()
    s.mark = Tracked()
    mark = weakref.ref(s.mark)
    del s
    assert mark() is not None
    s = x.untyped_storage()
    assert s.mark is mark() and s.nbytes() == 12
    del x
    assert mark() is not None and len(s.tolist()) == 12
    del s
    assert mark() is None


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_classes_live_as_long_as_the_memory(rounds):
    before = Finalized.count
    s = Finalized(8)
    x = cresset.tensor(s)
    del s
    for _ in range(rounds):
        s = x.untyped_storage()
        assert isinstance(s, Finalized) and s.data_ptr() == x.data_ptr()
        del s
    assert Finalized.count == before
    del x
    assert Finalized.count == before + 1
    Finalized(8)
    assert Finalized.count == before + 2


def test_weak_references_live_as_long_as_the_memory():
    s = cresset.UntypedStorage(8)
    ref = weakref.ref(s)
    x = cresset.tensor(s)
    del s
    s = ref()
    s._fix_weakref()
    del x
    assert s.nbytes() == 8 and s.float().nbytes() == 32
    s._fix_weakref()
    del s
    assert ref() is None


def test_memory_that_another_thread_drops_last():
    s = cresset.UntypedStorage(8)
    s.mark = Tracked()
    mark = weakref.ref(s.mark)
    held = [cresset.tensor(s)]
    del s
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert mark() is None


def test_plain_storages_go_at_once():
    x = cresset.ones(3)
    s = x.untyped_storage()
    uses = cresset._C._storage_use_count(x)
    del s
    assert cresset._C._storage_use_count(x) == uses - 1


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: cresset.TypedStorage(wrap_storage=cresset.UntypedStorage(4)), RuntimeError, "Argument 'dtype' must be specified"),
        (lambda: cresset.TypedStorage(wrap_storage=5, dtype=cresset.float), TypeError, "Argument 'wrap_storage' must be UntypedStorage, but got <class 'int'>"),
        (lambda: cresset.TypedStorage(1, 2, dtype=cresset.float), RuntimeError, "Too many positional arguments"),
        (lambda: cresset.TypedStorage(wrap_storage=cresset.UntypedStorage(4), dtype="a"), TypeError, "Argument 'dtype' must be torch.dtype, not <class 'str'>"),
        (lambda: cresset.FloatStorage(cresset.ones(1)), TypeError, "Argument type not recognized: <class 'cresset.Tensor'>"),
        (lambda: cresset.FloatStorage(1, wrap_storage=cresset.UntypedStorage(8)), RuntimeError, "No positional arguments should be given when using 'wrap"),
        (lambda: cresset.FloatStorage(dtype=cresset.float), RuntimeError, "Keyword argument 'dtype' cannot be specified"),
        (lambda: cresset.FloatStorage("a"), TypeError, "new(): invalid data type 'str'"),
    ],
)
def test_combinations_of_arguments_that_fit_no_form(make, kind, words):
    """As PyTorch 2.13 refuses them."""
    with pytest.raises(kind) as caught:
        make()
    assert words in str(caught.value)


def test_a_storage_without_elements_prints_an_empty_line():
    assert repr(cresset.UntypedStorage()) == " \n[cresset.storage.UntypedStorage(device=cpu) of size 0]"


def test_classes_know_their_type():
    assert cresset.FloatStorage.dtype is cresset.float32 and cresset.BoolStorage.dtype is cresset.bool
    with pytest.raises(AttributeError, match="type object 'FloatStorage' has no attribute 'nope'"):
        cresset.FloatStorage.nope  # noqa: B018


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("name", ["QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage"])
def test_storages_of_quantized_numbers_hold_whole_numbers(name):
    made = getattr(cresset, name)([0, 3, 5])
    made[1] = 7
    size = 4 if name == "QInt32Storage" else 1
    assert str(made.dtype).split(".")[1].lower() + "storage" == name.lower()
    assert (len(made), made.nbytes(), list(made), len(getattr(cresset, name)(10))) == (3, 3 * size, [0, 7, 5], 10)


def test_a_size_is_whatever_counts_as_a_whole_number():
    assert [cresset.UntypedStorage(n).nbytes() for n in (np.int64(3), np.int32(2), cresset.tensor(3))] == [3, 2, 3]
    for size in (3.0, None, cresset.tensor([1, 2])):
        with pytest.raises(RuntimeError, match=f"Expected a sequence type, but got {type(size).__name__}"):
            cresset.UntypedStorage(size)
