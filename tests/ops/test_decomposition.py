"""Factorisations: identities that define them, gradients of what does not depend on the choice of vectors, and errors."""

import cresset
import gradcheck
import numpy as np
import pytest

linalg = cresset.linalg
TYPES = {"float32": 1e-4, "float64": 1e-10, "complex64": 1e-4, "complex128": 1e-10}
BATCHES = [(), (2,), (2, 3)]


def rng():
    return np.random.default_rng(11)


def random(dtype, *shape, generator=None):
    generator = generator or rng()
    x = generator.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * generator.standard_normal(shape)
    return cresset.from_numpy(np.ascontiguousarray(x.astype(dtype))).reshape(shape)


def number(t):
    return np.array(t.detach().numpy())


def dagger(x):
    return np.swapaxes(np.conj(x), -1, -2)


def positive(x):
    return x @ x.mH + cresset.eye(x.shape[-1], dtype=x.dtype)


@pytest.fixture(params=TYPES)
def dtype(request):
    return request.param


@pytest.fixture
def close(dtype):
    return lambda have, want: np.testing.assert_allclose(
        number(have) if isinstance(have, cresset.Tensor) else have, want, rtol=TYPES[dtype], atol=TYPES[dtype]
    )


# ---- values --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", BATCHES)
def test_cholesky(dtype, close, batch):
    a = positive(random(dtype, *batch, 4, 4))
    lower, upper = linalg.cholesky(a), linalg.cholesky(a, upper=True)
    close(lower @ lower.mH, number(a))
    close(upper.mH @ upper, number(a))
    assert np.array_equal(number(lower), np.tril(number(lower))) and np.array_equal(
        number(upper), np.triu(number(upper))
    )
    b = random(dtype, *batch, 4, 2)
    close(a @ cresset.cholesky_solve(b, lower), number(b))
    close(a @ cresset.cholesky_solve(b, upper, True), number(b))
    close(a @ cresset.cholesky_inverse(lower), np.broadcast_to(np.eye(4), a.shape))
    close(a @ cresset.cholesky_inverse(upper, True), np.broadcast_to(np.eye(4), a.shape))


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("m,n", [(4, 4), (5, 3), (3, 5), (0, 3), (3, 0)])
def test_lu(dtype, close, batch, m, n):
    a = random(dtype, *batch, m, n)
    p, l, u = linalg.lu(a)
    close(p @ l @ u, number(a))
    factors, pivots = linalg.lu_factor(a) if m and n else linalg.lu_factor_ex(a)[:2]
    assert pivots.dtype == cresset.int32 and list(pivots.shape) == [*batch, min(m, n)]
    for have, want in zip(cresset.lu_unpack(factors, pivots), (p, l, u)):
        close(have, number(want))
    if m != n:
        return
    b, c = random(dtype, *batch, m, 2), random(dtype, *batch, 2, m)
    close(a @ linalg.lu_solve(factors, pivots, b), number(b))
    close(a.mH @ linalg.lu_solve(factors, pivots, b, adjoint=True), number(b))
    close(linalg.lu_solve(factors, pivots, c, left=False) @ a, number(c))
    close(linalg.lu_solve(factors, pivots, c, left=False, adjoint=True) @ a.mH, number(c))
    close(a @ cresset.lu_solve(b, factors, pivots), number(b))


