"""Tensors without values, that are otherwise as given ones."""

import cresset
import pytest
from cresset._subclasses.meta_utils import MetaConverter, assert_metadata_eq


def same(a, b):
    assert a == b


def cases():
    leaf = cresset.randn(4, 6, requires_grad=True)
    plain = cresset.randn(8).view(2, 4)
    plain.requires_grad_()
    return {
        "leaf": leaf, "computed": leaf.neg(), "view of a leaf": leaf[1:, ::2], "view of what was computed": leaf.neg()[1:], "channels last": cresset.empty(
            2, 3, 4, 5, memory_format=cresset.channels_last), "view of a view": plain.view(2, 2, 2), "leaf that is a view": plain,
        "parts of complex numbers": cresset.view_as_real(cresset.randn(3, dtype=cresset.complex64)), "bits": cresset.ones(3).view(cresset.int32),
        "with gaps": cresset.empty_strided((2, 2), (4, 2), requires_grad=True),
    }  # fmt: skip


@pytest.mark.parametrize("name", cases())
def test_everything_but_values(name):
    given = cases()[name]
    made = MetaConverter()(given)
    assert made.device.type == "meta"
    assert_metadata_eq(same, made, given)


def test_memory_is_shared_as_it_was():
    x, convert = cresset.randn(4), MetaConverter()
    a, b = convert(x[:2]), convert(x[1:])
    assert a is not b and a._base is b._base is convert(x) and convert.successful()
    before = a._version
    b.add_(1)
    assert a._version == before + 1


def test_what_is_gone_is_forgotten():
    convert, x = MetaConverter(), cresset.randn(3)
    made = convert(x)
    assert convert(x) is made and len(convert.tensor_memo) == len(convert.describer.lookup_tensor) == 1
    del x
    assert len(convert.describer.lookup_tensor) == 0 and len(convert.tensor_memo) == 1
    del made
    assert len(convert.tensor_memo) == len(convert.storage_memo) == 0


def test_what_cannot_be_converted():
    convert = MetaConverter()
    assert convert(3) == 3 and not convert.successful()
    assert convert(cresset.quantize_per_tensor(cresset.ones(2), 0.1, 0, cresset.quint8)) is NotImplemented
    parameter = cresset.nn.Parameter(cresset.ones(2))
    assert isinstance(convert(parameter), cresset.nn.Parameter) and not convert.successful()


def test_the_gradient():
    x = cresset.ones(2, requires_grad=True)
    x.sum().backward()
    assert MetaConverter()(x).grad.device.type == "meta"
