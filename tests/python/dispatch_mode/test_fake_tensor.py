"""Programs run on fake tensors: sizes, dtypes and devices as on real ones; values are asked for in vain."""

import copy
import gc
import pickle
import weakref

import pytest

import cresset as torch
from cresset import nn
from cresset._subclasses import FakeTensor, FakeTensorMode, UnsupportedOperatorException
from cresset._subclasses.fake_tensor import (
    DataDependentOutputException, DynamicOutputShapeException, FakeCopyMode, FakeTensorDeviceMismatchError, is_fake, maybe_get_fake_mode,
    unset_fake_temporarily,
)  # fmt: skip
from cresset.fx.experimental.symbolic_shapes import ShapeEnv


@pytest.fixture
def mode():
    return FakeTensorMode()


def test_copies_inside_of_the_mode(mode):
    with mode:
        x = torch.ones(2, 3, requires_grad=True)
        first, second = copy.deepcopy([x, x])
        model = copy.deepcopy(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
        with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
            copy.deepcopy(x * 2)
    assert first is second and first is not x and first.requires_grad and type(first) is FakeTensor and copy.copy(x).shape == x.shape
    assert all(is_fake(p) and type(p) is not torch.Tensor for p in model.parameters()) and is_fake(model[1].running_mean)


def test_factories_and_printing(mode):
    with mode:
        x, y, z = torch.ones(2, 3), torch.zeros(2, dtype=torch.int64, device="cuda"), torch.randn(4, requires_grad=True)
    assert type(x) is FakeTensor and x.device == torch.device("cpu") and x.fake_device == x.device and x.fake_mode is mode and is_fake(x)
    assert repr(x) == "FakeTensor(..., size=(2, 3))" and repr(y) == "FakeTensor(..., device='cuda:0', size=(2,), dtype=cresset.int64)"
    assert repr(z) == "FakeTensor(..., size=(4,), requires_grad=True)" and y.device.index == 0
    assert not isinstance(torch.ones(1), FakeTensor) and maybe_get_fake_mode([1, x]) is mode and maybe_get_fake_mode([1]) is None


def test_fakes_of_real_tensors(mode):
    real = torch.ones(4, 3)
    fake, view = mode.from_tensor(real), mode.from_tensor(real.t())
    assert mode.from_tensor(real) is fake and FakeTensor.from_tensor(real, mode) is fake and mode.from_tensor(fake) is fake
    assert view.shape == (3, 4) and view.stride() == (1, 3) and view._elem.untyped_storage()._cdata == fake._elem.untyped_storage()._cdata
    parameter = mode.from_tensor(nn.Parameter(real))
    assert isinstance(parameter, nn.Parameter) and parameter.requires_grad and repr(parameter).startswith("Parameter(FakeTensor(...")
    gone = weakref.ref(mode.from_tensor(torch.ones(5)))
    gc.collect()
    assert gone() is None


def test_operators_out_of_the_block(mode):
    x = mode.from_tensor(torch.ones(2, 3))
    assert type(x + 1) is FakeTensor and (x @ x.t()).shape == (2, 2) and x.unbind()[1].shape == (3,) and x.sum(0).shape == (3,)
    assert x.add_(1) is x and x.to(torch.float64).dtype is torch.float64 and torch.zeros_like(x, device="meta").is_meta


def test_in_place_changes_of_size(mode):
    with mode:
        x = torch.ones(2, 3)
        x.t_()
        assert x.shape == (3, 2) and x.stride() == (1, 3)
        x.resize_(4, 5).unsqueeze_(0)
        assert x.shape == (1, 4, 5)
        n = torch.tensor(2.0).unsqueeze_(0)
        assert n.shape == (1,) and n.item() == 2.0


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_training_on_a_device_that_is_not_there(mode, device):
    with mode:
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)).to(device)
        optimizer = torch.optim.Adam(model.parameters())
        loss = nn.functional.cross_entropy(model(torch.ones(2, 3, 8, 8, device=device)), torch.zeros(2, dtype=torch.int64, device=device))
        loss.backward()
        optimizer.step()
    assert loss.shape == () and loss.device.type == device
    for parameter in model.parameters():
        assert parameter.grad.shape == parameter.shape and parameter.grad.device.type == device


@pytest.mark.parametrize("ask", [lambda x: x[0, 0].item(), lambda x: bool(x[0, 0]), lambda x: torch.equal(x, x), lambda x: torch.allclose(x, x)])
def test_values_are_not_known(mode, ask):
    x = mode.from_tensor(torch.ones(2, 3))
    with pytest.raises(DataDependentOutputException, match="^aten.(_local_scalar_dense|equal|allclose).default$") as error:
        ask(x)
    assert isinstance(error.value.func, torch._C.OpOverload)


