"""Element types that no tensor has are names that libraries tell their own tensors by. What they say is PyTorch 2.13's."""

import copy
import io
import pickle

import cresset as torch
import pytest

INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)]
BITS = {"bits1x8": 1, "bits2x4": 1, "bits4x2": 1, "bits8": 1, "bits16": 2}


@pytest.mark.parametrize("name", [*INTEGERS, *BITS, "float4_e2m1fn_x2"])
def test_a_dtype(name):
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype) and str(dtype) == f"torch.{name}" and dtype is getattr(torch, name)
    assert dtype.itemsize == BITS.get(name, 1) and dtype.is_floating_point is name.startswith("float") and dtype.is_complex is False
    assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype and {dtype: 1}[dtype] == 1
    assert dtype.to_real() is dtype and dtype not in (torch.int8, torch.uint8)
    file = io.BytesIO()
    torch.save({"dtype": dtype}, file)
    file.seek(0)
    assert torch.load(file, weights_only=True) == {"dtype": dtype}


def test_signs():
    assert torch.float4_e2m1fn_x2.is_signed is True and torch.int4.is_signed is False and torch.uint4.is_signed is False
    with pytest.raises(RuntimeError, match="^Bits types are undefined$"):
        torch.bits8.is_signed  # noqa: B018
    assert torch.bit is torch.uint1


@pytest.mark.parametrize("name, word", [("int4", "Int4"), ("uint3", "UInt3"), ("bits1x8", "Bits1x8"), ("float4_e2m1fn_x2", "Float4_e2m1fn_x2"), ("quint4x2", "QUInt4x2"), ("qint8", "QInt8")])
def test_complex_forms(name, word):
    with pytest.raises(RuntimeError, match=f"^Unknown Complex ScalarType for {word}$"):
        getattr(torch, name).to_complex()


def test_limits():
    with pytest.raises(TypeError, match="requires an integer input type. Use torch.finfo to handle 'torch.iinfo'$"):
        torch.iinfo(torch.int4)
    with pytest.raises(TypeError, match="requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'$"):
        torch.finfo(torch.bits8)
    assert torch.iinfo(torch.quint8).max == 255


@pytest.mark.parametrize("name", ["int4", "float4_e2m1fn_x2", "bits8"])
def test_no_tensor_has_them(name):
    dtype = getattr(torch, name)
    for make in (lambda: torch.empty(3, dtype=dtype), lambda: torch.ones(3, dtype=torch.uint8).view(dtype), lambda: torch.ones(3).to(dtype)):
        with pytest.raises(TypeError):
            make()
