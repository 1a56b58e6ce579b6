"""Wrapper subclasses: a tensor without memory whose class sees every operator."""

import copy
import operator

import pytest

import cresset as torch
from cresset.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass, no_dispatch, return_and_correct_aliasing, transform_subclass
from cresset.utils._pytree import tree_leaves, tree_map, tree_map_only

log = []


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype, layout=elem.layout, device=elem.device,
            requires_grad=requires_grad,
        )  # fmt: skip
        made.elem = elem
        return made

    def __repr__(self):
        return f"Wrapper({self.elem!r})"

    def __tensor_flatten__(self):
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, outer_size, outer_stride):
        return Wrapper(inner["elem"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        log.append(str(func).removeprefix("aten."))
        inner = lambda tree: tree_map_only(Wrapper, lambda w: w.elem, tree)  # noqa: E731
        out = tree_map_only(torch.Tensor, Wrapper, func(*inner(args), **inner(kwargs or {})))
        return return_and_correct_aliasing(func, args, kwargs, out)


@pytest.fixture(autouse=True)
def empty_log():
    log.clear()


def test_construction():
    base = torch.arange(6.0).view(2, 3).t()
    w = Wrapper(base)
    assert w.shape == (3, 2) and w.stride() == (1, 3) and w.dtype is torch.float32 and not w.is_contiguous()
    keys = torch._C._dispatch_keys(w)
    assert keys.has("Python") and keys.has("CPU") and keys.has("AutogradCPU")
    assert Wrapper(torch.ones(1), requires_grad=True).is_leaf


def test_forward_and_backward_see_operators():
    x = Wrapper(torch.tensor([-1.0, 2.0, 3.0]), requires_grad=True)
    y = (x * 2).relu().sum()
    assert type(y) is Wrapper and y.elem.item() == 10.0 and y.grad_fn.name() == "SumBackward0"
    y.backward()
    assert type(x.grad) is Wrapper and x.grad.elem.tolist() == [0.0, 2.0, 2.0]
    names = [n for n in log if not n.startswith(("detach", "clone"))]
    assert names == [
        "mul.Tensor", "relu.default", "sum.default", "ones_like.default", "expand.default", "threshold_backward.default", "mul.Tensor",
    ]  # fmt: skip


def test_second_derivative():
    x = Wrapper(torch.tensor([1.0, 2.0]), requires_grad=True)
    (first,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.elem.tolist() == [6.0, 12.0]


def test_views_and_writes():
    v = Wrapper(torch.ones(2, 3))
    flat = v.view(6)
    assert flat._is_view() and flat._base is v
    before = v._version
    assert flat.add_(1) is flat
    assert v.elem.tolist() == [[2.0] * 3] * 2 and v._version > before
    out = Wrapper(torch.empty(2, 3))
    assert torch.add(v, v, out=out) is out and out.elem[0, 0].item() == 4.0
    v[0] = 5.0
    assert v.elem[0].tolist() == [5.0] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda w: w + torch.ones(2, 2), lambda w: torch.cat([torch.ones(2, 2), w]), lambda w: torch.split(w, 1)[0], lambda w: w.max(1).values,
        lambda w: w.t().contiguous(), lambda w: w.detach(), lambda w: w.data, lambda w: w.clone(), lambda w: torch.ones_like(w), lambda w: w.new_zeros(2),
        lambda w: w.to(torch.float64), lambda w: copy.deepcopy(w), lambda w: torch.softmax(w, 1), lambda w: torch.nn.functional.layer_norm(w, (2,)),
        lambda w: next(iter(w)), lambda w: w[w > 0], lambda w: torch.ones(2, 2)[Wrapper(torch.tensor([0]))], lambda w: torch.nn.Parameter(w),
        lambda w: torch.nn.functional.linear(w, w), lambda w: w.masked_fill(w > 0, 2.0), lambda w: torch.nn.Linear(2, 2)(w),
    ],
)  # fmt: skip
def test_results_are_wrapped(call):
    result = call(Wrapper(torch.ones(2, 2)))
    assert type(result) is Wrapper and result.elem.shape == result.shape


def test_composites_arrive_as_their_parts():
    torch.nn.functional.linear(Wrapper(torch.ones(2, 3)), Wrapper(torch.ones(4, 3)), Wrapper(torch.ones(4)))
    assert [n for n in log if not n.startswith("detach")] == ["t.default", "addmm.default"]


def test_modules_and_optimisers():
    layer = torch.nn.Linear(3, 2)
    for name, p in list(layer.named_parameters()):
        setattr(layer, name, torch.nn.Parameter(Wrapper(p.detach().clone())))
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.5)
    before = layer.bias.elem.clone()
    layer(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    assert (layer.bias.elem - (before - 0.5)).abs().max().item() < 1e-6


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda w: w.numpy(), RuntimeError, "is not supported for tensor subclasses"),
        (lambda w: w.tolist(), RuntimeError, "is not supported for tensor subclasses, got Wrapper"),
        (lambda w: w.untyped_storage().data_ptr(), RuntimeError, "Attempted to access the data pointer on an invalid python storage"),
        (lambda w: w.untyped_storage().resize_(9), RuntimeError, r"Attempted to call resize_\(\) on an invalid python storage"),
        (lambda w: w.untyped_storage()[0], RuntimeError, "its data is not allocated yet"),
        (lambda w: w.untyped_storage().tolist(), RuntimeError, "its data is not allocated yet"),
        (lambda w: w.untyped_storage().clone(), RuntimeError, "its data is not allocated yet"),
        (lambda w: torch.Tensor._make_wrapper_subclass(torch.nn.Parameter, (2,)), TypeError, "Parameter must define __torch_dispatch__"),
        (lambda w: torch.Tensor._make_wrapper_subclass(Wrapper, "x"), TypeError, "must be tuple of ints"),
        (lambda w: torch.Tensor._make_wrapper_subclass(Wrapper, (2,), strides=(1, 1)), RuntimeError, "dimensionality of sizes"),
        (lambda w: torch.Tensor._make_wrapper_subclass(Wrapper, (2,), dispatch_sizes_strides_policy="both"), ValueError, "Unknown sizes_strides_policy: both; expected 'strides' or 'sizes'"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call(Wrapper(torch.ones(2)))


@pytest.mark.parametrize("operation", [lambda w: w + 1, lambda w: w.sum(), lambda w: w @ w, lambda w: torch.cat([w, w]), lambda w: w.add_(1)])
def test_kernels_refuse_memory_that_is_not_there(operation):
    with no_dispatch(), pytest.raises(RuntimeError, match="its data is not allocated yet|Cannot access storage"):
        operation(Wrapper(torch.ones(2)))


def test_classes_are_asked_in_order():
    asked = []

    def make(name, base):
        def dispatch(cls, func, types, args=(), kwargs=None):
            asked.append((name, [t.__name__ for t in types]))
            return NotImplemented

        return type(name, (base,), {"__torch_dispatch__": classmethod(dispatch)})

    Base = make("Base", torch.Tensor)
    Derived = make("Derived", Base)
    one = lambda cls: torch.Tensor._make_subclass(cls, torch.ones(1))  # noqa: E731
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'cresset._ops.aten.add.Tensor'.*\n\n  - tensor subclass .*Derived.*\n\n  - tensor subclass .*Base"):
        torch.add(one(Base), one(Derived))
    assert asked == [("Derived", ["Derived", "Base"]), ("Base", ["Derived", "Base"])]


def test_classes_with_memory():
    class Counted(torch.Tensor):
        calls = 0

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            Counted.calls += 1
            with no_dispatch():
                return func(*args, **(kwargs or {}))

    assert Counted.__torch_function__ is torch._C._disabled_torch_function_impl
    c = Counted([1.0, 2.0])
    assert (c + 1).tolist() == [2.0, 3.0] and Counted.calls == 1


def test_flattening():
    w = Wrapper(torch.ones(2))
    assert is_traceable_wrapper_subclass(w) and not is_traceable_wrapper_subclass(torch.ones(1))
    doubled = transform_subclass(w, lambda name, inner: inner * 2)
    assert type(doubled) is Wrapper and doubled.elem.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="must give size"):
        transform_subclass(w, lambda name, inner: inner[:1])


