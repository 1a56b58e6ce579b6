"""Bools in memory are bytes, any of which but 0 is true: views of bytes and memory of other programs have more than 0 and 1. Expected: the same call on
the bytes that the values stand for."""

import cresset as torch
import numpy as np
import pytest

N = 83
TRUE = torch.tensor(np.random.RandomState(0).rand(N) < 0.6)
BYTES = torch.where(TRUE, torch.tensor(np.random.RandomState(1).randint(1, 256, N), dtype=torch.uint8), torch.tensor(0, dtype=torch.uint8))
OTHER = torch.tensor(np.random.RandomState(2).rand(N) < 0.5)
NUMBERS = torch.arange(float(N))

DTYPES = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64)
CALLS = {
    **{str(dtype): lambda a, dtype=dtype: a.to(dtype) for dtype in DTYPES},
    **{name: lambda a, name=name: getattr(torch, name)(a, OTHER) for name in (
        "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "add", "mul", "maximum",
        "minimum", "isclose", "heaviside", "equal",
    )},
    **{name: lambda a, name=name: getattr(torch, name)(a) for name in (
        "logical_not", "bitwise_not", "sum", "any", "all", "prod", "count_nonzero", "nonzero", "amax", "amin", "max", "min", "aminmax", "unique",
        "sqrt", "sin", "sigmoid", "diff", "sign", "isnan", "argsort",
    )},
    **{f"{name} of a dimension": lambda a, name=name: getattr(torch, name)(a, 0) for name in ("cumsum", "cumprod", "sum", "prod", "any", "all", "max", "min", "mode", "cummax", "cummin")},
    "== True": lambda a: a == True,  # noqa: E712
    "by numbers": lambda a: a * NUMBERS, "and numbers": lambda a: a + NUMBERS, "pow": lambda a: a**2,
    "cat": lambda a: torch.cat([a, OTHER, a]) == True, "cat of types": lambda a: torch.cat([a, NUMBERS]), "where": lambda a: torch.where(a, NUMBERS, -NUMBERS),  # noqa: E712
    "sort": lambda a: a.sort(stable=True), "sort down": lambda a: a.sort(stable=True, descending=True), "unique of rows": lambda a: a[:82].reshape(41, 2).unique(dim=0),
    "counts": lambda a: a.unique(return_counts=True), "index": lambda a: NUMBERS[a], "masked_fill": lambda a: NUMBERS.masked_fill(a, -1.0),
    "copy": lambda a: torch.empty(N).copy_(a), "copy of rows": lambda a: torch.empty(2, 41).copy_(a[:82].reshape(41, 2).t()), "item": lambda a: [x.item() for x in a],
    "list": lambda a: a.tolist(), "text": lambda a: str(a), "mean": lambda a: a.float().mean(), "product": lambda a: a.float() @ NUMBERS, "a number": lambda a: NUMBERS * a[2],
    "every other": lambda a: a[::2].long(), "every other, summed": lambda a: a[::2].sum(), "repeated": lambda a: a[:1].expand(5).long(), "bincount": lambda a: torch.bincount(a.to(torch.uint8)),
    "flip": lambda a: a.flip(0), "norm": lambda a: torch.linalg.vector_norm(a.double()), "in place": lambda a: a.clone().logical_xor_(OTHER),
}  # fmt: skip


def values(result):
    if isinstance(result, torch.Tensor):
        return result.tolist()
    return [values(r) for r in result] if isinstance(result, (tuple, list)) else result


@pytest.mark.parametrize("name", CALLS)
def test_every_byte_but_zero_is_true(name):
    assert repr(values(CALLS[name](BYTES.clone().view(torch.bool)))) == repr(values(CALLS[name](TRUE.clone())))


def test_large_ones_in_parts():
    odd = BYTES.repeat(20_000).view(torch.bool)
    assert odd.sum().item() == 20_000 * int(TRUE.sum()) and odd.max().item() is True and torch.equal(odd, TRUE.repeat(20_000))
