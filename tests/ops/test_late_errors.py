"""Operators that find a wrong index while they write: `out=` and the tensor itself stay as they were."""

import pytest

import cresset

X, SRC, ROWS = cresset.zeros(4, 3), cresset.ones(4, 3), cresset.ones(2, 3)
OUTSIDE = cresset.zeros(4, 3, dtype=cresset.int64)
OUTSIDE[3, 1] = 9
ROW_OUTSIDE = cresset.tensor([0, 9])

CALLS = {
    "scatter": (0, OUTSIDE, SRC),
    "scatter value": (0, OUTSIDE, 1.0),
    "scatter_add": (0, OUTSIDE, SRC),
    "scatter_reduce": (0, OUTSIDE, SRC, "sum"),
    "index_add": (0, ROW_OUTSIDE, ROWS),
    "index_copy": (0, ROW_OUTSIDE, ROWS),
    "index_reduce": (0, ROW_OUTSIDE, ROWS, "prod"),
}
WORDS = "out of bounds|out of range"


@pytest.mark.parametrize("name", [*CALLS, "gather"])
@pytest.mark.parametrize("sizes", [(4, 3), (0,)])
def test_out_is_kept(name, sizes):
    out = cresset.full(sizes, 7.0)
    with pytest.raises((RuntimeError, IndexError), match=WORDS):
        getattr(cresset, name.split()[0])(X, *CALLS.get(name, (0, OUTSIDE)), out=out)
    assert out.shape == sizes and (out == 7).all()


@pytest.mark.parametrize("name", CALLS)
def test_self_is_kept(name):
    t = cresset.full((4, 3), 7.0)
    with pytest.raises((RuntimeError, IndexError), match=WORDS):
        getattr(t, name.split()[0] + "_")(*CALLS[name])
    assert (t == 7).all()


# ---- factorisations that fail, running statistics

SINGULAR, NAN, INDEFINITE = cresset.zeros(2, 2), cresset.full((2, 2), float("nan")), -cresset.eye(2)
linalg, aten = cresset.linalg, cresset.ops.aten

FACTORISATIONS = {
    "cholesky_inverse": (lambda o: aten.cholesky_inverse.out(SINGULAR, out=o[0]), 1),
    "cholesky_ex": (lambda o: aten.linalg_cholesky_ex.L(INDEFINITE, check_errors=True, L=o[0], info=o[1]), 2),
    "cholesky": (lambda o: linalg.cholesky(INDEFINITE, out=o[0]), 1),
    "inv_ex": (lambda o: aten.linalg_inv_ex.inverse(SINGULAR, check_errors=True, inverse=o[0], info=o[1]), 2),
    "inv": (lambda o: linalg.inv(SINGULAR, out=o[0]), 1),
    "solve_ex": (lambda o: aten.linalg_solve_ex.out(SINGULAR, cresset.ones(2, 2), check_errors=True, result=o[0], info=o[1]), 2),
    "solve": (lambda o: linalg.solve(SINGULAR, cresset.ones(2, 2), out=o[0]), 1),
    "lu_factor": (lambda o: aten.linalg_lu_factor.out(SINGULAR, LU=o[0], pivots=o[2]), 3),
    "ldl_factor": (lambda o: aten.linalg_ldl_factor.out(SINGULAR, LD=o[0], pivots=o[2]), 3),
    "eigh": (lambda o: linalg.eigh(NAN, out=(o[3], o[0])), 4),
    "svdvals": (lambda o: linalg.svdvals(NAN, out=o[3]), 4),
}


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_out_of_a_factorisation_that_fails_is_kept(name):
    call, _ = FACTORISATIONS[name]
    outs = [cresset.full((2, 2), 7.0), cresset.full((), 7, dtype=cresset.int32), cresset.full((2,), 7, dtype=cresset.int32), cresset.full((2,), 7.0)]
    with pytest.raises(RuntimeError):
        call(outs)
    assert all((out == 7).all() for out in outs)


@pytest.mark.parametrize("operator", [aten.native_batch_norm.out, aten._native_batch_norm_legit.out])
def test_running_statistics_change_with_the_outputs(operator):
    x, mean, var = cresset.randn(4, 3), cresset.zeros(3), cresset.ones(3)
    outs = {"out": cresset.empty(4, 3), "save_mean": cresset.empty(3), "save_invstd": cresset.empty(3, dtype=cresset.int64)}
    with pytest.raises(RuntimeError):
        operator(x, None, None, mean, var, True, 0.1, 1e-5, **outs)
    assert mean.tolist() == [0.0] * 3 and var.tolist() == [1.0] * 3
    outs["save_invstd"] = cresset.empty(3)
    operator(x, None, None, mean, var, True, 0.1, 1e-5, **outs)
    assert cresset.allclose(mean, 0.1 * x.mean(0))
    assert cresset.allclose(outs["out"], aten.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[0])
