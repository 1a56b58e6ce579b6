"""Tensors that share memory share it in a deepcopy too."""

import copy

import cresset
import pytest


def test_views_stay_views():
    a = cresset.ones(4)
    x, y, z = copy.deepcopy((a, a[:2], a.view(2, 2).t()))
    y.add_(1)
    z[1, 1] = 9
    assert x.tolist() == [2, 2, 1, 9] and a.tolist() == [1, 1, 1, 1]
    assert z.stride() == (1, 2) and x.data_ptr() == y.data_ptr() != a.data_ptr()


def test_state_of_objects():
    class Holder:
        def __init__(self):
            self.flat = cresset.arange(6.0)
            self.parts = [self.flat[:3], self.flat[3:]]

    holder = copy.deepcopy(Holder())
    holder.flat.zero_()
    assert [p.tolist() for p in holder.parts] == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.conj(), lambda t: t[::2], lambda t: t.expand(3, 4), lambda t: t.imag, lambda t: t.conj().imag])
def test_kinds(make):
    t = make(cresset.arange(4.0).to(cresset.complex64) * (1 + 2j))
    c = copy.deepcopy(t)
    assert cresset.equal(c, t) and c.stride() == t.stride() and c.is_conj() == t.is_conj() and c.dtype == t.dtype
    assert c.untyped_storage()._cdata != t.untyped_storage()._cdata


def test_leaves_gradients_and_attributes():
    t = cresset.ones(2, requires_grad=True)
    t.grad, t.note = cresset.full((2,), 3.0), ["kept"]
    c = copy.deepcopy(t)
    assert c.requires_grad and c.is_leaf and c.grad.tolist() == [3, 3] and c.grad is not t.grad and c.note == ["kept"] and c.note is not t.note
    assert copy.deepcopy(cresset.empty(2, device="meta")).is_meta
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(t * 2)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.complex64])
@pytest.mark.parametrize("first", ["tensor", "storage"])
def test_storages_of_one_type(dtype, first):
    a = cresset.arange(4).to(dtype)
    given = (a, a.storage(), a.untyped_storage(), a.view(2, 2))
    copies = copy.deepcopy(given if first == "tensor" else given[::-1])
    x, typed, untyped, view = copies if first == "tensor" else copies[::-1]
    x.add_(1)
    assert typed.tolist() == [1, 2, 3, 4] and view.tolist() == [[1, 2], [3, 4]] and a.tolist() == [0, 1, 2, 3]
    assert typed.untyped().data_ptr() == untyped.data_ptr() == x.data_ptr() and typed.dtype == dtype


class _Plain(cresset.Tensor):
    pass


class _WrongEmpty(cresset.Tensor):
    def new_empty(self, shape):
        return cresset.Tensor(shape)


class _OwnEmpty(cresset.Tensor):
    def new_empty(self, shape):
        return type(self)(shape)


@pytest.mark.parametrize("kind", [_Plain, _WrongEmpty])
def test_a_subclass_says_how_it_is_made(kind):
    given = cresset.ones(2).as_subclass(kind)
    with pytest.raises(RuntimeError, match="for which that function returns another instance of the same subclass. You should either properly implement new_empty"):
        copy.deepcopy(given)
    with pytest.raises(RuntimeError, match="new_empty"):
        copy.deepcopy(cresset.nn.Parameter(given))


def test_a_subclass_with_new_empty():
    given = cresset.arange(6.0).view(2, 3).t().as_subclass(_OwnEmpty)
    given.note = ["kept"]
    c = copy.deepcopy(given)
    assert type(c) is _OwnEmpty and c.stride() == (1, 3) and c.tolist() == given.tolist() and c.note == ["kept"] and c.note is not given.note
    assert type(copy.deepcopy(cresset.nn.Buffer(cresset.ones(2)))) is cresset.Tensor


def test_a_subclass_without_memory_says_how_it_is_cloned():
    class Cloned(cresset.Tensor):
        def clone(self):
            return self.detach().as_subclass(Cloned)

    copied = copy.deepcopy(cresset.ones(2, device="meta").as_subclass(Cloned))
    assert type(copied) is Cloned and copied.is_meta
    with pytest.raises(RuntimeError, match="properly implement clone.. and for which cloning returns another instance"):
        copy.deepcopy(cresset.ones(2, device="meta").as_subclass(_OwnEmpty))
