"""map_location, tags of devices and register_package."""

import io

import cresset
import pytest
from cresset import serialization


def saved(obj, tag=None, zipped=True):
    """A file of `obj`; with `tag` as if its storages had been there (three letters)."""
    f = io.BytesIO()
    cresset.save(obj, f, _use_new_zipfile_serialization=zipped)
    data = f.getvalue() if tag is None else f.getvalue().replace(b"X\x03\0\0\0cpu", b"X\x03\0\0\0" + tag)
    return io.BytesIO(data)


@pytest.mark.parametrize("zipped", [True, False])
def test_forms_of_map_location(zipped):
    def load(where, tag=b"abc"):
        return cresset.load(saved({"x": cresset.arange(3.0)}, tag, zipped), map_location=where)["x"]

    seen = []
    for where in ("cpu", cresset.device("cpu"), {"abc": "cpu"}, {"abc": cresset.device("cpu")}, b"cpu", lambda storage, tag: seen.append(tag) or storage):
        assert load(where).tolist() == [0, 1, 2]
    assert seen == ["abc"]
    for where in ("meta", cresset.device("meta"), {"abc": "meta"}):
        assert load(where).is_meta
    assert load(lambda storage, tag: None, b"cpu").tolist() == [0, 1, 2]
    kinds = []
    load(lambda storage, tag: kinds.append((type(storage), len(storage))) or storage)
    assert kinds == [(cresset.UntypedStorage, 12)]


@pytest.mark.parametrize("where", [None, {}, {"cpu": "meta"}, lambda storage, tag: None])
def test_devices_that_are_not_here(where):
    with pytest.raises(RuntimeError, match="don't know how to restore data location of torch.storage.UntypedStorage \\(tagged with abc\\)"):
        cresset.load(saved(cresset.ones(1), b"abc"), map_location=where)
    for tag, words in ((b"xpu", "Attempting to deserialize object on a XPU device but torch.xpu.is_available"), (b"../", "know how to restore data location")):
        with pytest.raises(RuntimeError, match=words):
            cresset.load(saved(cresset.ones(1), tag), map_location=where)


def test_map_location_cuda():
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device but torch.cuda.is_available\\(\\) is False"):
        cresset.load(saved(cresset.ones(1)), map_location="cuda:0")


def test_names_in_files_load_no_library(tmp_path, monkeypatch):
    # A plug-in of this name would be loaded by cresset.device("evil").
    (tmp_path / "evi.so").write_bytes(b"not a library")
    monkeypatch.setenv("CRESSET_BACKEND_PATH", str(tmp_path))
    for make in (lambda: saved(cresset.ones(1), b"evi"), lambda: io.BytesIO(saved(cresset.device("cpu")).getvalue().replace(b"cpu", b"evi"))):
        with pytest.raises(RuntimeError, match="know how to restore data location|which is not here") as caught:
            cresset.load(make())
        assert "evi.so" not in str(caught.value)


def test_packages_of_locations():
    before = list(serialization._locations._package_registry)
    calls = []

    def deserialize(storage, location):
        if location == "far":
            calls.append(len(storage))
            return storage

    try:
        serialization.register_package(5, lambda storage: "far" if len(storage) == 8 else None, deserialize)
        assert serialization.location_tag(cresset.ones(2).storage()) == "cpu"  # 2 elements
        assert serialization.location_tag(cresset.ones(2).untyped_storage()) == "far"
        assert cresset.load(saved(cresset.ones(3), b"far")).tolist() == [1, 1, 1] and calls == [12]
    finally:
        serialization._locations._package_registry[:] = before
    assert serialization.default_restore_location(cresset.FloatStorage([1]), "cpu").tolist() == [1]


def test_wrappers_go_where_map_location_says():
    build, state = cresset._utils._rebuild_wrapper_subclass, serialization._serialization_tls
    try:
        state.map_location = "meta"
        assert build(Wrapper, cresset.float32, (2,), (1,), 0, cresset.strided, cresset.device("cpu"), False).device.type == "meta"
    finally:
        state.map_location = None


class Wrapper(cresset.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
