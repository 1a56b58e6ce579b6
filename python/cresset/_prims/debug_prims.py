"""An operator that gives a tensor of a folder: programs that repeat others take their inputs from it."""

import contextlib

import cresset
from cresset._dynamo.testing import rand_strided
from cresset.utils._content_store import ContentStoreReader

__all__ = ["load_tensor_reader", "register_debug_prims"]

LOAD_TENSOR_READER = None


@contextlib.contextmanager
def load_tensor_reader(loc):
    """For a block debugprims.load_tensor reads the folder, which a ContentStoreWriter has written; elsewhere it gives random numbers."""
    global LOAD_TENSOR_READER
    if LOAD_TENSOR_READER is not None:
        raise AssertionError("load_tensor_reader: there is one already.")
    LOAD_TENSOR_READER = ContentStoreReader(loc, cache=False)  # nothing is shared between tensors that are loaded
    try:
        yield
    finally:
        LOAD_TENSOR_READER = None


def _load_tensor(name, size, stride, *, dtype, device):
    if LOAD_TENSOR_READER is None:
        return rand_strided(size, stride, dtype, device)
    found = LOAD_TENSOR_READER.read_tensor(name, device=device)
    if (list(found.shape), list(found.stride()), found.device) != (list(size), list(stride), cresset.device(device)):
        raise RuntimeError(f"load_tensor: {name} has size {list(found.shape)} and strides {list(found.stride())} on {found.device}; {list(size)}, {list(stride)} on {device} was required.")
    return found if found.dtype == dtype else found.to(dtype)


def _load_fake(name, size, stride, *, dtype, device):
    return cresset.empty_strided(size, stride, dtype=dtype, device=device)


def register_debug_prims():
    """Nothing: the operator is there once this module is."""


_library = cresset.library.Library("debugprims", "DEF")
_library.define("load_tensor(str name, int[] size, int[] stride, *, ScalarType dtype, Device device) -> Tensor", tags=(cresset.Tag.pt2_compliant_tag,))
_library.impl("load_tensor", _load_tensor, "BackendSelect")
cresset.library.register_fake("debugprims::load_tensor", _load_fake, lib=_library)
