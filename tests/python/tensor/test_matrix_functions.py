"""Matrices, distances, bins, differences and statistics against NumPy, and the words of their errors."""

import itertools

import cresset
import numpy as np
import pytest

RNG = np.random.default_rng(5)
A33, A34, A43, A234 = (RNG.standard_normal(s) for s in ((3, 3), (3, 4), (4, 3), (2, 3, 4)))
V4, W4 = RNG.standard_normal(4), np.abs(RNG.standard_normal(4)) + 0.1
V20, W20, P20 = RNG.standard_normal(20), np.abs(RNG.standard_normal(20)), RNG.standard_normal((20, 2))
EDGES = np.array([-1.0, -0.2, 0.3, 1.5])
INF = float("inf")
L = cresset.linalg


def t(x):
    return cresset.from_numpy(np.ascontiguousarray(x))


def check(have, want):
    if isinstance(want, (list, tuple)):
        assert len(have) == len(want)
        for h, w in zip(have, want):
            check(h, w)
        return
    np.testing.assert_allclose(have.numpy(), want, rtol=1e-9, atol=1e-12)


CASES = {
    **{f"matrix_norm {p}": (lambda p=p: L.matrix_norm(t(A34), p), lambda p=p: np.linalg.norm(A34, p)) for p in (1, -1, 2, -2, INF, -INF, "fro", "nuc")},
    **{f"cond {p}": (lambda p=p: L.cond(t(A33), p), lambda p=p: np.linalg.cond(A33, p)) for p in (None, 1, -1, 2, -2, INF, -INF, "fro")},
    "norm of a batch": (lambda: L.norm(t(A234), 2, (2, 0)), lambda: np.linalg.norm(A234, 2, (2, 0))),
    "nuclear norm": (lambda: cresset.norm(t(A234), "nuc", (1, 2)), lambda: np.linalg.norm(A234, "nuc", (1, 2))),
    "rank": (lambda: L.matrix_rank(t(A43 @ A34)), lambda: np.linalg.matrix_rank(A43 @ A34)),
    "rank with tolerance": (lambda: L.matrix_rank(t(A34), 1.5), lambda: np.linalg.matrix_rank(A34, 1.5)),
    "pinv": (lambda: L.pinv(t(A234)), lambda: np.linalg.pinv(A234)),
    "pinv rcond": (lambda: cresset.pinverse(t(A34), 0.5), lambda: np.linalg.pinv(A34, 0.5)),
    "pinv hermitian": (lambda: L.pinv(t(A33 + A33.T), hermitian=True), lambda: np.linalg.pinv(A33 + A33.T)),
    "matrix_power": (lambda: L.matrix_power(t(A33), -5), lambda: np.linalg.matrix_power(A33, -5)),
    "multi_dot": (lambda: L.multi_dot([t(V4), t(A43), t(A34), t(W4)]), lambda: np.linalg.multi_dot([V4, A43, A34, W4])),
    "tensorinv": (lambda: L.tensorinv(t(np.eye(6).reshape(2, 3, 6) + 0.1)), lambda: np.linalg.tensorinv(np.eye(6).reshape(2, 3, 6) + 0.1)),
    "tensorsolve": (
        lambda: L.tensorsolve(t(np.eye(6).reshape(6, 2, 3) + 0.1), t(A34[:2, :3]), (0,)),
        lambda: np.linalg.tensorsolve(np.eye(6).reshape(6, 2, 3) + 0.1, A34[:2, :3], (0,)),
    ),
    "cross": (lambda: L.cross(t(A43), t(A43[::-1])), lambda: np.cross(A43, A43[::-1])),
    "vander": (lambda: cresset.vander(t(V4), 3), lambda: np.vander(V4, 3)),
    "tensordot": (lambda: cresset.tensordot(t(A234), t(A43), ([2, 1], [0, 1])), lambda: np.tensordot(A234, A43, ([2, 1], [0, 1]))),
    **{
        f"cdist {p}": (lambda p=p: cresset.cdist(t(A34), t(A234), p), lambda p=p: np.linalg.norm(A34[:, None] - A234[:, None], p, -1))
        for p in (0, 1, 1.5, 2, 3, INF)
    },
    "cdist of many rows": (lambda: cresset.cdist(t(P20.repeat(2, 0)), t(P20)), lambda: np.linalg.norm(P20.repeat(2, 0)[:, None] - P20, axis=-1)),
    "pdist": (
        lambda: cresset.nn.functional.pdist(t(A43), 3),
        lambda: np.array([np.linalg.norm(a - b, 3) for a, b in itertools.combinations(A43, 2)]),
    ),
    "cov": (
        lambda: cresset.cov(t(A34), correction=0, fweights=t(np.array([1, 2, 0, 3])), aweights=t(W4)),
        lambda: np.cov(A34, ddof=0, fweights=[1, 2, 0, 3], aweights=W4),
    ),
    "corrcoef": (lambda: cresset.corrcoef(t(A34)), lambda: np.corrcoef(A34)),
    "nanquantile": (
        lambda: cresset.nanquantile(t(np.where(A34 > 0.8, np.nan, A34)), t(W4 / 9), 1),
        lambda: np.nanquantile(np.where(A34 > 0.8, np.nan, A34), W4 / 9, 1),
    ),
    "gradient": (lambda: cresset.gradient(t(A34), spacing=[0.5, 2.0], edge_order=2), lambda: np.gradient(A34, 0.5, 2.0, edge_order=2)),
    "gradient at coordinates": (
        lambda: cresset.gradient(t(A34), spacing=[t(W4.cumsum())], dim=1, edge_order=2),
        lambda: [np.gradient(A34, W4.cumsum(), axis=1, edge_order=2)],
    ),
    "histogram": (lambda: cresset.histogram(t(V20), 4, weight=t(W20), density=True), lambda: np.histogram(V20, 4, weights=W20, density=True)),
    "histogram edges": (lambda: cresset.histogram(t(V20), t(EDGES))[0], lambda: np.histogram(V20, EDGES)[0]),
    "histogramdd": (
        lambda: cresset.histogramdd(t(P20), [2, 3], weight=t(W20), density=True),
        lambda: np.histogramdd(P20, [2, 3], weights=W20, density=True),
    ),
    "unravel_index": (lambda: cresset.unravel_index(t(np.array([[5, 23]])), (2, 3, 4)), lambda: np.unravel_index(np.array([[5, 23]]), (2, 3, 4))),
    "combinations": (
        lambda: cresset.combinations(t(V4), 3, True),
        lambda: np.array(list(itertools.combinations_with_replacement(V4, 3))),
    ),
    "segment_reduce": (
        lambda: cresset.segment_reduce(t(A43), "mean", offsets=t(np.array([1, 3, 3, 4]))),
        lambda: np.stack([A43[1:3].mean(0), np.full(3, np.nan), A43[3]]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    have, want = CASES[name]
    check(have(), want())


def test_low_rank_decompositions_find_a_low_rank_matrix():
    a = RNG.standard_normal((6, 2)) @ RNG.standard_normal((2, 5))
    for matrix, mean in ((a, np.zeros((1, 5))), (a.T, np.ones((5, 1)))):
        u, s, v = cresset.svd_lowrank(t(matrix) + t(mean), q=3, M=t(mean))
        check(u @ s.diag() @ v.mH, matrix)
    u, s, v = cresset.pca_lowrank(t(a), q=2)
    centred = a - a.mean(0)
    check(s, np.linalg.svd(centred, compute_uv=False)[:2])
    check(u @ s.diag() @ v.mH, centred)


def test_nonzero_static_pads_and_cuts():
    x = cresset.tensor([[0, 1], [2, 3]])
    assert cresset.nonzero_static(x, size=4, fill_value=9).tolist() == [[0, 1], [1, 0], [1, 1], [9, 9]]
    assert cresset.nonzero_static(x, size=1).tolist() == [[0, 1]]


def test_chunk_cat_pads_each_tensor():
    out = cresset._chunk_cat([cresset.ones(3), cresset.full((2, 2), 2.0)], 0, 2)
    assert out.tolist() == [[1, 1, 2, 2], [1, 0, 2, 2]]


def test_masked_index_reads_nothing_out_of_range():
    x, mask, far = t(A34), cresset.tensor([True, False]), cresset.tensor([1, 10**9])
    assert cresset._unsafe_masked_index(x, mask, [far, far], 7.0).tolist() == [A34[1, 1], 7.0]
    out = cresset._unsafe_masked_index_put_accumulate(x, mask, [far, far], cresset.tensor([1.0, 2.0], dtype=cresset.float64))
    assert (out - x).sum().item() == pytest.approx(1.0)


ERRORS = [
    (lambda: L.matrix_norm(t(A34), 3), RuntimeError, "Order 3 not supported"),
    (lambda: L.norm(t(A234), 2), RuntimeError, "must be 1D or 2D. Got 3D"),
    (lambda: L.cond(t(A34), 1), RuntimeError, "batches of square matrices"),
    (lambda: L.pinv(t(V4)), RuntimeError, "2 or more dimensions"),
    (lambda: L.multi_dot([t(A34), t(A34)]), RuntimeError, "cannot be multiplied"),
    (lambda: L.tensorinv(t(A234), 0), RuntimeError, "strictly positive"),
    (lambda: L.cross(t(A34), t(A34)), RuntimeError, "must have length 3"),
    (lambda: cresset.tensordot(t(A34), t(A34), ([0], [1])), RuntimeError, "contracted dimensions need to match"),
    (lambda: cresset.cdist(t(A34), t(A43)), RuntimeError, "same number of columns"),
    (lambda: cresset.cdist(t(A34), t(A34), compute_mode="x"), ValueError, "not a valid value"),
    (lambda: cresset.pdist(t(A234)), RuntimeError, "only supports 2D"),
    (lambda: cresset.cov(t(A34), fweights=t(np.array([1, 2]))), RuntimeError, "same numel"),
    (lambda: cresset.gradient(t(A34), edge_order=3), RuntimeError, "edge_order=1 and edge_order=2"),
    (lambda: cresset.histogram(t(V20), 0), RuntimeError, "bins must be > 0"),
    (lambda: cresset.histogram(t(V20), 3, range=(0.0, INF)), RuntimeError, "is not finite"),
    (lambda: cresset.unravel_index(t(V4), (2, 2)), TypeError, "integer dtype"),
    (lambda: cresset.segment_reduce(t(V4), "sum", lengths=t(np.array([5]))), RuntimeError, "to sum to data.size"),
    (lambda: cresset.segment_reduce(t(V4), "sum", offsets=t(np.array([0, 5]))), RuntimeError, "offsets"),
    (lambda: cresset.segment_reduce(t(V4), "sum", lengths=t(np.array([5])), unsafe=True), RuntimeError, "to sum to"),
    (lambda: cresset.pca_lowrank(t(A34), q=4), ValueError, "not greater than min"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    call, kind, words = ERRORS[number]
    with pytest.raises(kind, match=words.replace("(", r"\(")):
        call()