@pytest.mark.parametrize("batch", BATCHES)
def test_systems(dtype, close, batch):
    a, b, v = random(dtype, *batch, 4, 4), random(dtype, *batch, 4, 2), random(dtype, *batch, 4)
    close(linalg.inv(a), np.linalg.inv(number(a)))
    close(a @ linalg.solve(a, b), number(b))
    close((a @ linalg.solve(a, v)[..., None])[..., 0], number(v))
    close(linalg.solve(a, b.mT, left=False) @ a, number(b.mT))
    close(linalg.det(a), np.linalg.det(number(a)))
    sign, logabsdet = np.linalg.slogdet(number(a))
    for have, want in zip(linalg.slogdet(a), (sign, logabsdet)):
        close(have, want)
    for upper, left in [(True, True), (False, True), (True, False), (False, False)]:
        triangle = a.triu() if upper else a.tril()
        x = linalg.solve_triangular(a, b if left else b.mT, upper=upper, left=left)
        close(triangle @ x if left else x @ triangle, number(b if left else b.mT))
    x = cresset.triangular_solve(b, a, upper=False, transpose=True, unitriangular=True).solution
    close((a.tril(-1) + cresset.eye(4, dtype=a.dtype)).mT @ x, number(b))


def test_broadcast_systems(dtype, close):
    a, b = random(dtype, 2, 1, 3, 3), random(dtype, 4, 3, 2)
    want = np.linalg.inv(number(a)) @ number(b)  # NumPy's solve takes b for vectors in some versions
    close(linalg.solve(a, b), want)
    close(linalg.lu_solve(*linalg.lu_factor(a), b), want)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("batch", BATCHES)
def test_ldl(dtype, close, batch, hermitian):
    x = random(dtype, *batch, 5, 5)
    a = x + (x.mH if hermitian else x.mT)  # indefinite: blocks of two occur
    b = random(dtype, *batch, 5, 2)
    factors, pivots = linalg.ldl_factor(a, hermitian=hermitian)
    close(a @ linalg.ldl_solve(factors, pivots, b, hermitian=hermitian), number(b))


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("m,n", [(4, 4), (5, 3), (3, 5), (0, 3), (3, 0)])
def test_qr(dtype, close, batch, m, n):
    a = random(dtype, *batch, m, n)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(a, mode)
        close(q @ r, number(a))
        close(q.mH @ q, np.broadcast_to(np.eye(q.shape[-1]), (*batch, q.shape[-1], q.shape[-1])))
    q, r = linalg.qr(a, "r")
    assert q.numel() == 0
    close(r, number(linalg.qr(a).R))
    if not m >= n > 0:
        return
    reflections, tau = cresset.geqrf(a)
    close(linalg.householder_product(reflections, tau), number(linalg.qr(a).Q))
    full, other = linalg.qr(a, "complete").Q, random(dtype, *batch, m, 2)
    close(cresset.ormqr(reflections, tau, other), number(full @ other))
    close(cresset.ormqr(reflections, tau, other, transpose=True), number(full.mH @ other))
    close(cresset.ormqr(reflections, tau, other.mT, left=False), number(other.mT @ full))