@pytest.mark.parametrize("ask", [lambda x: x.nonzero(), lambda x: torch.unique(x), lambda x: x[x > 0], lambda x: torch.masked_select(x, x > 0)])
def test_sizes_that_depend_on_values(mode, ask):
    with pytest.raises(DynamicOutputShapeException, match=r"^aten\."):
        ask(mode.from_tensor(torch.ones(2, 3)))


def test_numbers_that_the_program_wrote(mode):
    with mode:
        x = torch.tensor(3.0)
        assert x.item() == 3.0 and (x * 2).item() == 6.0 and x.add_(1).item() == 4.0 and int(torch.tensor(7)) == 7
        view = x.view(1)
        x.mul_(torch.full((), 2.0))  # a factor that is not known
        assert x.constant is None and view.constant is None
        for unknown in (x, torch.full((), 3.0), torch.tensor([3.0, 4.0])[0]):
            with pytest.raises(DataDependentOutputException):
                unknown.item()


@pytest.mark.parametrize("write", [lambda y: y.fill_(9), lambda y: y[1:2].fill_(9), lambda y: y.__setitem__(0, 9), lambda y: y.copy_(torch.full((4,), 9))])
def test_numbers_that_a_larger_view_may_write(mode, write):
    """What is too large to be carried along shares its memory: reading 1 after the write would be wrong."""
    with mode:
        x = torch.tensor([1])
        first = x.view(())
        y = x.expand(4)
        write(y)
        assert x.constant is None and first.constant is None and y.constant is None
        with pytest.raises(DataDependentOutputException):
            x.item()


def test_devices_do_not_mix(mode):
    with mode:
        there, here, number = torch.ones(2, device="cuda"), torch.ones(2), torch.ones(())
        with pytest.raises(FakeTensorDeviceMismatchError, match="Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"):
            there + here
        assert (there + number).device.type == "cuda" and (number + number).device.type == "cpu"
        assert there[torch.tensor([0, 1])].device.type == "cuda" and here.copy_(there).device.type == "cpu" and here.to("cuda").device.type == "cuda"


def test_real_tensors_do_not_mix(mode):
    real = torch.ones(2, 3)
    fake = mode.from_tensor(real)
    words = r"Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. Found in aten.add.Tensor\(FakeTensor"
    with pytest.raises(AssertionError, match=words):
        fake + real
    with mode, pytest.raises(AssertionError, match=r"Found in aten.mul.Tensor\(tensor\(\[...\], size=\(2, 3\)\), tensor"):
        real * real
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert type(real * real) is FakeTensor
    with pytest.raises(AssertionError, match="Mixing fake modes NYI"):
        fake + FakeTensorMode().from_tensor(real)


def test_operators_without_a_meta_kernel(mode):
    from cresset.library import _scoped_library

    with _scoped_library("fakelib", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x.repeat(2), "CPU")
        x = mode.from_tensor(torch.ones(2))
        with pytest.raises(UnsupportedOperatorException, match="fakelib.f.default"):
            torch.ops.fakelib.f(x)
        torch.library.register_fake("fakelib::f", lambda x: x.new_empty(2 * x.shape[0]), lib=lib)
        assert torch.ops.fakelib.f(x).shape == (4,)
    with mode:
        assert torch.randperm(5).dtype is torch.int64  # on zeros, since there is no Meta kernel


def test_operators_that_only_write_need_no_meta_kernel(mode):
    library = torch.library.Library("fake_tensor_writes", "DEF")
    for schema in ("one(Tensor x, Tensor(a!) out) -> ()", "many(Tensor x, Tensor(a!)[] out) -> ()", "nothing(Tensor x) -> ()"):
        library.define(schema)
    ops = torch.ops.fake_tensor_writes
    with mode:
        x = torch.ones(2)
        assert ops.one(x, x) is None and ops.many(x, [x]) is None
        with pytest.raises(UnsupportedOperatorException):
            ops.nothing(x)
    library._destroy()


def test_construction(mode):
    fake = FakeTensor(mode, torch.empty(2, device="meta"), torch.device("cuda"))
    assert fake.device == torch.device("cuda:0")
    with pytest.raises(AssertionError, match="elem.device.type must be 'meta', got cpu"):
        FakeTensor(mode, torch.empty(2), "cpu")
    with pytest.raises(TypeError, match="a ShapeEnv was required"):
        FakeTensorMode(shape_env=object())
    with pytest.raises(TypeError, match="from_tensor: a Tensor was required; a int was given"):
        mode.from_tensor(3)


