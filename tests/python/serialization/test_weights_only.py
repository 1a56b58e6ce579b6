"""What load(weights_only=True) refuses, and that nothing in a file runs or takes memory that the file does not have."""

import builtins
import collections
import io
import os
import pickle
import sys
import tracemalloc

import cresset
import pytest
from cresset import serialization

FILE = {"a": cresset.arange(100.0), "s": {1, 2}, "n": [1.5, "x", None, (True, 2**70)], "o": collections.OrderedDict(b=cresset.ones(2))}


class Reduced:
    """Pickled as whatever it is given."""

    def __init__(self, *form):
        self.form = form

    def __reduce__(self):
        return self.form


class Point(collections.namedtuple("Point", "x y")):
    pass


def archive(data, **records):
    """A checkpoint with this pickle."""
    f = io.BytesIO()
    with serialization._open_zipfile_writer(f) as writer:
        writer.write_record("data.pkl", data, len(data))
        for name, record in records.items():
            writer.write_record(name.replace("_", "/"), record, len(record))
    f.seek(0)
    return f


def pickled(*values):
    return archive(pickle.dumps(values[0] if len(values) == 1 else values, 2))


REFUSED = {
    "builtins": (lambda: pickled(Reduced(eval, ("1",))), "Unsupported global: GLOBAL eval was not an allowed global by default"),
    "frozen sets": (lambda: pickled(frozenset([1])), r"add_safe_globals\(\[frozenset\]\)"),
    "modules of the system": (lambda: pickled(Reduced(os.system, ("true",))), "Trying to load unsupported GLOBAL posix.system whose module posix is blocked"),
    "sys": (lambda: archive(b"\x80\x02csys\nexit\n."), "module sys is blocked"),
    "unknown modules": (lambda: archive(b"\x80\x02cnot.there\nname\n."), "GLOBAL not.there.name"),
    "attributes of allowed modules": (lambda: archive(b"\x80\x02ctorch._utils\n_import_dotted_name\n."), "torch._utils._import_dotted_name"),
    "protocol 4": (lambda: archive(pickle.dumps([1], 4)), "Unsupported operand 149"),
    "classes": (lambda: pickled(Point(1, 2)), "Point was not an allowed global by default"),
    "calls of data": (lambda: archive(b"\x80\x02K\x01)R."), "Trying to call reduce for unrecognized function 1"),
    "other constructors": (lambda: archive(b"\x80\x02ctorch\nSize\n)\x81."), "Can only create new object for nn.Parameter"),
    "states of lists": (lambda: archive(b"\x80\x02]}b."), "Can only build Tensor, Parameter, OrderedDict"),
    "items of lists": (lambda: archive(b"\x80\x02]K\x00K\x01s."), "Can only SETITEM for dict"),
    "appending to dicts": (lambda: archive(b"\x80\x02}K\x00a."), "Can only append to lists"),
    "codecs": (lambda: pickled(Reduced(__import__("_codecs").encode, ("a", "rot13"))), "Trying to encode with 'rot13'"),
    "large byte arrays": (lambda: pickled(Reduced(bytearray, (1 << 40,))), "reduce for bytearray"),
    "large tensors": (lambda: pickled(Reduced(cresset.Tensor, (1 << 40,))), "reduce for Tensor with arguments"),
    "large storages": (lambda: pickled(Reduced(cresset.FloatStorage, (1 << 40,))), "reduce for FloatStorage with arguments"),
    "calls through a rebuild function": (
        lambda: pickled(Reduced(cresset._tensor._rebuild_from_type_v2, (bytearray, cresset.Tensor, (1 << 40,), {}))), "reduce for unrecognized function",
    ),
    "deep keys": (lambda: archive(b"\x80\x02})" + b"\x85" * 100_000 + b"K\x01s."), "element of a set is too large"),
    "wide keys": (lambda: archive(b"\x80\x02})" + b"q\x00h\x00\x86" * 60 + b"K\x01s."), "element of a set is too large"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, words = REFUSED[case]
    with pytest.raises(pickle.UnpicklingError, match=words) as caught:
        cresset.load(make())
    assert "Weights only load failed" in str(caught.value) and "Re-running `torch.load` with `weights_only` set to `False`" in str(caught.value)


DAMAGED = {
    "an empty pickle": b"",
    "memory that was not written": b"\x80\x02h\x05.",
    "an empty stack": b"\x80\x02R.",
    "no end": b"\x80\x02]",
    "no mark": b"\x80\x02e.",
    "half a number": b"\x80\x02J\x01",
    "a long text": b"\x80\x02X\xff\xff\xff\xffabc",
    "a text that is none": b"\x80\x02X\x01\0\0\0\xff.",
    "half a name": b"\x80\x02ctorch",
    "an id that is none": b"\x80\x02K\x01Q.",
    "an id of something else": b"\x80\x02(X\x03\0\0\0fooK\x01K\x01K\x01K\x01tQ.",
    "an unhashable key": b"\x80\x02}]K\x01s.",
    "a pair without value": b"\x80\x02}(K\x01u.",
    "arguments that do not fit": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nK\x01\x85R.",
    "arguments that are none": b"\x80\x02ctorch\nSize\nK\x01R.",
    "a call of a dtype": b"\x80\x02ctorch\nfloat32\n)R.",
    "a state that is none": b"\x80\x02ccollections\nOrderedDict\n)R]b.",
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_pickles_raise_the_error_of_damaged_files(case):
    with pytest.raises(serialization.FileError, match="is damaged|was required"):
        cresset.load(archive(DAMAGED[case]))


def test_the_error_is_of_both_classes():
    assert issubclass(serialization.FileError, pickle.UnpicklingError) and issubclass(serialization.FileError, RuntimeError)


def saved(zipped=True):
    f = io.BytesIO()
    cresset.save(FILE, f, _use_new_zipfile_serialization=zipped)
    return f.getvalue()


@pytest.mark.parametrize("zipped", [True, False])
def test_files_cut_anywhere(zipped):
    data = saved(zipped)
    for n in [*range(1, 200), *range(200, len(data), 17), len(data) - 1]:
        with pytest.raises(pickle.UnpicklingError):
            cresset.load(io.BytesIO(data[:n]))


@pytest.mark.parametrize("zipped", [True, False])
def test_files_with_changed_bytes_raise_one_class_or_load(zipped):
    data = saved(zipped)
    for at in range(0, len(data), 3):
        for value in (0, 0xFF, data[at] ^ 1):
            changed = bytearray(data)
            changed[at] = value
            try:
                cresset.load(io.BytesIO(bytes(changed)), map_location="cpu")
            except (pickle.UnpicklingError, RuntimeError):  # RuntimeError: what operators say to tensors that cannot be
                pass


def test_sizes_are_compared_before_memory_is_asked_for():
    data = saved()
    with serialization._open_zipfile_reader(io.BytesIO(data)) as reader:
        text = reader.get_record("data.pkl")
    # the number of elements of the first storage, 100, becomes 2**30
    huge = text.replace(b"K\x64tq", b"J\0\0\0\x40tq", 1)
    assert huge != text
    tracemalloc.start()
    with pytest.raises(serialization.FileError, match="the record 'data/0' has 4 bytes, its storage needs 4294967296"):
        cresset.load(archive(huge, data_0=b"1234"))
    with pytest.raises(serialization.FileError, match="file not found"):
        cresset.load(archive(text))
    legacy = saved(False).replace(b"K\x64N", b"J\0\0\0\x40N", 1)
    with pytest.raises(serialization.FileError, match="which would have 4294967296 bytes"):
        cresset.load(io.BytesIO(legacy))
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


def test_views_beyond_a_storage_are_refused():
    build = cresset._utils._rebuild_tensor_v2

    class Pickler(serialization._names._NamingPickler):
        def persistent_id(self, value):
            return ("storage", cresset.FloatStorage, "0", "cpu", 1) if value == "the storage" else None

    for size, stride, offset in (((2,), (1,), 0), ((1,), (1,), 1), ((2,), (-1,), 1), ((1 << 62, 4), (4, 1), 0), ((2,), (1 << 62,), 0)):
        f = io.BytesIO()
        Pickler(f, 2).dump(Reduced(build, ("the storage", offset, size, stride, False, collections.OrderedDict())))
        with pytest.raises(RuntimeError):
            cresset.load(archive(f.getvalue(), data_0=b"1234"))


@pytest.fixture
def no_safe_globals():
    """Without those that other tests' imports have added (distributed.tensor does)."""
    added = serialization.get_safe_globals()
    serialization.clear_safe_globals()
    yield
    serialization.clear_safe_globals()
    serialization.add_safe_globals(added)


def test_safe_globals(no_safe_globals):
    f = io.BytesIO()
    cresset.save(Point(1, 2), f)
    with serialization.safe_globals([Point]):
        f.seek(0)
        assert cresset.load(f) == Point(1, 2) and serialization.get_safe_globals() == [Point]
    assert serialization.get_safe_globals() == []
    name = f"{Point.__module__}.Point"
    f.seek(0)
    assert serialization.get_unsafe_globals_in_checkpoint(f) == [name]
    serialization.add_safe_globals([(Point, name)])
    f.seek(0)
    assert serialization.get_unsafe_globals_in_checkpoint(f) == [] and cresset.load(f) == Point(1, 2)
    with pytest.raises(ValueError, match="Expected input to be a checkpoint returned by torch.save"):
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"abc"))


def test_nothing_is_imported(monkeypatch):
    f = pickled(Reduced(eval, ("1",)))
    seen = []
    own = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", lambda name, *rest: seen.append(name) or own(name, *rest))
    with pytest.raises(pickle.UnpicklingError):
        cresset.load(archive(b"\x80\x02cantigravity\nfly\n."))
    with pytest.raises(pickle.UnpicklingError):
        cresset.load(f)
    assert "antigravity" not in sys.modules and "antigravity" not in seen


def test_texts_of_python_2():
    # [b"\xc5\xbc", torch.zeros(1), 2] of Python 2 and PyTorch 0.4.1
    data = (
        b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x01(U\x10protocol_versionq\x02M\xe9\x03U\ntype_sizesq\x03}q\x04(U\x03intq\x05K"
        b"\x04U\x05shortq\x06K\x02U\x04longq\x07K\x04uU\rlittle_endianq\x08\x88u.\x80\x02]q\x01(U\x02\xc5\xbcq\x02ctorch._utils\n_rebuild_tensor_v2\nq\x03(("
        b"U\x07storageq\x04ctorch\nFloatStorage\nq\x05U\x0845640624q\x06U\x03cpuq\x07\x8a\x01\x01NtQK\x00K\x01\x85K\x01\x85\x89NtRq\x08K\x02e.\x80\x02]q\x01"
        b"U\x0845640624q\x02a.\x01" + bytes(11)
    )
    for weights_only in (True, False):
        for encoding, text in (("utf-8", "\u017c"), ("bytes", b"\xc5\xbc")):
            back = cresset.load(io.BytesIO(data), encoding=encoding, weights_only=weights_only)
            assert back[0] == text and back[1].tolist() == [0] and back[2] == 2
        with pytest.raises(UnicodeDecodeError):
            cresset.load(io.BytesIO(data), encoding="ascii", weights_only=weights_only)