@pytest.mark.parametrize("batch", BATCHES)
def test_spectra(dtype, close, batch):
    a = random(dtype, *batch, 4, 4)
    h = a + a.mH
    for uplo, triangle in (("L", h.tril()), ("U", h.triu())):
        w, v = linalg.eigh(triangle, uplo)
        close(h @ v, number(v) * number(w)[..., None, :])
        close(v.mH @ v, np.broadcast_to(np.eye(4), h.shape))
        close(linalg.eigvalsh(triangle, uplo), np.linalg.eigvalsh(number(h)))
    w, v = linalg.eig(a)
    close(a.to(v.dtype) @ v, number(v) * number(w)[..., None, :])
    close(np.linalg.norm(number(v), axis=-2), np.ones(w.shape))
    w = number(linalg.eigvals(a))
    for power in range(1, 5):  # Newton's identities: power sums settle the eigenvalues, whatever their order
        np.testing.assert_allclose(
            (w**power).sum(-1),
            np.trace(np.linalg.matrix_power(number(a), power), axis1=-2, axis2=-1),
            rtol=TYPES[dtype] * 10,
            atol=TYPES[dtype] * 10,
        )


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("m,n", [(4, 4), (5, 3), (3, 5)])
def test_svd(dtype, close, batch, m, n):
    a, k = random(dtype, *batch, m, n), min(m, n)
    for full in (False, True):
        u, s, vh = linalg.svd(a, full_matrices=full)
        assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k)
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], number(a))
        close(u.mH @ u, np.broadcast_to(np.eye(u.shape[-1]), (*batch, u.shape[-1], u.shape[-1])))
        close(vh @ vh.mH, np.broadcast_to(np.eye(vh.shape[-2]), (*batch, vh.shape[-2], vh.shape[-2])))
    close(linalg.svdvals(a), np.linalg.svd(number(a), compute_uv=False))
    u, s, v = cresset.svd(a)
    close((u * s[..., None, :]) @ v.mH, number(a))
    polar = linalg.polar(a)
    close(polar.U @ polar.P, number(a))
    close(polar.P, dagger(number(polar.P)))


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("m,n", [(5, 3), (3, 5), (4, 4)])
def test_lstsq(dtype, close, driver, m, n):
    a, b = random(dtype, 2, m, n), random(dtype, 2, m, 2)
    result = linalg.lstsq(a, b, driver=driver)
    want = np.linalg.pinv(number(a)) @ number(b)
    close(result.solution, want)
    if m > n and driver in ("gels", "gelsd", "gelss"):
        close(result.residuals, (np.abs(number(a) @ want - number(b)) ** 2).sum(-2))
    else:
        assert result.residuals.numel() == 0
    assert result.rank.tolist() == ([] if driver == "gels" else [min(m, n)] * 2)
    if driver in ("gelsd", "gelss"):
        close(result.singular_values, np.linalg.svd(number(a), compute_uv=False))
    close(linalg.lstsq(a[0], b[0, :, 0], driver=driver).solution, want[0, :, 0])


def test_lstsq_rank_deficient():
    a, b = cresset.ones(4, 2), random("float32", 4, 1)
    for driver in ("gelsy", "gelsd", "gelss"):
        result = linalg.lstsq(a, b, driver=driver)
        assert result.rank.item() == 1 and result.residuals.numel() == 0
        np.testing.assert_allclose(number(result.solution), np.full((2, 1), number(b).mean() / 2), rtol=1e-4)


def test_matrix_functions(dtype, close):
    a = random(dtype, 2, 4, 4)
    w, v = np.linalg.eig(number(a).astype("complex128"))
    exact = (v * np.exp(w)[..., None, :]) @ np.linalg.inv(v)
    close(linalg.matrix_exp(a), exact if dtype.startswith("complex") else exact.real)
    # Norms of one batch far apart: each matrix is scaled by itself.
    skew = cresset.stack([cresset.tensor([[0.0, -s], [s, 0.0]], dtype=a.dtype) for s in (1e-3, 1.0, 40.0)])
    angles = np.array([1e-3, 1.0, 40.0])
    close(linalg.matrix_exp(skew)[:, 0, 0], np.cos(angles))
    h = positive(a)
    root = linalg.matrix_sqrth(h)
    close(root @ root, number(h))
    close(root, dagger(number(root)))


def test_layout():
    """Results that LAPACK writes are column-major."""
    a = positive(random("float64", 2, 3, 3))
    t = random("float64", 2, 4, 3)
    for result in (linalg.cholesky(a), linalg.inv(a), linalg.eigh(a)[1], linalg.solve(a, a), linalg.lu_factor(a)[0]):
        assert result.stride() == (9, 1, 3)
    assert linalg.svd(t)[0].stride() == (16, 1, 4) and linalg.qr(t)[0].stride() == (12, 1, 4)
    assert linalg.solve(a, t, left=False).stride() == (12, 3, 1) and linalg.lu(t)[1].stride() == (12, 3, 1)