def test_nesting_and_leaving(mode):
    with mode:
        with mode:
            assert is_fake(torch.ones(1))
        assert is_fake(torch.ones(1))
        with unset_fake_temporarily() as found:
            assert found is mode and not is_fake(torch.ones(1))
    assert not is_fake(torch.ones(1))


def test_copies(mode):
    x = mode.from_tensor(torch.ones(2))
    again = copy.deepcopy([x, x])
    assert again[0] is again[1] and is_fake(again[0]) and again[0] is not x
    layer = nn.Linear(2, 3)
    with FakeCopyMode(mode):
        fake = copy.deepcopy(layer)
    assert is_fake(fake.weight) and isinstance(fake.weight, nn.Parameter) and fake(x).shape == (3,) and not is_fake(layer.weight)


@pytest.mark.parametrize("shape, wanted", [((), None), ((2,), None), ((2, 3), None), ((0,), []), ((2, 0), [[], []]), ((0, 2), [])])
def test_lists_of_elements(shape, wanted):
    with FakeTensorMode():
        t = torch.ones(shape)
        if wanted is None:
            with pytest.raises(DataDependentOutputException, match="aten._local_scalar_dense.default"):
                t.tolist()
        else:
            assert t.tolist() == wanted


def test_converters():
    from cresset._subclasses.fake_tensor import FakeTensorConverter

    mode, converter, x = FakeTensorMode(), FakeTensorConverter(), torch.rand(2, 3, requires_grad=True)
    fake = converter.from_real_tensor(mode, x)
    assert type(fake) is FakeTensor and fake.fake_mode is mode and fake.requires_grad and fake is converter.from_real_tensor(mode, x)
    number = torch.tensor(3)
    assert converter.from_real_tensor(mode, number, make_constant=True).constant is number
    there = mode.fake_tensor_converter.from_meta_and_device(mode, torch.empty(2, 3, device="meta"), torch.device("cpu"))
    assert (there.shape, there.device.type) == ((2, 3), "cpu")
    meta = torch.empty(2, device="meta")
    there = converter.from_meta_and_device(mode, meta, "cpu")
    assert converter.from_meta_and_device(mode, meta, "cpu") is there
    with pytest.raises(AssertionError, match="tensor's device must be `meta`, got cpu instead"):
        converter.from_meta_and_device(mode, x, torch.device("cpu"))


def test_pickles_in_a_mode():
    real = torch.arange(600000).reshape(2, 300000)
    text = pickle.dumps(real)
    with FakeTensorMode():
        fake = pickle.loads(text)
    assert type(fake) is FakeTensor and (fake.shape, fake.dtype, fake.device.type) == (real.shape, torch.int64, "meta")  # as in PyTorch
    assert torch.equal(pickle.loads(text), real)


def test_sizes_are_numbers_in_an_environment():
    env = ShapeEnv(allow_dynamic_output_shape_ops=True)
    assert (env.allow_scalar_outputs, env.duck_shape, env.assume_static_by_default, env.guards, env.format_guards(), env.frozen) == (True, True, False, [], "", False)
    with FakeTensorMode(shape_env=env) as mode:
        x = mode.from_tensor(torch.ones(3, 4))
        assert mode.shape_env is env and x.shape == (3, 4) and type(x.shape[0]) is int and (x @ x.t()).shape == (3, 3)
        with pytest.raises(DynamicOutputShapeException):
            x.nonzero()


def test_tables_on_meta_are_looked_up_with_indices_of_the_cpu():
    def look():
        table = torch.nn.EmbeddingBag(10, 3, mode="sum", device="meta")
        places, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])
        return table(places, offsets), torch.nn.functional.embedding(places, table.weight)

    real = look()
    with FakeTensorMode():
        fake = look()
        with pytest.raises(FakeTensorDeviceMismatchError):
            torch.ones(3, device="meta") + torch.ones(3)
    assert [(f.shape, f.device.type) for f in fake] == [(r.shape, "meta") for r in real] == [((2, 3), "meta"), ((8, 3), "meta")]


def test_fakes_live_no_longer_than_their_tensors():
    mode = FakeTensorMode()
    converter = mode.fake_tensor_converter
    memories = converter.meta_converter.storage_memo
    x = torch.rand(2, 2, 2)
    bits = x.view(torch.int32)
    fakes = [mode.from_tensor(x), mode.from_tensor(x[1]), mode.from_tensor(bits)]
    assert fakes[0] is mode.from_tensor(x) and len({f.untyped_storage()._cdata for f in fakes}) == 1 and fakes[2].dtype == torch.int32
    memory = weakref.ref(x.untyped_storage())
    assert (len(converter.tensor_memo), len(memories)) == (3, 1)
    del x, bits, fakes
    assert (len(converter.tensor_memo), len(memories), memory()) == (0, 0, None)
