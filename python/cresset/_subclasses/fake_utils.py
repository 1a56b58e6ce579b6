"""CrossRefFakeMode: operators on fake tensors beside the same on real ones."""

import cresset
from cresset._library.opcheck import test_faketensor
from cresset._subclasses.fake_tensor import FakeTensor
from cresset.utils._python_dispatch import TorchDispatchMode, no_dispatch
from cresset.utils._pytree import tree_leaves

__all__ = ["CrossRefFakeMode", "output_alias_each_other", "outputs_alias_inputs", "outputs_are_inputs", "try_convert_fake_to_real"]


def _tensors(tree):
    return [t for t in tree_leaves(tree) if isinstance(t, cresset.Tensor)]


def _memory(tensor):
    """What names the memory of a tensor, real or fake; None where it has none."""
    try:
        with no_dispatch():
            return (tensor._elem if isinstance(tensor, FakeTensor) else tensor).untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None


def outputs_alias_inputs(outputs, inputs):
    """Has a tensor of the outputs the memory of one of the inputs?"""
    given = {_memory(t) for t in _tensors(inputs)} - {None}
    return any(_memory(t) in given for t in _tensors(outputs))


def outputs_are_inputs(outputs, inputs):
    """Is a tensor of the outputs one of the inputs?"""
    given = {id(t) for t in _tensors(inputs)}
    return any(id(t) in given for t in _tensors(outputs))


def output_alias_each_other(outputs):
    """Have two tensors of the outputs the same memory?"""
    places = [place for place in map(_memory, _tensors(outputs)) if place is not None]
    return len(set(places)) < len(places)


def try_convert_fake_to_real(ten_list):
    """The list with real tensors in place of fakes that lie over the storage of one that their mode has made a fake of; others stay."""
    return [t if real is None else real for t, real in ((t, _real_of(t) if isinstance(t, FakeTensor) else None) for t in ten_list)]


def _real_of(fake):
    place, converter = _memory(fake), fake.fake_mode.fake_tensor_converter.meta_converter
    for storage, number in converter.describer.lookup_storage.items():
        made = converter.storage_memo.get(number)
        if made is None:
            continue
        made._fix_weakref()
        if made._cdata == place:
            with no_dispatch(), cresset.no_grad():
                return cresset.empty(0, dtype=fake.dtype, device=storage.device).set_(storage, fake.storage_offset(), fake.size(), fake.stride())
    return None


class CrossRefFakeMode(TorchDispatchMode):
    """For a block: each operator runs on fake tensors too. RuntimeError where sizes, strides, dtypes or devices of the results differ,
    NotImplementedError for one that has no kernel for them. ignore_op_fn(operator) says which are left alone.
    """

    def __init__(self, ignore_op_fn=None, *, check_strides=True):
        super().__init__()
        self._ignored = ignore_op_fn or (lambda op: False)
        self._check_strides = check_strides

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self._ignored(func):
            test_faketensor(func, args, kwargs, check_strides=self._check_strides)
        return func(*args, **kwargs)
