"""What tensors of the types that are only stored do: expressions in `t`, and the codes of the eight-bit types."""

FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
UNSIGNED = ["uint16", "uint32", "uint64"]
STORED = [*UNSIGNED, *FLOAT8, "complex32"]

# `d` is the type.
EACH = [
    "d", "d.itemsize", "d.is_floating_point", "d.is_complex", "d.is_signed", "d.to_real() if d.is_complex else d.to_complex()",
    "t.tensor([1, 2, 3], dtype=d)", "t.zeros(2, 2, dtype=d)", "t.ones(2, dtype=d)", "t.full((2,), 3, dtype=d)", "t.empty(0, dtype=d)",
    "t.empty(2, dtype=d, device='meta')", "t.tensor([0.5, 1.5, 2.5], dtype=d)", "t.tensor(7, dtype=d)", "t.tensor(7, dtype=d).item()",
    "t.tensor([1, 2], dtype=d).tolist()", "t.tensor([1, 2], dtype=d).type()", "t.ones(2).type(d)", "t.eye(2, dtype=d)",
    "t.tensor([True, False]).to(d)", "t.tensor([1, 0], dtype=d).bool()", "t.tensor([1, 200], dtype=t.uint8).to(d)",
    "t.tensor([1, -100], dtype=t.int8).to(d)", "t.tensor([3, 7, -1]).to(d)", "t.tensor([1.25, 300.7, -2.6]).to(d)",
    "t.tensor([1.25, 300.7, -2.6], dtype=t.float64).to(d)", "t.tensor([1.25, 300.7], dtype=t.float16).to(d)",
    "t.tensor([1.25, 300.7], dtype=t.bfloat16).to(d)", "t.tensor([1 + 2j]).to(d)",
    *(f"t.tensor([1, 2, 5], dtype=d).to(t.{other})" for other in ("int8", "int64", "float16", "bfloat16", "float32", "float64", "complex64")),
    *(f"t.tensor([1, 2, 5], dtype=d).to(t.{other})" for other in STORED),
    "t.tensor([[1, 2], [3, 4]], dtype=d).t().contiguous()", "t.tensor([1, 2, 3, 4], dtype=d)[::2]", "t.tensor([1, 2, 3], dtype=d)[t.tensor([2, 0])]",
    "t.tensor([1, 2, 3], dtype=d)[t.tensor([True, False, True])]", "t.cat([t.ones(1, dtype=d), t.zeros(2, dtype=d)])",
    "t.stack([t.ones(1, dtype=d), t.zeros(1, dtype=d)])", "t.where(t.tensor([True, False]), t.ones(2, dtype=d), t.zeros(2, dtype=d))",
    "t.tensor([1, 2], dtype=d).repeat(2)", "t.tensor([1, 2], dtype=d).flip(0)", "t.tensor([1, 2], dtype=d).roll(1)",
    "t.nn.functional.pad(t.ones(1, dtype=d), (1, 1))", "t.tensor([1, 2], dtype=d).index_select(0, t.tensor([1]))",
    "t.tensor([1, 2], dtype=d).masked_select(t.tensor([True, False]))", "t.tensor([1, 2], dtype=d).clone()",
    "t.tensor([1, 2, 3], dtype=d).view(3, 1).expand(3, 2)", "t.tensor([1, 2], dtype=d).equal(t.tensor([1, 2], dtype=d))",
    "t.tensor([1, 2], dtype=d) == t.tensor([1, 3], dtype=d)", "t.tensor([1, 2], dtype=d) != 2", "t.tensor([1, 2], dtype=d).isnan()",
    "t.tensor([1, 2], dtype=d) * t.tensor([3, 4], dtype=d)", "t.tensor([1, 2], dtype=d).fill_(5)", "t.tensor([1, 2], dtype=d).zero_()",
    "t.zeros(3, dtype=d).index_put_((t.tensor([1]),), t.tensor([2], dtype=d))", "t.ones(2, dtype=t.complex64).copy_(t.tensor([1, 2], dtype=d))",
    "t.tensor([1, 2], dtype=d) + t.tensor([3, 4], dtype=d)", "t.tensor([1, 2], dtype=d) < 2", "t.arange(3, dtype=d)", "t.ones(2, dtype=d).sort()",
    "t.can_cast(d, t.float32)", "t.can_cast(t.int64, d)", "t.ones(2, dtype=d).requires_grad_().requires_grad",
    "t.utils.dlpack.from_dlpack(t.utils.dlpack.to_dlpack(t.tensor([1, 2], dtype=d)))",
    "t.tensor([1, 2], dtype=d).numpy().dtype.name", "t.ones(2, dtype=d).is_floating_point()", "t.ones(2, dtype=d).element_size()",
]  # fmt: skip