def test_the_first_gradient_is_kept_without_a_copy():
    """A gradient that nobody else holds becomes .grad by detach, as in PyTorch; one of another layout is copied into the leaf's."""

    w = Wrapper(torch.ones(2)).requires_grad_()
    loss = (w * 2).sum()
    log.clear()
    loss.backward()
    assert log[-2:] == ["mul.Tensor", "detach.default"] and "clone.default" not in log
    loss = (w * 2).sum()
    loss.backward()
    assert log[-1] == "add_.Tensor"
    w.grad = None
    loss = w.sum()
    log.clear()
    loss.backward()
    assert log[-2:] == ["new_empty_strided.default", "copy_.default"]
    assert w.grad.elem.tolist() == [1, 1]


class Sized(torch.Tensor):
    @staticmethod
    def __new__(cls, *size, **options):
        return torch.Tensor._make_wrapper_subclass(cls, size, **options)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_a_wrapper_shows_a_storage_without_memory():
    w = Sized(3, 2)
    storage = w.untyped_storage()
    assert (storage.nbytes(), len(storage), storage.device.type, storage.resizable()) == (24, 24, "cpu", True)
    assert w.untyped_storage()._cdata == storage._cdata and w.untyped_storage() is storage
    assert Sized(3, 2).untyped_storage()._cdata != storage._cdata, "of its own"
    assert w.storage().dtype is torch.float32
    assert Sized(2, dtype=torch.float64).untyped_storage().nbytes() == 16
    assert Sized(2, 2, strides=(5, 1)).untyped_storage().nbytes() == 28, "up to the last element"
    assert Sized(3, storage_size=100).untyped_storage().nbytes() == 100
    assert Sized(3, device="meta").untyped_storage().device.type == "meta"
    with pytest.raises(RuntimeError, match="storage_size must not be negative"):
        Sized(3, storage_size=-1)


