"""Folders of tensors by content, and debugprims.load_tensor. Hashes and what files have are PyTorch 2.13's (of its stable hash)."""

import os

import pytest

import cresset as torch
from cresset._prims.debug_prims import load_tensor_reader
from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from cresset.multiprocessing.reductions import StorageWeakRef
from cresset.utils._content_store import ContentStoreReader, ContentStoreWriter, hash_storage

HASH = "2d269a0f80570f5073f57d88aa5701b6ed547416"  # of arange(4.0)


def memory(t):
    return StorageWeakRef(t.untyped_storage())


def test_hashes():
    assert hash_storage(torch.arange(4.0).untyped_storage()) == hash_storage(torch.arange(4.0)[2:].untyped_storage(), stable_hash=True) == HASH
    assert hash_storage(torch.arange(4).untyped_storage()) != HASH
    assert hash_storage(torch.empty(0).untyped_storage()) == "da39a3ee5e6b4b0d3255bfef95601890afd80709"


def test_write_and_read(tmp_path):
    x = torch.arange(4.0)
    writer = ContentStoreWriter(str(tmp_path))
    writer.write_tensor("a/x", x)
    writer.write_tensor("part", x[1:3].requires_grad_())
    x = x.clone()
    writer.write_tensor("twin", x)
    x.data.add_(1)
    writer.write_tensor("later", x.view(2, 2).t())
    assert len(os.listdir(tmp_path / "storages")) == 2 and writer.write_storage(torch.arange(4.0).untyped_storage()) == HASH
    reader = ContentStoreReader(str(tmp_path))
    assert reader.read_tensor_metadata("part") == (torch.float32, HASH, 1, (2,), (1,), {})
    first, part, twin, later = (reader.read_tensor(name) for name in ("a/x", "part", "twin", "later"))
    assert first.tolist() == [0, 1, 2, 3] and part.tolist() == [1, 2] and not part.requires_grad
    assert memory(first) == memory(part) == memory(twin) != memory(later)
    assert later.tolist() == [[1, 3], [2, 4]] and later.stride() == (1, 2)
    place = memory(first)
    del first, part, twin
    assert place.expired()  # the reader holds nothing
    assert reader.read_tensor("part").tolist() == [1, 2]
    apart = ContentStoreReader(str(tmp_path), cache=False)
    assert memory(apart.read_tensor("a/x")) != memory(apart.read_tensor("a/x"))
    with pytest.raises(FileNotFoundError):
        reader.read_tensor("none")


def load(name="x", size=(4,), stride=(1,), dtype=torch.float32):
    return torch.ops.debugprims.load_tensor.default(name, size, stride, dtype=dtype, device="cpu")


def test_load_tensor(tmp_path):
    x = torch.randn(4)
    ContentStoreWriter(str(tmp_path)).write_tensor("x", x)
    with load_tensor_reader(str(tmp_path)):
        one, two = load(), load()
        assert torch.equal(one, x) and torch.equal(two, x) and memory(one) != memory(two)
        assert load(dtype=torch.float64).dtype == torch.float64 and torch.equal(load(dtype=torch.float64).float(), x)
        with FakeTensorMode():
            fake = load()
        assert isinstance(fake, FakeTensor) and (fake.shape, fake.stride(), fake.dtype) == (x.shape, x.stride(), x.dtype)
        with pytest.raises(RuntimeError, match=r"load_tensor: x has size \[4\] and strides \[1\] on cpu; \[2\], \[1\] on cpu was required"):
            load(size=(2,))
        with pytest.raises(AssertionError), load_tensor_reader(str(tmp_path)):
            pass
    other = load(size=(2, 3), stride=(1, 2))
    assert other.shape == (2, 3) and other.stride() == (1, 2)
