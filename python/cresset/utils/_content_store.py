"""A folder of tensors whose memory is kept once for each content: `storages/<hash>` has a storage, `tensors/<name>` what a tensor is of it."""

import collections
import hashlib
import os
import weakref

import cresset

__all__ = ["ContentStoreReader", "ContentStoreWriter", "hash_storage"]


def hash_storage(storage, *, stable_hash=False):
    """The SHA-1 of a storage's bytes, as text; PyTorch's is the same with stable_hash=True."""
    del stable_hash
    whole = cresset.empty((), dtype=cresset.uint8, device=storage.device).set_(storage, 0, (storage.nbytes(),), (1,)).cpu()
    return hashlib.sha1(whole.numpy(), usedforsecurity=False).hexdigest()


class ContentStoreWriter:
    """Writes tensors into a folder."""

    def __init__(self, loc, stable_hash=False):
        self.loc, self.stable_hash, self.seen_storage_hashes = loc, stable_hash, set()

    def _file(self, kind, name):
        path = os.path.join(self.loc, kind, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write_storage(self, storage):
        """The storage's hash; its bytes are in the folder."""
        found = hash_storage(storage, stable_hash=self.stable_hash)
        if found not in self.seen_storage_hashes:
            path = self._file("storages", found)
            if not os.path.exists(path):
                cresset.save(storage, path)
            self.seen_storage_hashes.add(found)
        return found

    def compute_tensor_metadata(self, t, h=None):
        """(dtype, hash of the storage, offset, size, strides, {}) of a tensor; `h`: the hash, where it is known."""
        h = hash_storage(t.untyped_storage(), stable_hash=self.stable_hash) if h is None else h
        return t.dtype, h, t.storage_offset(), tuple(t.shape), t.stride(), cresset._utils.get_tensor_metadata(t)

    def write_tensor(self, name, t):
        """The tensor under a name, which may have slashes."""
        found = self.write_storage(t.untyped_storage())
        cresset.save(self.compute_tensor_metadata(t, found), self._file("tensors", name))


class ContentStoreReader:
    """Reads a folder that ContentStoreWriter has written. Tensors of one storage share it, as long as one of them is there, unless `cache` is False."""

    def __init__(self, loc, *, cache=True):
        self.loc = loc
        self.storage_cache = collections.defaultdict(dict) if cache else None  # {device: {hash: weak reference of the storage}}

    def read_storage(self, h, *, device=None):
        """The storage with a hash, on a device (that it was on, or the CPU)."""
        device = cresset.device(device) if device is not None else None
        if self.storage_cache is not None:
            known = self.storage_cache[device].get(h)
            known = known and known()
            if known is not None:
                known._fix_weakref()
                return known
        found = cresset.load(os.path.join(self.loc, "storages", h), weights_only=True, map_location=device)
        found = found._untyped_storage if isinstance(found, cresset.storage.TypedStorage) else found
        if self.storage_cache is not None:
            self.storage_cache[device][h] = weakref.ref(found)
        return found

    def read_tensor_metadata(self, name):
        """What ContentStoreWriter.compute_tensor_metadata said of the tensor. FileNotFoundError where there is none."""
        path = os.path.join(self.loc, "tensors", name)
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        return cresset.load(path, weights_only=True)

    def read_tensor(self, name, *, device=None):
        """The tensor of a name, on a device."""
        dtype, h, offset, size, stride, metadata = self.read_tensor_metadata(name)
        storage = self.read_storage(h, device=device)
        found = cresset.empty((), dtype=dtype, device=storage.device).set_(storage, offset, size, stride)
        cresset._utils.set_tensor_metadata(found, metadata)
        return found