# Sizes and strides that PyTorch 2.13 gives for a wrapper of size (2, 3), below its class.
GEOMETRY = {
    "t.default": ((), (3, 2), (1, 3)),
    "view.default": (([6],), (6,), (1,)),
    "slice.Tensor": ((0, 1, 2), (1, 3), (3, 1)),
    "expand.default": (([4, 2, 3],), (4, 2, 3), (0, 3, 1)),
    "select.int": ((0, 1), (3,), (1,)),
    "unsqueeze.default": ((0,), (1, 2, 3), (6, 3, 1)),
    "as_strided.default": (([2], [1]), (2,), (1,)),
    "diagonal.default": ((), (2,), (4,)),
    "unfold.default": ((0, 1, 1), (2, 3, 1), (3, 1, 3)),
    "detach.default": ((), (2, 3), (3, 1)),
    "_unsafe_view.default": (([6],), (6,), (1,)),
}


@pytest.mark.parametrize("name", GEOMETRY)
def test_views_of_a_wrapper_below_its_class_are_geometry(name):
    args, shape, stride = GEOMETRY[name]
    w, target = Sized(2, 3), Sized(*shape)
    guard = torch._C._DisableTorchDispatch()
    try:
        view = operator.attrgetter(name)(torch.ops.aten)(w, *args)
        assert type(view) is torch.Tensor and (tuple(view.shape), view.stride()) == (shape, stride)
        assert target.set_(view) is target
        assert torch.ops.aten.view.dtype(w, torch.int32).dtype is torch.int32
    finally:
        del guard
    assert (tuple(target.shape), target.stride()) == (shape, stride)


def test_tensors_have_no_bits_to_be_read_conjugated_or_negated():
    x = torch.ones(2, dtype=torch.complex64)
    for setter, word in ((torch._C._set_conj, "conj"), (torch._C._set_neg, "neg")):
        setter(x, False)
        with pytest.raises(NotImplementedError, match=f"_set_{word}: no tensor has a bit"):
            setter(x, True)