def test_lu_function():
    a = random("float64", 2, 3, 3)
    factors, pivots = cresset.lu(a)
    assert cresset.equal(factors, linalg.lu_factor(a)[0]) and cresset.equal(pivots, a.lu()[1])
    assert cresset.lu(cresset.zeros(2, 2), get_infos=True)[2].item() == 1
    out = (cresset.empty(0, dtype=a.dtype), cresset.empty(0, dtype=cresset.int32))
    assert cresset.lu(a, out=out) is out and cresset.equal(out[0], factors)
    with pytest.raises(TypeError, match="expected tuple of 2 elements but got 1"):
        cresset.lu(a, out=out[:1])


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (5, 3, 2)])
def test_orthogonal(shape):
    w = cresset.nn.init.orthogonal_(cresset.empty(shape, dtype=cresset.float64), gain=2).reshape(shape[0], -1)
    gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(number(gram), 4 * np.eye(gram.shape[0]), atol=1e-12)


# ---- derivatives ---------------------------------------------------------------------------------------------------------


def hermitian(x):
    return (x + x.mH) / 2


def spectrum(w, v):
    """What does not depend on the phases of eigenvectors."""
    return w, v.real**2 + v.imag**2 if v.is_complex() else v**2


def singular(u, s, vh):
    square = (lambda t: t.real**2 + t.imag**2) if u.is_complex() else (lambda t: t**2)
    k = s.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    return s, square(u), square(vh), (u * s.exp()[..., None, :]) @ vh


SQUARE = {
    "cholesky": lambda x: linalg.cholesky(positive(x)),
    "cholesky upper": lambda x: linalg.cholesky(positive(x), upper=True),
    "cholesky_inverse": lambda x: cresset.cholesky_inverse(linalg.cholesky(positive(x))),
    "cholesky_solve": lambda x: cresset.cholesky_solve(x, x.triu(), True),
    "eigh": lambda x: spectrum(*linalg.eigh(hermitian(x))),
    "eigvalsh": lambda x: linalg.eigvalsh(hermitian(x), "U"),
    "eig": lambda x: spectrum(*linalg.eig(x)),
    "eigvals": lambda x: linalg.eigvals(x),
    "svd": lambda x: singular(*linalg.svd(x)),
    "sqrth": lambda x: linalg.matrix_sqrth(positive(x)),
    "lu and solve": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x.mT.contiguous()),
}
TALL = {
    "svd": lambda x: singular(*linalg.svd(x, full_matrices=False)),
    "svd full": lambda x: singular(*linalg.svd(x)),
    "svd wide": lambda x: singular(*linalg.svd(x.mT)),
    "qr": lambda x: linalg.qr(x),
    "qr complete": lambda x: linalg.qr(x.mH, "complete"),
    "svd older": lambda x: cresset.svd(x)[1],
}
CASES = [(name, f, (2, 3, 3)) for name, f in SQUARE.items()] + [(name + " tall", f, (4, 2)) for name, f in TALL.items()]
each_case = pytest.mark.parametrize("f,shape", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
each_double = pytest.mark.parametrize("double", ["float64", "complex128"])


def matrix(double, shape):
    generator = np.random.default_rng(5)
    x = random(double, *shape, generator=generator) * 0.3
    spread = cresset.diag_embed(cresset.arange(1.0, shape[-1] + 1).to(x.dtype))
    return (x + cresset.nn.functional.pad(spread, (0, 0, 0, shape[-2] - shape[-1]))).requires_grad_()


@each_case
@each_double
def test_reverse(f, shape, double):
    x = matrix(double, shape)
    gradcheck.check_reverse(lambda: f(x), [x], rng())


@each_case
@each_double
def test_forward(f, shape, double):
    gradcheck.check_forward(f, [matrix(double, shape)], rng())


@each_case
@each_double
def test_second(f, shape, double):
    x = matrix(double, shape[-2:])
    gradcheck.check_second(lambda: f(x), [x], rng())


def test_gauge():
    """A loss that depends on the phase of complex vectors has no gradient."""
    x = matrix("complex128", (3, 3))
    for name, value in [
        ("svd_backward", lambda: linalg.svd(x)[0].sum().abs()),
        ("linalg_eig_backward", lambda: linalg.eig(x)[1].sum().abs()),
        ("linalg_eigh_backward", lambda: linalg.eigh(hermitian(x))[1].sum().abs()),
    ]:
        with pytest.raises(RuntimeError, match=f"{name}.*ill-defined"):
            value().backward()


def test_det_of_singular_matrices():
    """The gradient is the matrix of cofactors, which exists for singular matrices too."""
    x = cresset.tensor(
        [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 3.0]], [[1.0, 2.0], [3.0, 4.0]]],
        dtype=cresset.float64,
        requires_grad=True,
    )
    linalg.det(x).sum().backward()
    want = [[[4, -2], [-2, 1]], [[3, 0], [0, 0]], [[4, -3], [-2, 1]]]
    np.testing.assert_allclose(number(x.grad), want, atol=1e-12)