SOME = [
    *(f"t.iinfo(t.{d}).{limit}" for d in UNSIGNED for limit in ("bits", "min", "max")),
    *(f"t.finfo(t.{d}).{limit}" for d in [*FLOAT8, "complex32"] for limit in ("bits", "eps", "max", "min", "tiny", "resolution", "smallest_normal")),
    *(f"t.full((1,), {value}, dtype=t.{d})" for d in UNSIGNED for value in ("-1", "70000", "2**32", "2**63", "2**64 - 1", "2**64", "1.5", "-1.5", "1e19", "True")),
    *(f"t.full((1,), {value}, dtype=t.{d})" for d in [*FLOAT8, "complex32"] for value in ("500", "1e6", "-1", "0", "float('inf')", "float('nan')", "True")),
    "t.tensor([2**63], dtype=t.uint64)", "t.tensor([2**63], dtype=t.uint64).item()", "t.tensor([2**64 - 1], dtype=t.uint64).tolist()",
    "t.tensor([2**63], dtype=t.uint64).float()", "t.tensor([2**63 + 2**40], dtype=t.uint64).double()", "t.tensor([2**63], dtype=t.uint64).to(t.int64)",
    "t.tensor([-1], dtype=t.int64).to(t.uint64)", "t.tensor([1e19], dtype=t.float64).to(t.uint64)", "t.tensor([-1], dtype=t.uint64)",
    "t.tensor([2**64], dtype=t.uint64)", "t.tensor([2**63])", "t.ones(2) + 2**63", "t.full((1,), 2**63)", "t.tensor([3, 5], dtype=t.uint16) & 6",
    "t.tensor([3, 5], dtype=t.uint32) | t.tensor([8, 8], dtype=t.uint32)", "t.tensor([3], dtype=t.uint64) ^ 1", "t.tensor([7], dtype=t.uint16) / 2",
    "t.tensor([7], dtype=t.uint16).sqrt()", "t.tensor([9], dtype=t.uint64).floor()", "t.tensor([60000, 3], dtype=t.uint16) * 2", "t.ones(2, dtype=t.uint16) * 2.5",
    "t.ones((), dtype=t.float8_e4m3fn) * t.ones(2)", "t.tensor([3., -2.], dtype=t.float8_e5m2).abs()", "t.ones(2, dtype=t.float8_e5m2) * t.ones(2)",
    "t.tensor([1 + 2j, 3 - 4j], dtype=t.complex32).abs()", "t.tensor([1 + 2j], dtype=t.complex32) * 2j", "-t.tensor([1 + 2j], dtype=t.complex32)",
    "t.tensor([1 + 2j], dtype=t.complex32) - t.tensor([1j], dtype=t.complex32)", "t.tensor([1 + 2j], dtype=t.complex32).real", "t.tensor([1 + 2j], dtype=t.complex32).imag",
    "t.complex(t.ones(2).half(), t.ones(2).half())", "t.view_as_real(t.ones(1, dtype=t.complex32))", "t.view_as_complex(t.ones(1, 2).half())",
    "t.ones(2, dtype=t.float16) * 1j", "t.ones(2).chalf()", "t.arange(256, dtype=t.uint8).view(t.float8_e4m3fn)[120:136]", "t.tensor([1.5, -2]).to(t.float8_e5m2).view(t.uint8)",
    "t.set_default_dtype(t.float8_e5m2)", "t.tensor(t.tensor([1, 2], dtype=t.uint16).numpy())", "t.float8_e4m3fn.to_complex()", "t.float16.to_complex()",
]  # fmt: skip


def said(t, expression, dtype=None):
    """The repr of a result under PyTorch's names, or the class of the error."""
    try:
        return repr(eval(expression, {"t": t, "d": dtype and getattr(t, dtype)})).replace("cresset.", "torch.")
    except Exception as error:
        return type(error).__name__


def texts(t):
    found = {dtype: {expression: said(t, expression, dtype) for expression in EACH} for dtype in STORED}
    return found | {"": {expression: said(t, expression) for expression in SOME}}


def values(t, dtype):
    """The float32 of each code, as bits."""
    return t.arange(256, dtype=t.uint8).view(getattr(t, dtype)).to(t.float32).view(t.int32).tolist()


def codes(t, dtype, bits):
    """The codes of floats given as bits."""
    return t.tensor(bits, dtype=t.int32).view(t.float32).to(getattr(t, dtype)).view(t.uint8).tolist()


INFINITY = 0x7F800000


def steps(t, dtype):
    """{code: bits of the smallest float that gives it}, for the floats from zero to infinity; codes never fall between them."""
    first = codes(t, dtype, [0])[0]
    last, found = codes(t, dtype, [INFINITY])[0], {first: 0}
    at = first
    while at != last:
        low, high = found[at], INFINITY
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if codes(t, dtype, [middle])[0] == at else (low, middle)
        at = codes(t, dtype, [high])[0]
        found[at] = high
    return found
