"""Fake tensors that carry real ones, and the other settings of fake modes; questions about the metadata of two tensors."""

from unittest import mock

import cresset
import pytest
from cresset._functorch import config
from cresset._prims_common import compare_tensor_meta, suggest_memory_format
from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode, UnsupportedOperatorException
from cresset.fx.experimental.symbolic_shapes import ShapeEnv


@pytest.fixture
def mode():
    with mock.patch.object(config, "fake_tensor_propagate_real_tensors", True):
        return FakeTensorMode()


def test_operators_run_on_the_real_tensors_too(mode):
    x, w = cresset.arange(6.0).reshape(2, 3), cresset.ones(3, 4)
    y = (mode.from_tensor(x) @ mode.from_tensor(w)).relu().t()
    assert type(y) is FakeTensor and cresset.equal(y.real_tensor, (x @ w).t()) and y.real_tensor.stride() == y.stride()


def test_views_share_their_real_memory_and_inputs_stay_as_they_are(mode):
    x = cresset.zeros(4)
    whole, part = mode.from_tensor(x), mode.from_tensor(x[2:])
    part.add_(1)
    assert whole.real_tensor.tolist() == [0, 0, 1, 1] and not x.any()
    whole.mul_(3)
    assert part.real_tensor.tolist() == [3, 3]


def test_what_is_not_known_is_not_carried(mode):
    x = mode.from_tensor(cresset.ones(2))
    with FakeTensorMode() as plain:
        assert plain.from_tensor(cresset.ones(2)).real_tensor is None
    x.real_tensor = None
    assert (x + 1).real_tensor is None


def test_meta_may_be_refused():
    with mock.patch.object(config, "fake_tensor_allow_meta", False), FakeTensorMode():
        with pytest.raises(AssertionError, match="device.type must not be 'meta'"):
            cresset.rand(2, device="meta")
    with FakeTensorMode():
        assert cresset.rand(2, device="meta").device.type == "meta"


def test_numbers_make_constants_and_views_of_constants_share():
    with FakeTensorMode():
        assert cresset.div(4, 4, rounding_mode="trunc").item() == 1
        x = cresset.tensor([4.0])
        y = x[:]
        assert x.storage()._cdata == y.storage()._cdata and x.storage().device.type == "meta"
        assert str(x.storage()).startswith("...")
        y.add_(1)
        assert x.item() == 5


def test_storages_are_read_below_modes():
    with FakeTensorMode():
        pass
    x = cresset.zeros(2)
    with FakeTensorMode():
        assert x.untyped_storage().tolist() == [0] * 8


def test_compare_tensor_meta():
    a = cresset.ones(2, 3)
    compare_tensor_meta(a, cresset.zeros(2, 3), check_strides=True)
    with pytest.raises(AssertionError, match="are not equal"):
        compare_tensor_meta(a, a.double())
    with pytest.raises(RuntimeError, match="Stride mismatch"):
        compare_tensor_meta(a, cresset.ones(3, 2).t(), check_strides=True)
    assert suggest_memory_format(a) is cresset.contiguous_format
    assert suggest_memory_format(cresset.ones(2, 3, 4, 5).contiguous(memory_format=cresset.channels_last)) is cresset.channels_last
    assert cresset._C.TensorType.get() == cresset.ops.aten.add.Tensor._schema.arguments[0].type


def test_types_of_schemas():
    device = cresset._C.OptionalType(cresset._C.DeviceObjType.get())
    arguments = cresset.ops.aten.empty.memory_format._schema.arguments
    assert [a.name for a in arguments if a.type.isSubtypeOf(device)] == ["device"]
    size, dtype = arguments[:2]
    assert (size.type.kind(), size.type.annotation_str, size.type.getElementType().kind()) == ("ListType", "List[int]", "IntType")
    assert (size.type.str(), size.real_type.str(), dtype.real_type.str()) == ("int[]", "SymInt[]", "ScalarType?")
    assert (dtype.real_type, dtype.type.str()) == ("ScalarType?", "int?") and {dtype.type: 1}["ScalarType?"] == 1


def test_real_tensors_of_fakes():
    from cresset._subclasses.fake_utils import try_convert_fake_to_real

    x, mode = cresset.arange(6.0), FakeTensorMode()
    part = mode.from_tensor(x)[2:4]
    real, other = try_convert_fake_to_real([part, part + 1])
    assert real.tolist() == [2, 3] and real.data_ptr() == x[2:].data_ptr() and type(other) is FakeTensor


def test_fakes_are_inferred_with_an_environment_of_sizes_only():
    library = cresset.library.Library("fake_real_tensors", "DEF")
    library.define("cosine(Tensor x) -> Tensor")
    library.impl("cosine", lambda x: x.cos(), "CPU")
    cosine, x = cresset.ops.fake_real_tensors.cosine, cresset.ones(2, 3)
    with mock.patch.object(config, "fake_tensor_propagate_real_tensors", True):
        alone, together = FakeTensorMode(), FakeTensorMode(shape_env=ShapeEnv())
    with pytest.raises(UnsupportedOperatorException, match="fake_real_tensors.cosine.default"):
        cosine(alone.from_tensor(x))
    assert cosine(together.from_tensor(x)).shape == (2, 3)


def test_checks_of_operators_with_sizes_that_depend_on_values():
    @cresset.library.custom_op("fake_real_tensors::positive", mutates_args=())
    def positive(x: cresset.Tensor) -> cresset.Tensor:
        return x[x > 0].clone()

    @positive.register_fake
    def _(x):
        return x.new_empty(cresset.library.get_ctx().new_dynamic_size())

    with mock.patch.object(config, "fake_tensor_propagate_real_tensors", True):
        cresset.library.opcheck(positive, (cresset.tensor([1.0, -1.0, 2.0]),), test_utils="test_faketensor")