def test_no_derivative():
    x = matrix("float64", (3, 2))
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        linalg.qr(x, "complete")[0].sum().backward()
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed when mode='r'"):
        linalg.qr(x, "r")[1].sum().backward()
    with pytest.raises(RuntimeError, match="geqrf"):
        cresset.geqrf(x)[0].sum().backward()


# ---- errors --------------------------------------------------------------------------------------------------------------

eye, zeros, ones = cresset.eye, cresset.zeros, cresset.ones
SINGULAR = cresset.stack([eye(3), zeros(3, 3)])
NAN = cresset.full((3, 3), float("nan"))
i32 = cresset.int32

LINALG_ERRORS = {
    "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order 1 is not positive-definite).": lambda: (
        linalg.cholesky(zeros(3, 3))
    ),
    "linalg.cholesky: (Batch element 1): The factorization could not be completed": lambda: linalg.cholesky(SINGULAR),
    "cholesky: The factorization could not be completed": lambda: cresset.cholesky(NAN),
    "linalg.cholesky_ex: The factorization": lambda: linalg.cholesky_ex(zeros(3, 3), check_errors=True),
    "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.": lambda: (
        linalg.inv(zeros(3, 3))
    ),
    "linalg.inv: (Batch element 1): The diagonal element 1 is zero": lambda: cresset.inverse(SINGULAR),
    "cholesky_inverse: The diagonal element 1 is zero": lambda: cresset.cholesky_inverse(zeros(3, 3)),
    "torch.linalg.solve: (Batch element 1): The solver failed because the input matrix is singular.": lambda: (
        linalg.solve(SINGULAR, eye(3))
    ),
    "torch.linalg.solve_ex: The solver failed": lambda: linalg.solve_ex(zeros(3, 3), eye(3), check_errors=True),
    "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.": lambda: (
        linalg.svd(NAN)
    ),
    "linalg.eigh: The algorithm failed to converge": lambda: linalg.eigvalsh(NAN),
}
RUNTIME_ERRORS = {
    "torch.linalg.lu_factor: U[1,1] is zero and using it on lu_solve would result in a division by zero.": lambda: linalg.lu_factor(zeros(3, 3)),
    "linalg.inv: A must be batches of square matrices, but they are 3 by 4 matrices": lambda: linalg.inv(ones(3, 4)),
    "linalg.inv: The input tensor A must have at least 2 dimensions.": lambda: linalg.inv(ones(3)),
    "linalg.inv: Low precision dtypes not supported. Got Half": lambda: linalg.inv(eye(3).half()),
    "linalg.det: Expected a floating point or complex tensor as input. Got Long": lambda: cresset.det(eye(3).long()),
    "torch.linalg.eig: input tensor should not contain infs or NaNs.": lambda: linalg.eig(NAN),
    "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x4)": lambda: linalg.solve(eye(3), ones(4, 4)),
    "linalg.solve: Expected A and B to have the same dtype, but found A of type Float and B of type Double instead": lambda: linalg.solve(eye(3), eye(3).double()),
    "Incompatible matrix sizes for cholesky_solve: each A matrix is 3 by 3 but each b matrix is 4 by 4": lambda: cresset.cholesky_solve(ones(4, 4), eye(3)),
    "qr received unrecognized mode 'x' but expected one of 'reduced' (default), 'r', or 'complete'": lambda: linalg.qr(eye(3), "x"),
    "Expected UPLO argument to be 'L' or 'U', but got x": lambda: linalg.eigh(eye(3), "x"),
    "keyword argument `driver=` is only supported on CUDA": lambda: linalg.svd(eye(3), driver="gesvd"),
    "parameter `driver` should be one of (gels, gelsy, gelsd, gelss)": lambda: linalg.lstsq(eye(3), eye(3), driver="x"),
    "linalg.lu_factor: LU without pivoting is not implemented on the CPU": lambda: linalg.lu_factor(eye(3), pivot=False),
    # Pivots say where LAPACK reads and writes.
    "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive": lambda: cresset.lu_unpack(eye(3), cresset.full((3,), 7, dtype=i32)),
    "torch.lu_unpack: pivots of sizes [3] were required": lambda: cresset.lu_unpack(eye(3), ones(4, dtype=i32)),
    "Pivots given to lu_solve must all be greater or equal to 1": lambda: linalg.lu_solve(eye(3), cresset.full((3,), 0, dtype=i32), eye(3)),
    "Number of pivots per batch should be same as the dimension of the matrix": lambda: linalg.lu_solve(eye(3), ones(2, dtype=i32), eye(3)),
    "Pivots given to ldl_solve must all satisfy": lambda: linalg.ldl_solve(eye(3), cresset.tensor([1, 2, -3], dtype=i32), eye(3)),
    "torch.ormqr: other.shape[-2] must be equal to input.shape[-2]": lambda: cresset.ormqr(eye(3), ones(3), ones(4, 3)),
    "input.shape[-2] must be greater than or equal to input.shape[-1]": lambda: linalg.householder_product(ones(3, 4), ones(3)),
    "torch.linalg.householder_product: Expected batch dimensions of tau": lambda: linalg.householder_product(ones(2, 3, 3), ones(4, 3)),
}  # fmt: skip


