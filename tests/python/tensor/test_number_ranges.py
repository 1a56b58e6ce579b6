"""Numbers beyond the range of the type that an operator stores them in: refused, or infinite where one element of a small type is filled.
Every expectation is PyTorch 2.13's."""

import pytest

import cresset

OPERATORS = {
    "full": lambda n, d: cresset.full((n,), VALUE[0], dtype=d),
    "fill_": lambda n, d: cresset.zeros(n, dtype=d).fill_(VALUE[0]),
    "full_like": lambda n, d: cresset.full_like(cresset.zeros(n), VALUE[0], dtype=d),
    "new_full": lambda n, d: cresset.zeros(1).new_full((n,), VALUE[0], dtype=d),
    "masked_fill": lambda n, d: cresset.zeros(n, dtype=d).masked_fill(cresset.ones(n, dtype=cresset.bool), VALUE[0]),
    "index_fill": lambda n, d: cresset.zeros(n, dtype=d).index_fill(0, cresset.tensor([0]), VALUE[0]),
    "scatter": lambda n, d: cresset.zeros(n, dtype=d).scatter(0, cresset.tensor([0]), VALUE[0]),
    "pad": lambda n, d: cresset.constant_pad_nd(cresset.zeros(n, dtype=d), [1, 1], VALUE[0]),
    "where": lambda n, d: cresset.where(cresset.ones(n, dtype=cresset.bool), VALUE[0], cresset.zeros(n, dtype=d)),
    "clamp": lambda n, d: cresset.zeros(n, dtype=d).clamp(min=VALUE[0]),
}
VALUE = [0.0]
FILLS = ("full", "fill_", "full_like", "new_full")
STORES = (*FILLS, "masked_fill", "index_fill", "scatter", "pad", "where", "clamp")

# (dtype, number, operators that refuse it for three elements, the type's name in the message)
REFUSED = [
    ("float32", 1e200, STORES, "float"),
    ("float16", 70000.0, [o for o in STORES if o != "where"], "c10::Half"),
    ("bfloat16", 1e200, [o for o in STORES if o != "where"], "c10::BFloat16"),
    ("complex64", 1e200, [o for o in STORES if o != "clamp"], "c10::complex<float>"),
    ("complex64", 1e200 + 1e200j, [o for o in STORES if o != "clamp"], "c10::complex<float>"),
    ("float8_e4m3fn", 500.0, FILLS, "c10::Float8_e4m3fn"),
    ("float8_e5m2", 60000.0, FILLS, "c10::Float8_e5m2"),
    ("int8", 300, [o for o in STORES if o not in ("clamp",)], "int8_t"),
    ("int8", 70000.0, ("masked_fill", "index_fill", "scatter", "pad"), "int8_t"),
    ("int32", float("nan"), ("masked_fill", "index_fill", "scatter", "pad"), "int"),
    ("uint8", -1000.0, ("pad",), "uint8_t"),
]


@pytest.mark.parametrize(("dtype", "number", "operators", "name"), REFUSED, ids=[f"{r[0]}-{r[1]}" for r in REFUSED])
def test_refused(dtype, number, operators, name):
    VALUE[0] = number
    for operator in operators:
        with pytest.raises(RuntimeError) as raised:
            OPERATORS[operator](3, getattr(cresset, dtype))
        assert str(raised.value) == f"value cannot be converted to type {name} without overflow", operator


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("operator", [*FILLS, "where"])
def test_one_element_of_a_half_type_becomes_infinite(dtype, operator):
    VALUE[0] = 1e200
    assert OPERATORS[operator](1, getattr(cresset, dtype)).float().tolist() == [float("inf")]


def test_infinity_and_nan_are_held():
    for number in (float("inf"), float("-inf")):
        VALUE[0] = number
        for operator in STORES:
            assert OPERATORS[operator](3, cresset.float16).dtype is cresset.float16


def test_lists_of_numbers():
    assert cresset.tensor([70000.0, 1.0], dtype=cresset.float16).tolist() == [float("inf"), 1.0]
    assert cresset.tensor([1e200], dtype=cresset.bfloat16).tolist() == [float("inf")]
    for dtype, number in (("int8", 300), ("uint8", -300), ("int32", 2**40), ("int64", float("nan")), ("int16", 1e10)):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {dtype} without overflow"):
            cresset.tensor([number], dtype=getattr(cresset, dtype))
    with pytest.raises(TypeError, match="'complex' object cannot be interpreted as an integer"):
        cresset.tensor([1j], dtype=cresset.int64)
    with pytest.raises(TypeError, match="must be real number, not complex"):
        cresset.tensor([1j], dtype=cresset.float32)
