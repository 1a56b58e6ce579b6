"""Functions of single elements, of sums and of products."""

import math

import cresset

from ._rules import aten, in_float, number, rule


@rule("addcmul")
@in_float
def addcmul(self, tensor1, tensor2, *, value=1):
    return self + (tensor1 if value == 1 else value * tensor1) * tensor2


@rule("addcdiv")
@in_float
def addcdiv(self, tensor1, tensor2, *, value=1):
    return self + value * (tensor1 / tensor2)


@rule("lerp.Scalar")
@in_float
def lerp_scalar(self, end, weight):
    return _lerp(self, end, number(weight, self))


@rule("lerp.Tensor")
@in_float
def lerp(self, end, weight):
    return _lerp(self, end, weight)


def _lerp(start, end, weight):
    """From the end that is nearer, which is exact at both."""
    near_end = cresset.abs(weight) >= 0.5
    factor = cresset.where(near_end, weight - 1, weight)
    base = cresset.where(near_end, end, start)
    return factor * (end - start) + base


@rule("rsub.Tensor")
def rsub(self, other, *, alpha=1):
    return cresset.sub(other, self, alpha=alpha)


@rule("rsub.Scalar")
def rsub_scalar(self, other, alpha=1):
    return cresset.sub(number(other, self), self, alpha=alpha)


@rule("floor_divide", inplace=False)
def floor_divide(self, other):
    return cresset.div(self, other, rounding_mode="floor")


@rule("deg2rad")
def deg2rad(self):
    return self * (math.pi / 180)


@rule("rad2deg")
def rad2deg(self):
    return self * (180 / math.pi)


@rule("frac")
@in_float
def frac(self):
    return self - cresset.trunc(self)


@rule("sgn")
def sgn(self):
    if not self.is_complex():
        return cresset.sign(self)
    if self.dtype == cresset.complex32:  # has no quotients
        return sgn(self.to(cresset.complex64)).to(self.dtype)
    size = cresset.abs(self)
    return cresset.where(size == 0, 0, self / size)


@rule("sinc")
@in_float
def sinc(self):
    scaled = self * math.pi
    return cresset.where(scaled == 0, 1, cresset.sin(scaled) / scaled)


@rule("heaviside")
def heaviside(self, values):
    zero = self == 0
    return cresset.where(zero, values, cresset.logical_or(self < 0, cresset.isnan(self)).logical_not().to(self.dtype))


@rule("isneginf")
def isneginf(self):
    return self == -math.inf if self.is_floating_point() else cresset.zeros_like(self, dtype=cresset.bool)


@rule("isposinf")
def isposinf(self):
    return self == math.inf if self.is_floating_point() else cresset.zeros_like(self, dtype=cresset.bool)


@rule("nan_to_num")
def nan_to_num(self, nan=None, posinf=None, neginf=None):
    if not self.is_floating_point() and not self.is_complex():
        return self.clone()
    if self.is_complex():
        parts = [nan_to_num(part, nan, posinf, neginf) for part in (self.real, self.imag)]
        return cresset.complex(*parts)
    limits = cresset.finfo(self.dtype)
    result = cresset.where(self != self, 0.0 if nan is None else nan, self)
    result = cresset.where(self == -math.inf, limits.min if neginf is None else neginf, result)
    return cresset.where(self == math.inf, limits.max if posinf is None else posinf, result)


@rule("logaddexp")
@in_float
def logaddexp(self, other):
    larger, smaller = cresset.where(self >= other, self, other), cresset.where(self >= other, other, self)
    same = cresset.logical_and(cresset.isinf(self), self == other)
    return cresset.where(same, self, larger + cresset.log1p(cresset.exp(smaller - larger)))


@rule("logaddexp2")
@in_float
def logaddexp2(self, other):
    larger, smaller = cresset.where(self >= other, self, other), cresset.where(self >= other, other, self)
    same = cresset.logical_and(cresset.isinf(self), self == other)
    return cresset.where(same, self, larger + cresset.log1p(cresset.exp2(smaller - larger)) * (1 / math.log(2)))


