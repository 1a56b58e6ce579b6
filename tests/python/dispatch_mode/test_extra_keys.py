"""Keys of layouts that cannot exist here are remembered in sets, and in wrappers that ask for them; nothing is sent to their kernels."""

import cresset as torch
from cresset._C import DispatchKey, DispatchKeySet


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, elem):
        keys = DispatchKeySet(DispatchKey.NestedTensor)
        return torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), elem.stride(), elem.storage_offset(), torch.contiguous_format, elem.dtype, elem.layout, elem.device, False, False, None,
            False, False, keys,
        )  # fmt: skip

    def __init__(self, elem):
        self.elem = elem

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(a.elem if isinstance(a, Wrapper) else a for a in args), **(kwargs or {}))


def test_wrappers_have_the_key_and_work():
    x = Wrapper(torch.ones(3))
    keys = torch._C._dispatch_keys(x)
    assert keys.has(DispatchKey.NestedTensor) and not keys.has(DispatchKey.AutogradNestedTensor) and not keys.has(DispatchKey.SparseCPU)
    assert "NestedTensor" in str(keys) and (x + 1).tolist() == [2, 2, 2]
    assert not torch._C._dispatch_keys(torch.ones(3)).has(DispatchKey.NestedTensor)


def test_sets():
    nested, sparse = DispatchKey.NestedTensor, DispatchKey.SparseCPU
    both, one = DispatchKeySet(nested, sparse, DispatchKey.CPU), DispatchKeySet(nested)
    assert both.has(nested) and both.has(sparse) and both.has(DispatchKey.CPU) and not one.has(sparse)
    assert (both | one) == both and (both & one) == one and not (both - one).has(nested) and (both - one).has(sparse)
    assert both.remove(sparse) == DispatchKeySet(nested, DispatchKey.CPU) and one.add(sparse).has(sparse) and one != DispatchKeySet()
    assert str(one) == "DispatchKeySet(NestedTensor)" and one.raw_repr() == DispatchKeySet().raw_repr()