def test_views_made_by_a_mode_stay_the_objects_that_they_are():
    seen = {}

    class Keep(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            for t in tree_leaves((args, kwargs)):
                if isinstance(t, torch.Tensor):
                    strangers.append(func.name()) if id(t) not in seen else None
            result = func(*args, **(kwargs or {}))
            for t in tree_leaves(result):
                if isinstance(t, torch.Tensor):
                    seen[id(t)] = t
            return result

    strangers = []
    with Keep():
        x = torch.randn(3, requires_grad=True)
        y = x.view(3, 1)
        assert id(y) in seen and y._is_view() and y._base is x
        (y * x.expand(3, 3)).sum().backward()
        with torch.no_grad():
            assert all(id(t) in seen for t in (x.t(), *x.unbind()))
    assert strangers == []


def test_wrappers_of_views_show_one_storage():
    from cresset.multiprocessing.reductions import StorageWeakRef

    class Plain(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            inner = tree_map_only(Plain, lambda w: w.inner, args)
            out = tree_map_only(torch.Tensor, Plain, func(*inner, **(kwargs or {})))
            return return_and_correct_aliasing(func, args, kwargs, out)

    def same(a, b):
        return StorageWeakRef(a.untyped_storage()) == StorageWeakRef(b.untyped_storage())

    w = Plain(torch.randn(4, 2))
    assert same(w.view(8), w) and all(same(part, w) for part in w.split(2)) and not same(w.mul(2), w)
    assert w.view(8).untyped_storage().nbytes() == w.untyped_storage().nbytes()


def test_an_operator_that_no_class_answers_is_no_operator():
    class Silent(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    t = torch.Tensor._make_wrapper_subclass(Silent, (2,))
    for call in (lambda: t + 1, lambda: 1 + t, lambda: t * torch.ones(2), lambda: t @ t, lambda: t < 2):
        with pytest.raises(TypeError, match="unsupported operand type|not supported between"):
            call()
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        torch.add(t, 1)


def test_views_of_wrappers_count_their_changes_with_the_base():
    class Plain(torch.Tensor):
        @staticmethod
        def __new__(cls, elem):
            return torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype)

        def __init__(self, elem):
            self.elem = elem

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            def unwrapped(x):
                return x.elem if isinstance(x, Plain) else x

            def wrapped(x):
                return Plain(x) if isinstance(x, torch.Tensor) else x

            return tree_map(wrapped, func(*tree_map(unwrapped, args), **tree_map(unwrapped, kwargs or {})))

    x, count = Plain(torch.ones(2, 2)), 0
    for make in (lambda: x.detach(), lambda: x.view(4), lambda: x[0], lambda: x.split(1)[0], lambda: x.t().unsqueeze(0), lambda: x):
        view = make()
        view.add_(1)
        count += 1
        assert x._version == view._version == count
    alone = x.data
    alone.add_(1)
    assert (x._version, alone._version) == (count, 1)
    leaf = Plain(torch.ones(2)).requires_grad_()
    y = leaf.exp()
    y.detach().mul_(2)  # y was saved for backward
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()


def test_the_storage_of_a_wrapper_has_nothing_to_read_or_write():
    class Plain(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (2,))

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError

    storage = Plain().untyped_storage()
    assert storage.size() == storage.nbytes() == 8
    for use in (
        storage.data_ptr, lambda: storage.resize_(0), lambda: storage.copy_(storage), lambda: storage.fill_(0), lambda: storage.__setitem__(0, 1),
        storage.share_memory_, lambda: storage._write_file("file"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="on an invalid python storage"):
            use()
def test_the_address_of_a_wrapper_is_none():
    assert torch.Tensor._make_wrapper_subclass(Wrapper, (2,)).data_ptr() == 0


def test_fakes():
    from cresset._subclasses import FakeTensor, FakeTensorMode

    x = Wrapper(torch.arange(6.0).view(2, 3).t(), requires_grad=True)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
        assert type(fake) is Wrapper and type(fake.elem) is FakeTensor and fake.requires_grad
        assert (fake.shape, fake.stride(), fake.elem.stride()) == ((3, 2), (1, 3), (1, 3))
        product = fake @ fake.T
    assert type(product) is Wrapper and type(product.elem) is FakeTensor and product.shape == (3, 3)
