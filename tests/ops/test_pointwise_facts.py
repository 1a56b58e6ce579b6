"""What rows of pointwise operators say beside their expression: types that are refused and the words, in PyTorch's (recorded from 2.13)."""

import math

import cresset
import pytest

f, d, i, b, c = (cresset.ones(2, dtype=t) for t in (cresset.float32, cresset.float64, cresset.int64, cresset.bool, cresset.complex64))
u, h = i.to(cresset.uint8), f.half()
number = cresset.ones((), dtype=cresset.float64)  # of no dimensions: promotion would let it pass
aten, nn = cresset.ops.aten, cresset.nn.functional
BOOLS = "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
A_BOOL = "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
NO_CLAMP = "clamp is not supported for complex types"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: -b, RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."),
        (lambda: cresset.relu(b), RuntimeError, "Boolean inputs not supported for relu"),
        (lambda: cresset.relu(c), NotImplementedError, NO_CLAMP),
        (lambda: nn.hardtanh(b), RuntimeError, "Bool inputs not supported for hardtanh"),
        (lambda: nn.hardtanh(u, -1, 1), RuntimeError, "cannot do hardtanh on an unsigned type with negative limits"),
        (lambda: cresset.addcdiv(i, i, i), RuntimeError, "Integer division with addcdiv is no longer supported, and in a future  release"),
        (lambda: cresset.addcdiv(b, b, b), RuntimeError, "Integer division with addcdiv is no longer supported"),
        *((lambda n=n: getattr(cresset, n)(c, c), RuntimeError, f"{n} not implemented for complex tensors.") for n in ("maximum", "minimum", "fmax", "fmin")),
        *((lambda n=n: getattr(cresset, n)(c), NotImplementedError, f"{n} is not supported for complex inputs") for n in ("floor", "ceil", "trunc")),
        *((lambda n=n: getattr(cresset, n)(b), NotImplementedError, f"\"{n}_vml_cpu\" not implemented for 'Bool'") for n in ("floor", "ceil", "trunc")),
        (lambda: cresset.clamp(c, 0, 1), NotImplementedError, NO_CLAMP),
        (lambda: cresset.clamp_min(c, 0), NotImplementedError, NO_CLAMP),
        (lambda: cresset.clamp_min(c, c), NotImplementedError, "\"maximum_cpu\" not implemented for 'ComplexFloat'"),
        (lambda: cresset.clamp_max(c, c), NotImplementedError, "\"minimum_cpu\" not implemented for 'ComplexFloat'"),
        (lambda: cresset.clamp(f), RuntimeError, "torch.clamp: At least one of 'min' or 'max' must not be None"),
        (lambda: cresset.clamp(u, -1, 300), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
        (lambda: cresset.clamp_max(h, 1e6), RuntimeError, "without overflow"),
        *((lambda t=t: cresset.ones(2, 2).to(t).fill_diagonal_(math.inf), RuntimeError, "without overflow") for t in (cresset.float8_e4m3fn, cresset.float8_e8m0fnu)),
        (lambda: cresset.threshold(u, -1, 300), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
        (lambda: cresset.floor_divide(c, c), NotImplementedError, "\"div_floor_cpu\" not implemented for 'ComplexFloat'"),
        (lambda: cresset.div(c, c, rounding_mode="trunc"), NotImplementedError, "\"div_trunc_cpu\" not implemented for 'ComplexFloat'"),
        (lambda: cresset.bitwise_left_shift(f, f), NotImplementedError, "\"lshift_cpu\" not implemented for 'Float'"),
        (lambda: cresset.lerp(f, d, 0.5), RuntimeError, "expected dtype float for `end` but got dtype double"),
        (lambda: cresset.lerp(f, number, 0.5), RuntimeError, "expected dtype float for `end` but got dtype double"),
        (lambda: cresset.lerp(f, f, d), RuntimeError, "expected dtype float for `weight` but got dtype double"),
        (lambda: cresset.heaviside(f, d), RuntimeError, "heaviside is not yet implemented for tensors with different dtypes."),
        (lambda: cresset.heaviside(f, number), RuntimeError, "heaviside is not yet implemented for tensors with different dtypes."),
        (lambda: cresset.isclose(f, number), RuntimeError, "Float did not match Double"),
        (lambda: cresset._prelu_kernel(f, number), RuntimeError, "Found dtype Double but expected Float"),
        (lambda: b - b, RuntimeError, BOOLS),
        (lambda: cresset.rsub(b, True), RuntimeError, BOOLS),
        (lambda: b - i, RuntimeError, A_BOOL),
        (lambda: i - b, RuntimeError, A_BOOL),
        (lambda: 1 - b, RuntimeError, A_BOOL),
        (lambda: cresset.sub(f, True), RuntimeError, A_BOOL),
        (lambda: cresset.add(f, f, alpha=True), RuntimeError, "Boolean alpha only supported for Boolean results."),
        (lambda: cresset.add(i, i, alpha=1.5), RuntimeError, "For integral input tensors, argument alpha must not be a floating point number."),
        (lambda: cresset.add(f, f, alpha=1j), RuntimeError, "For non-complex input tensors, argument alpha must not be a complex number."),
        (lambda: aten.elu(f, 1j), RuntimeError, "value cannot be converted to type float without overflow"),
        (lambda: nn.gelu(f, approximate="x"), RuntimeError, "approximate argument must be either none or tanh."),
        (lambda: aten.gelu_backward(f, f, approximate="y"), RuntimeError, "approximate argument must be either none or tanh."),
    ],
)  # fmt: skip
def test_refusal(call, error, words):
    with pytest.raises(error) as raised:
        call()
    assert type(raised.value) is error and words in str(raised.value)


def test_what_passes():
    assert cresset.ones(1).to(cresset.float8_e5m2).fill_(math.inf).tolist() == [math.inf]
    assert cresset.lerp(f, 2 * f, number).tolist() == [2, 2]  # a weight of no dimensions may have any type
    assert nn.softplus(f, True).tolist() == pytest.approx([1.3132616] * 2)
    assert aten.elu_backward(f, True, 1, 1, False, f).tolist() == [1, 1]
    assert nn.hardtanh(u, 0, 1).tolist() == [1, 1] and cresset.clamp_min(u, -1).tolist() == [255, 255]
    assert cresset.addcmul(f, number, 3 * f).tolist() == [4, 4]  # operands of no dimensions in any place
    assert nn.gelu(f, approximate="tanh").tolist() != nn.gelu(f).tolist()
