"""Storages whose bytes lie elsewhere: mapped files, files of one storage, checkpoints that are read under a FakeTensorMode; the registry of locations."""

import io
import mmap

import cresset as torch
import numpy as np
import pytest
from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode


def test_a_mapped_file_has_its_name_until_the_memory_is_gone(tmp_path):
    path = str(tmp_path / "raw")
    np.arange(4, dtype="f4").tofile(path)
    storage = torch.UntypedStorage.from_file(path, shared=True, nbytes=16)
    tensor = torch.tensor([], dtype=torch.float32).set_(storage)
    assert storage.filename == path and storage.is_shared()
    del storage
    assert tensor.untyped_storage().filename == path
    tensor[0] = 5
    assert np.fromfile(path, "f4")[0] == 5
    private = torch.UntypedStorage.from_file(path, False, 16)
    assert private.filename is None and not private.is_shared()
    key = private._cdata
    del private
    assert key not in torch.storage._files
    assert torch.zeros(2).untyped_storage().filename is None


def test_a_storage_in_a_file(tmp_path):
    values = torch.arange(3.0).untyped_storage()
    with open(tmp_path / "s", "wb") as file:
        values._write_file(file, False, True, 4)
    with open(tmp_path / "s", "rb") as file:
        assert torch.UntypedStorage._new_with_file(file, 4).tolist() == values.tolist()
        with pytest.raises(RuntimeError, match="unexpected EOF"):
            torch.UntypedStorage._new_with_file(file, 4)


def test_a_checkpoint_under_a_fake_mode(tmp_path):
    path = tmp_path / "x.pt"
    base = torch.arange(6)
    torch.save({"a": torch.arange(5.0), "b": torch.nn.Parameter(torch.ones(3)), "c": [base[:2], base[3:]]}, path)
    with FakeTensorMode():
        read = torch.load(path)
        assert torch.load(path, map_location="meta")["a"].is_meta
        assert type(torch.load(path, weights_only=False)["a"]) is FakeTensor
    assert type(read["a"]) is FakeTensor and read["a"].device.type == "cpu" and read["b"].shape == (3,)
    assert isinstance(read["b"], torch.nn.Parameter) and read["c"][1].storage_offset() == 3
    data = path.read_bytes()
    for part, expected in ((read["a"], [0, 1, 2, 3, 4]), (read["b"], [1, 1, 1])):
        start = part.untyped_storage()._checkpoint_offset
        assert np.frombuffer(data[start : start + part.untyped_storage().nbytes()], "f4").tolist() == expected
    assert read["c"][0].untyped_storage()._checkpoint_offset == read["c"][1].untyped_storage()._checkpoint_offset
    assert torch.load(path)["a"].tolist() == [0, 1, 2, 3, 4]


def test_packages_of_locations_can_be_taken_away():
    registry = torch.serialization._package_registry
    before = list(registry)
    torch.serialization.register_package(
        5, lambda s: "mine" if s.nbytes() == 12 else None, lambda s, location: s if location == "mine" else None
    )
    file = io.BytesIO()
    torch.save(torch.ones(3), file)
    file.seek(0)
    assert torch.load(file).tolist() == [1, 1, 1]
    registry[:] = before
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"don't know how to restore data location of torch.storage.UntypedStorage \(tagged with mine\)"):
        torch.load(file)


def test_names_of_quantized_types_are_safe():
    for value in (torch.qint8, torch.quint8, torch.per_tensor_affine, torch.per_channel_affine_float_qparams):
        file = io.BytesIO()
        torch.save([value], file)
        file.seek(0)
        assert torch.load(file)[0] is value


def test_legacy_files_are_not_mapped(tmp_path):
    path = str(tmp_path / "old.pt")
    torch.save(torch.ones(2), path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError) as error:
        torch.load(path, mmap=True)
    assert f"torch.save({path}, _use_new_zipfile_serialization=True)" in str(error.value)
    assert torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
