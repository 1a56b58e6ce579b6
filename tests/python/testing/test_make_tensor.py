"""make_tensor: intervals, dtypes, layouts. The numbers for a seed are PyTorch's on the CPU."""

import math

import cresset
import pytest
from cresset.testing import make_tensor

# Recorded with torch.manual_seed(0); make_tensor(4, …) of PyTorch 2.13.
RECORDED = {
    "float32": [-0.06738138198852539, 4.8279924392700195, -7.407406330108643, -6.623451232910156], "int64": [6, -5, -9, -9], "uint8": [4, 9, 3, 0],
    "bool": [False, True, True, False], "float16": [-0.0673828125, 4.828125, -7.40625, -6.625],
    "complex64": [-0.06738138198852539 + 4.8279924392700195j, -7.407406330108643 - 6.623451232910156j, -3.4663891792297363 + 2.4134163856506348j,
                  -0.17831861972808838 + 7.136005401611328j],
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_values(name):
    cresset.manual_seed(0)
    assert make_tensor(4, dtype=getattr(cresset, name), device="cpu").tolist() == RECORDED[name]


def test_gaps():
    cresset.manual_seed(0)
    cresset.rand(12)
    x = make_tensor(2, 3, dtype=cresset.float32, device="cpu", low=0, high=1, noncontiguous=True)
    assert x.stride() == (6, 2) and not x.is_contiguous()
    assert [[round(v, 4) for v in row] for row in x.tolist()] == [[0.1689, 0.5185, 0.8000], [0.2823, 0.9152, 0.8742]]


def test_options():
    assert make_tensor((2, 3), dtype=cresset.float64, device="meta").shape == (2, 3)
    assert not make_tensor((2, 3), dtype=cresset.complex64, device="cpu")._is_view()
    assert make_tensor(2, 3, dtype=cresset.float32, device="cpu", requires_grad=True).requires_grad
    assert make_tensor(2, 3, 4, 5, dtype=cresset.float32, device="cpu", memory_format=cresset.channels_last).is_contiguous(memory_format=cresset.channels_last)
    assert make_tensor(100, dtype=cresset.int64, device="cpu", low=0, high=2, exclude_zero=True).min() == 1
    wide = make_tensor(1000, dtype=cresset.uint8, device="cpu", low=-5, high=1000)
    assert 0 <= wide.min() and wide.max() > 200


@pytest.mark.parametrize("options, text", [
    ({"dtype": cresset.float32, "low": 2, "high": 1}, "`low` must be less than `high`, but got 2 >= 1"),
    ({"dtype": cresset.int64, "low": math.nan, "high": 1}, "`low` and `high` cannot be NaN, but got low=nan and high=1"),
    ({"dtype": cresset.int64, "requires_grad": True}, "`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype=cresset.int64"),
    ({"dtype": cresset.float32, "noncontiguous": True, "memory_format": cresset.channels_last},
     "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got noncontiguous=True and memory_format=cresset.channels_last"),
    ({"dtype": cresset.uint8, "low": 300, "high": 500}, "The value interval specified by `low` and `high` is [300, 500), but cresset.uint8 only supports [0, 256)"),
], ids=range(5))  # fmt: skip
def test_refusals(options, text):
    with pytest.raises(ValueError) as error:
        make_tensor(2, device="cpu", **options)
    assert str(error.value) == text


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.complex64])
def test_one_value_is_deprecated(dtype):
    with pytest.warns(FutureWarning, match="Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated"):
        made = make_tensor(3, dtype=dtype, device="cpu", low=2, high=2)
    assert made.tolist() == [complex(2, 2) if dtype.is_complex else 2] * 3
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        make_tensor(3, dtype=cresset.int64, device="cpu", low=2, high=2)


def test_eight_bit_floats():
    cresset.manual_seed(0)
    made = make_tensor(2, 3, dtype=cresset.float8_e5m2, device="cpu")
    assert made.dtype is cresset.float8_e5m2 and made.float().tolist() == [[-0.0625, 5.0, -7.0], [-7.0, -3.5, 2.5]]
