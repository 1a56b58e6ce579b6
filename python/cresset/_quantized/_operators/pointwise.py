"""Sums, products and joined quantized tensors."""

import cresset

from .._functions import _one, quantized
from .._tensor import KINDS, PerTensor, QuantizedTensor
from ._register import operator


def _finished(real, quantizer, relu):
    return quantized(real.relu() if relu else real, quantizer)


def _check_pair(a, b, word, scheme):
    if a.qscheme() is not cresset.per_tensor_affine or b.qscheme() is not cresset.per_tensor_affine:
        raise RuntimeError(f"Only {scheme} quantization is supported in {word.capitalize()}.")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{word} operands should have same data type.")


def _write(out, made):
    return out.copy_(made)


def _scalar(b):
    return b.item() if isinstance(b, cresset.Tensor) else b


def _requantized(t, old, new):
    """The whole numbers of t, which stand for (number - old zero) * old scale, by another quantizer."""
    return quantized((t._numbers.float() - old[1]) * cresset.tensor(old[0], dtype=cresset.float32), new)


def add_number(qa, b, relu=False):
    """qa plus a number: another zero point where the dtype holds it, else another scale, too."""
    q, b = qa._uniform(), _scalar(b)
    _, low, high, _ = KINDS[q.dtype]
    zero = q.zero_point - round(b / q.scale)
    if zero < low or zero > high:
        edge, far = (low, high) if zero < low else (high, low)
        scale = abs(far - zero) / (high - low) * q.scale
        made = _requantized(qa, (q.scale, zero), PerTensor(q.dtype, scale, edge))
    else:
        made = QuantizedTensor(qa._numbers.clone(), PerTensor(q.dtype, q.scale, zero))
    return made.relu() if relu else made


def multiply_number(qa, b, relu=False):
    """qa times a number: another scale, of mirrored whole numbers where it is negative."""
    q, b = qa._uniform(), _scalar(b)
    numbers, low, high, _ = KINDS[q.dtype]
    if b > 0:
        made = QuantizedTensor(qa._numbers.clone(), PerTensor(q.dtype, q.scale * b, q.zero_point))
    elif b < 0:
        made = QuantizedTensor((high + low - qa._numbers.long()).to(numbers), PerTensor(q.dtype, q.scale * -b, high + low - q.zero_point))
    else:
        made = QuantizedTensor(cresset.zeros_like(qa._numbers), PerTensor(q.dtype, 1.0, 0))
    return made.relu() if relu else made


def _declare(base, of_real, of_number, relu):
    name = base + "_relu" * relu

    def pair(qa, qb, scale, zero_point):
        _check_pair(qa, qb, base.capitalize(), "per tensor")
        return _finished(of_real(qa.dequantize(), qb.dequantize()), _one(qa.dtype, scale, zero_point), relu)

    def pair_out(qa, qb, out):
        _check_pair(qa, qb, base.capitalize(), "per tensor")
        return _write(out, _finished(of_real(qa.dequantize(), qb.dequantize()), out._uniform(), relu))

    def number(qa, b):
        return of_number(qa, b, relu)

    def number_out(qa, b, out):
        made = of_number(qa, b, relu)
        out._quantizer = made._quantizer
        return _write(out, made)

    operator(f"{name}(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")(pair)
    operator(f"{name}.out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out", f"{name}_out(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out")(pair_out)
    scalar = f"{base}_scalar{'_relu' * relu}"
    operator(f"{name}.Scalar(Tensor qa, Scalar b) -> Tensor qc", f"{scalar}(Tensor qa, Scalar b) -> Tensor qc", f"{scalar}.Tensor(Tensor qa, Tensor b) -> Tensor qc")(number)
    operator(f"{name}.Scalar2(Scalar b, Tensor qa) -> Tensor qc")(lambda b, qa: number(qa, b))
    operator(
        f"{name}.Scalar_out(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!) out",
        f"{scalar}_out(Tensor qa, Scalar b, Tensor(a!) out) -> Tensor(a!) out", f"{scalar}_out.Tensor(Tensor qa, Tensor b, Tensor(a!) out) -> Tensor(a!) out",
    )(number_out)  # fmt: skip
    if name == "add":
        operator("add(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc", namespace="_quantized")(pair)


for _relu in (False, True):
    _declare("add", cresset.add, add_number, _relu)
    _declare("mul", cresset.mul, multiply_number, _relu)


@operator("matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
def matmul(qa, qb, scale, zero_point):
    """The matrix product of two quantized tensors."""
    _check_pair(qa, qb, "MatMul", "per-tensor")
    return quantized(qa.dequantize() @ qb.dequantize(), _one(qa.dtype, scale, zero_point))


def _joined(qx, dim, quantizer, relu):
    if not qx:
        raise RuntimeError("quantized::cat: expected a non-empty list of Tensors")
    parts = [t if t._uniform() == quantizer else quantized(t.dequantize(), quantizer) for t in qx]
    made = QuantizedTensor(cresset.cat([t._numbers for t in parts], dim), quantizer)
    return made.relu() if relu else made


def _declare_cat(name, relu):
    def cat(qx, dim, scale, zero_point):
        first = qx[0]._uniform() if qx else None
        return _joined(qx, dim, first and _one(first.dtype, first.scale if scale is None else scale, first.zero_point if zero_point is None else zero_point), relu)

    operator(f"{name}(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor")(cat)
    operator(f"{name}_out(Tensor[] qx, int dim, Tensor(a!) out) -> Tensor(a!)")(lambda qx, dim, out: _write(out, _joined(qx, dim, out._uniform(), relu)))


_declare_cat("cat", False)
_declare_cat("cat_relu", True)