def _floating(function):
    """Decorator: whole numbers become floats first."""

    def run(*args, **kwargs):
        float_ = cresset.get_default_dtype()
        args = [a.to(float_) if isinstance(a, cresset.Tensor) and not (a.is_floating_point() or a.is_complex()) else a for a in args]
        return function(*args, **kwargs)

    run.__name__, run.__wrapped__ = function.__name__, function
    return run


@rule("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self")
@_floating
@in_float
def xlogy(self, other):
    return _x_times(self, other, cresset.log)


@rule("special_xlog1py", "special_xlog1py.other_scalar", "special_xlog1py.self_scalar")
@_floating
@in_float
def special_xlog1py(self, other):
    return _x_times(self, other, cresset.log1p)


def _x_times(x, y, log):
    """x log(y), and zero for an x of zero unless y is not a number."""
    if not isinstance(x, cresset.Tensor):
        x = number(x, y)
    if not isinstance(y, cresset.Tensor):
        y = number(y, x)
    result = cresset.where(x == 0, 0, x * log(y))
    return cresset.where(cresset.isnan(y), math.nan, result)


@rule("logit")
@_floating
@in_float
def logit(self, eps=None):
    if eps is not None:
        self = cresset.clamp(self, eps, 1 - eps)
    return cresset.log(self / aten.rsub(self, 1))


@rule("logit_backward")
@in_float
def logit_backward(grad_output, self, eps=None):
    low, high = (0.0, 1.0) if eps is None else (eps, 1.0 - eps)
    outside = math.nan if eps is None else 0.0
    return cresset.where(cresset.logical_and(self >= low, self <= high), grad_output / (self * aten.rsub(self, 1.0)), outside)


@rule("special_entr")
@_floating
@in_float
def special_entr(self):
    result = cresset.where(self > 0, -self * cresset.log(self), cresset.where(self == 0, 0.0, -math.inf))
    return cresset.where(cresset.isnan(self), self, result)


@rule("special_ndtr")
@_floating
@in_float
def special_ndtr(self):
    scaled = self * math.sqrt(0.5)
    middle = 0.5 * (1 + cresset.erf(scaled))
    tail = 0.5 * cresset.erfc(cresset.abs(scaled))
    return cresset.where(cresset.abs(scaled) < 1, middle, cresset.where(scaled > 0, 1 - tail, tail))


@rule("clamp_min", "clamp_min.Tensor", inplace=False)
def clamp_min(self, min):
    return cresset.clamp(self, min=min)


@rule("clamp_max", "clamp_max.Tensor", inplace=False)
def clamp_max(self, max):
    return cresset.clamp(self, max=max)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(self, mask, value):
    if not isinstance(value, cresset.Tensor):
        value = aten.scalar_tensor(value, dtype=self.dtype, device=self.device)
    elif value.dim():
        raise RuntimeError(f"only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension")
    result = cresset.where(mask, value if value.dtype == self.dtype else value.to(self.dtype), self)
    return result if result.dtype == self.dtype else result.to(self.dtype)


@rule("where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(condition, self, other):
    dtype = cresset.result_type(self, other)
    self, other = (t if isinstance(t, cresset.Tensor) else aten.scalar_tensor(t, dtype=dtype, device=condition.device) for t in (self, other))
    return aten.where.self(condition, self, other)


@rule("addmm", core=False)
@in_float
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    return _sum_of(cresset.mm(mat1, mat2), self, beta, alpha)


@rule("addmv", core=False)
@in_float
def addmv(self, mat, vec, *, beta=1, alpha=1):
    return _sum_of(cresset.mv(mat, vec), self, beta, alpha)


@rule("baddbmm", inplace=False)
@in_float
def baddbmm(self, batch1, batch2, *, beta=1, alpha=1):
    return _sum_of(cresset.bmm(batch1, batch2), self, beta, alpha)


def _sum_of(product, self, beta, alpha):
    """The product times alpha, and self times beta, of which NaN does not count when beta is zero. Whole numbers are multiplied by whole ones."""
    if not self.is_floating_point() and not self.is_complex():
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (self if beta == 1 else self * beta)


@rule("mv")
@in_float
def mv(self, vec):
    return (self * vec).sum(dim=1, dtype=self.dtype)


@rule("dot")
@in_float
def dot(self, tensor):
    return (self * tensor).sum(dtype=self.dtype)
