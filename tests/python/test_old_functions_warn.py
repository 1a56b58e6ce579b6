"""Functions that newer ones replace say so, in PyTorch's words, as do calls whose meaning is going to change there."""

import warnings

import pytest

import cresset

EYE, CASES = cresset.eye(2), {}
CASES["cholesky"] = lambda: cresset.cholesky(EYE), "torch.cholesky is deprecated in favor of torch.linalg.cholesky"
CASES["qr"] = lambda: cresset.qr(EYE), "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
CASES["chain_matmul"] = lambda: cresset.chain_matmul(EYE, EYE), "Use torch.linalg.multi_dot instead, which accepts a list of two or more tensors"
CASES["lu"] = lambda: cresset.lu(EYE), "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
CASES["lu_solve"] = lambda: cresset.lu_solve(EYE, *cresset.linalg.lu_factor(EYE)), "X = torch.linalg.lu_solve(LU, pivots, B)"
CASES["meshgrid"] = lambda: cresset.meshgrid(EYE[0], EYE[1]), "in an upcoming release, it will be required to pass the indexing argument."
CASES["cross"] = lambda: cresset.cross(cresset.ones(3, 3), cresset.ones(3, 3)), "Please either pass the dim explicitly or simply use torch.linalg.cross."
CASES["T"] = lambda: cresset.ones(2, 2, 2).T, "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
CASES["where"] = lambda: cresset.where(cresset.ones(2).byte(), EYE[0], EYE[1]), "will be removed in a future version of PyTorch. Use a boolean condition instead."
CASES["new_tensor"] = lambda: EYE.new_tensor(EYE), "rather than tensor.new_tensor(sourceTensor)."
CASES["tensor"] = lambda: cresset.tensor(EYE), "rather than torch.tensor(sourceTensor)."
CASES["var"] = lambda: cresset.ones(1).var(), "var(): degrees of freedom is <= 0."
CASES["std"] = lambda: cresset.ones(1).std(), "std(): degrees of freedom is <= 0."


@pytest.fixture(autouse=True)
def always():
    before = cresset.is_warn_always_enabled()
    cresset.set_warn_always(True)
    yield
    cresset.set_warn_always(before)


@pytest.mark.parametrize("name", CASES)
def test_it_says_what_to_write(name):
    call, words = CASES[name]
    for _ in range(2):
        with pytest.warns(UserWarning) as found:
            call()
        assert words in str(found[0].message)


def test_autocast_by_kind_of_device():
    words = r"torch.get_autocast_gpu_dtype\(\) is deprecated. Please use torch.get_autocast_dtype\('cuda'\) instead."
    with pytest.warns(DeprecationWarning, match=words):
        assert cresset.get_autocast_gpu_dtype() == cresset.float16
    words = r"torch.set_autocast_cpu_enabled\(enabled\) is deprecated. Please use torch.set_autocast_enabled\('cpu', enabled\) instead."
    with pytest.warns(DeprecationWarning, match=words):
        cresset.set_autocast_cpu_enabled(False)


def test_what_replaces_them_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cresset.linalg.cholesky(EYE), cresset.linalg.qr(EYE), cresset.linalg.multi_dot([EYE, EYE]), cresset.linalg.lu_factor(EYE)
        cresset.meshgrid(EYE[0], EYE[1], indexing="ij"), cresset.cross(cresset.ones(3, 3), cresset.ones(3, 3), dim=1), EYE.T
