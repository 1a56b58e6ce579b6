"""Sums, means, extremes and what is made of them."""

import cresset

from ._rules import aten, rule


@rule("all", "all.dim", "all.dims")
def all(self, *args, **kwargs):
    result = cresset.any(self.logical_not(), *args, **kwargs).logical_not()
    return result.to(self.dtype) if self.dtype == cresset.uint8 else result


@rule("std.correction")
def std(self, dim=None, *, correction=None, keepdim=False):
    return cresset.sqrt(aten.var.correction(self, dim, correction=correction, keepdim=keepdim))


@rule("std_mean.correction")
def std_mean(self, dim=None, *, correction=None, keepdim=False):
    var, mean = aten.var_mean.correction(self, dim, correction=correction, keepdim=keepdim)
    return cresset.sqrt(var), mean


@rule("var.correction", core=False)
def var(self, dim=None, *, correction=None, keepdim=False):
    return var_mean(self, dim, correction=correction, keepdim=keepdim)[0]


@rule("var_mean.correction", core=False)
def var_mean(self, dim=None, *, correction=None, keepdim=False):
    wide = cresset.float32 if self.dtype in (cresset.float16, cresset.bfloat16) else self.dtype
    x = self.to(wide)
    dims = list(range(self.dim())) if dim is None or len(dim) == 0 else [d % self.dim() if self.dim() else 0 for d in dim]
    n = 1
    for d in dims:
        n *= self.shape[d] if self.dim() else 1
    mean = cresset.sum(x, dims, True) / n if dims else x
    off = x - mean
    square = off * off.conj() if self.is_complex() else off * off
    square = cresset.real(square) if self.is_complex() else square
    freedom = max(0, n - (1 if correction is None else correction))
    found = cresset.sum(square, dims, keepdim) / freedom
    mean = mean if keepdim or not dims or not self.dim() else mean.squeeze(dims)
    return found.to(self.real.dtype if self.is_complex() else self.dtype), mean.to(self.dtype)


@rule("aminmax")
def aminmax(self, *, dim=None, keepdim=False):
    if dim is None and keepdim:
        dims = list(range(self.dim()))
    else:
        dims = [] if dim is None else [dim]
    return cresset.amin(self, dims, keepdim), cresset.amax(self, dims, keepdim)


@rule("nansum")
def nansum(self, dim=None, keepdim=False, *, dtype=None):
    return aten.sum.dim_IntList(cresset.where(cresset.isnan(self), 0, self), dim, keepdim, dtype=dtype)


@rule("sum")
def sum(self, *, dtype=None):
    return aten.sum.dim_IntList(self, [], False, dtype=dtype)


@rule("count_nonzero")
def count_nonzero(self, dim=None):
    return (self != 0).sum() if dim is None else (self != 0).sum(dim)


@rule("count_nonzero.dim_IntList")
def count_nonzero_of(self, dim):
    return (self != 0).sum(dim)


@rule("logsumexp")
def logsumexp(self, dim, keepdim=False):
    dims = [dim] if isinstance(dim, int) else list(dim)
    if self.numel() == 0:
        return cresset.log(cresset.sum(cresset.exp(self), dims, keepdim))
    if not self.is_floating_point() and not self.is_complex():
        self = self.to(cresset.get_default_dtype())
    largest = cresset.amax(cresset.real(self) if self.is_complex() else self, dims, keepdim=True)
    largest = cresset.where(largest.abs() == float("inf"), 0.0, largest)
    result = cresset.log(cresset.sum(cresset.exp(self - largest), dims, keepdim))
    return result + (largest if keepdim or not self.dim() else largest.squeeze(dims))


@rule("norm.Scalar")
def norm_scalar(self, p=2):
    return cresset.linalg.vector_norm(self, p)


@rule("norm.ScalarOpt_dim")
def norm(self, p, dim, keepdim=False):
    return cresset.linalg.vector_norm(self, 2 if p is None else p, dim if len(dim) else None, keepdim)


@rule("norm.ScalarOpt_dim_dtype")
def norm_dtype(self, p, dim, keepdim, *, dtype):
    return cresset.linalg.vector_norm(self, 2 if p is None else p, dim if len(dim) else None, keepdim, dtype=dtype)


@rule("norm.ScalarOpt_dtype")
def norm_all_dtype(self, p, *, dtype):
    return cresset.linalg.vector_norm(self, 2 if p is None else p, dtype=dtype)


@rule("linalg_cross")
def linalg_cross(self, other, *, dim=-1):
    self, other = cresset.broadcast_tensors(self, other)
    one = cresset.arange(3, device=self.device)
    after, before = (one + 1) % 3, (one + 2) % 3
    return self.index_select(dim, after) * other.index_select(dim, before) - self.index_select(dim, before) * other.index_select(dim, after)


@rule("trace")
def trace(self):
    return cresset.sum(cresset.diag(self))