@pytest.mark.parametrize("words", LINALG_ERRORS)
def test_linalg_errors(words):
    with pytest.raises(linalg.LinAlgError) as error:
        LINALG_ERRORS[words]()
    assert words in str(error.value) and type(error.value).__name__ == "_LinAlgError", "PyTorch's name"


@pytest.mark.parametrize("words", RUNTIME_ERRORS)
def test_runtime_errors(words):
    with pytest.raises(RuntimeError) as error:
        RUNTIME_ERRORS[words]()
    assert words in str(error.value) and not isinstance(error.value, linalg.LinAlgError)


def test_status_instead_of_errors():
    assert linalg.cholesky_ex(SINGULAR).info.tolist() == [0, 1]
    assert linalg.inv_ex(SINGULAR).info.tolist() == [0, 1]
    assert linalg.solve_ex(SINGULAR, eye(3)).info.tolist() == [0, 1]
    assert linalg.lu_factor_ex(SINGULAR).info.tolist() == [0, 1]
    assert linalg.ldl_factor_ex(SINGULAR).info.tolist() == [0, 1]


# ---- errors of factorisations in graphs ----------------------------------------------------------------------------------


SINGULAR_TEXT = "The diagonal element 2 is zero, the inversion could not be completed because the input matrix is singular."
LU_ZERO = (
    "U[2,2] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, "
    "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


@pytest.mark.parametrize(("name", "kind", "words"), [
    ("linalg.inv", linalg.LinAlgError, SINGULAR_TEXT),
    ("linalg.pinv", linalg.LinAlgError, SINGULAR_TEXT),
    ("torch.linalg.solve_ex", linalg.LinAlgError, "The solver failed because the input matrix is singular."),
    ("cholesky", linalg.LinAlgError, "The factorization could not be completed because the input is not positive-definite (the leading minor of order 2 is not positive-definite)."),
    ("syevd", linalg.LinAlgError, "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: 2)."),
    ("linalg.svd", linalg.LinAlgError, "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values (error code: 2)."),
    ("linalg.lstsq", linalg.LinAlgError, "The least squares solution could not be computed because the input matrix does not have full rank (error code: 2)."),
    ("lu_factor_ex", RuntimeError, LU_ZERO),
])  # fmt: skip
def test_check_errors(name, kind, words):
    one, several = cresset.tensor(2, dtype=cresset.int32), cresset.tensor([0, 2], dtype=cresset.int32)
    with pytest.raises(RuntimeError) as raised:
        cresset._linalg_check_errors(one, name, is_matrix=True)
    assert type(raised.value) is kind and str(raised.value) == f"{name}: {words}"
    with pytest.raises(RuntimeError) as raised:
        cresset._linalg_check_errors(several, name, is_matrix=False)
    assert type(raised.value) is kind and str(raised.value) == f"{name}: (Batch element 1): {words}"
    with pytest.raises(RuntimeError) as raised:
        cresset.vmap(lambda info: cresset._linalg_check_errors(info, name, is_matrix=True) or info)(several)
    assert str(raised.value) == f"{name}: (Batch element 1): {words}"
    assert cresset._linalg_check_errors(several * 0, name, is_matrix=False) is None
    assert cresset._linalg_check_errors(several.to("meta"), name, is_matrix=False) is None


def test_check_errors_refuses():
    with pytest.raises(RuntimeError, match=r"^other: Unknown error code: 3\.$"):
        cresset._linalg_check_errors(cresset.tensor(3, dtype=cresset.int32), "other", is_matrix=True)
    with pytest.raises(RuntimeError, match="_linalg_check_errors: info must be a tensor of int32; Float was given"):
        cresset._linalg_check_errors(cresset.ones(()), "linalg.inv", is_matrix=True)


@pytest.mark.parametrize(("function", "operators"), [
    (linalg.inv, ["linalg_inv_ex", "_linalg_check_errors"]),
    (cresset.inverse, ["linalg_inv_ex", "_linalg_check_errors"]),
    (linalg.cholesky, ["linalg_cholesky_ex", "_linalg_check_errors"]),
    (linalg.lu_factor, ["linalg_lu_factor_ex", "_linalg_check_errors"]),
    (linalg.ldl_factor, ["linalg_ldl_factor_ex", "_linalg_check_errors"]),
    (lambda a: linalg.solve(a, a), ["_linalg_solve_ex", "_linalg_check_errors"]),
    (lambda a: linalg.solve_ex(a, a, check_errors=True), ["_linalg_solve_ex"]),
])  # fmt: skip
def test_factorisations_of_fakes(function, operators):
    from cresset._subclasses import FakeTensorMode
    from cresset.fx.experimental.proxy_tensor import make_fx

    good, bad = cresset.eye(2), cresset.zeros(2, 2)
    mode = FakeTensorMode()
    with mode:
        result = function(mode.from_tensor(good))
        assert (result if isinstance(result, cresset.Tensor) else result[0]).shape == (2, 2)
    module = make_fx(function, tracing_mode="fake")(good)
    module.graph.eliminate_dead_code()
    module.recompile()
    assert [str(n.target).split(".")[1] for n in module.graph.nodes if "aten" in str(n.target)] == operators
    if function is not linalg.ldl_factor:
        with pytest.raises(RuntimeError) as here:
            function(bad)
        with pytest.raises(RuntimeError) as there:
            module(bad)
        assert str(there.value) == str(here.value)
