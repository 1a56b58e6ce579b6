"""Ready parametrizations: orthogonal matrices, weight normalisation, spectral normalisation."""

import cresset
from cresset.nn import Module
from cresset.nn import functional as F

from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _is_orthogonal(q, eps=None):
    n, k = q.size(-2), q.size(-1)
    identity = cresset.eye(k, dtype=q.dtype, device=q.device)
    eps = 10.0 * n * cresset.finfo(q.dtype).eps if eps is None else eps
    return bool(cresset.allclose(q.mH @ q, identity, atol=eps))


def _make_orthogonal(a):
    """An orthogonal matrix with the columns' span of a tall `a`: the Q of QR with R's diagonal positive."""
    x, tau = cresset.geqrf(a)
    q = cresset.linalg.householder_product(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Any matrix (..., n, k) to one with orthonormal columns (rows when n < k), times `base` in the trivialised form."""

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x):
        n, k = x.size(-2), x.size(-1)
        transposed = n < k
        if transposed:
            x, n, k = x.mT, k, n
        if self.orthogonal_map == "householder":
            # Reflections by the columns below a unit diagonal; the diagonal of x holds the columns' signs.
            v = x.tril(-1)
            q = cresset.linalg.householder_product(v, 2.0 / (1.0 + (v * v).sum(-2)))
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            x = x.tril()
            if n != k:  # skew-Hermitian needs a square
                x = cresset.cat([x, x.new_zeros(*x.shape[:-1], n - k)], -1)
            a = x - x.mH
            if self.orthogonal_map == "matrix_exp":
                q = cresset.matrix_exp(a)
            else:  # Cayley
                identity = cresset.eye(n, dtype=a.dtype, device=a.device)
                q = cresset.linalg.solve(identity - 0.5 * a, identity + 0.5 * a)
            if n != k:
                q = q[..., :k]
        base = getattr(self, "base", None)
        if base is not None:
            q = base @ q
        return q.mT if transposed else q

    def right_inverse(self, q):
        if q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}.")
        given, n, k = q, q.size(-2), q.size(-1)
        transposed = n < k
        if transposed:
            q, n, k = q.mT, k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map in ("cayley", "matrix_exp"):
                raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False.")
            a, tau = cresset.geqrf(q)
            a.diagonal(dim1=-2, dim2=-1).sign_()
            a.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return a.mT if transposed else a
        if n == k:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        else:
            # Complete to a square orthogonal matrix with random columns.
            extra = cresset.randn(*q.shape[:-1], n - k, dtype=q.dtype, device=q.device)
            q = _make_orthogonal(cresset.cat([q, extra], -1))
        self.base = q
        # What every map takes to the identity: no rotation, and signs that undo the reflections of zero columns.
        negative_identity = cresset.zeros_like(given)
        negative_identity.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return negative_identity


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep the matrix (or batch) `module.name` orthogonal, semi-orthogonal when it is not square.

    `orthogonal_map`: "matrix_exp" (default for square ones), "cayley" or "householder" (default otherwise).
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, cresset.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, parametrization, unsafe=True)
    return module


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return cresset._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return cresset.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Split `module.name` into lengths (original0) and directions (original1) along `dim`; None is one length for all."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    _rename_old_state(module, name)
    return module


def _rename_old_state(module, name):
    # State dicts of the older weight_norm have name_g and name_v.
    def rename(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        g, v = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if g in state_dict and v in state_dict:
            state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(g)
            state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(v)

    module.register_load_state_dict_pre_hook(rename)


class _SpectralNorm(Module):
    """The weight divided by its largest singular value, which power iterations (in training) approximate."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        if dim >= weight.ndim or dim < -weight.ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            rows, columns = matrix.shape
            self.register_buffer("_u", F.normalize(matrix.new_empty(rows).normal_(0, 1), dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(matrix.new_empty(columns).normal_(0, 1), dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, matrix, iterations):
        with cresset.no_grad():
            for _ in range(iterations):
                self._u = F.normalize(cresset.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
                self._v = F.normalize(cresset.mv(matrix.H, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, because the next forward pass changes the buffers in place.
        u, v = self._u.clone(), self._v.clone()
        return weight / cresset.vdot(u, cresset.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide `module.name` by its largest singular value (Miyato et al. 2018); `dim` is the rows' dimension."""
    weight = getattr(module, name, None)
    if not isinstance(weight, cresset.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        transposed = (cresset.nn.ConvTranspose1d, cresset.nn.ConvTranspose2d, cresset.nn.ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module
