"""Operators on matrices refuse examples of one dimension: the batch is no dimension of theirs."""

import warnings

import cresset
import pytest
from cresset import linalg, vmap

CASES = {
    **{f"linalg.{name}": getattr(linalg, name) for name in """svd svdvals qr eig eigvals eigh eigvalsh inv inv_ex det slogdet cholesky cholesky_ex lu lu_factor
    lu_factor_ex ldl_factor ldl_factor_ex matrix_exp pinv matrix_rank cond""".split()},
    **{name: getattr(cresset, name) for name in "svd qr cholesky cholesky_inverse inverse pinverse det slogdet logdet geqrf tril triu".split()},
    "linalg.matrix_norm": linalg.matrix_norm, "linalg.matrix_power": lambda a: linalg.matrix_power(a, 2),
    "linalg.solve_triangular, first": lambda a: linalg.solve_triangular(a, cresset.eye(4), upper=True),
    "linalg.solve_triangular, second": lambda a: linalg.solve_triangular(cresset.eye(4), a, upper=True),
    "cholesky_solve": lambda a: cresset.cholesky_solve(cresset.eye(4), a), "cholesky_solve, first": lambda a: cresset.cholesky_solve(a, cresset.eye(4)),
    "triu_": lambda a: a.clone().triu_(), "tril_": lambda a: a.clone().tril_(),
    "linalg.ldl_solve": lambda a: linalg.ldl_solve(a, cresset.ones(4, dtype=cresset.int32), cresset.eye(4)),
    "lu_unpack": lambda a: cresset.lu_unpack(a, cresset.ones(4, dtype=cresset.int32)),
    "ormqr": lambda a: cresset.ormqr(a, cresset.ones(4), cresset.eye(4)), "linalg.householder_product": lambda a: linalg.householder_product(a, cresset.ones(4)),
}  # fmt: skip
SCALARS = {
    "view, fewer bytes": lambda a: a.view(cresset.int16), "view, more bytes": lambda a: a.view(cresset.float64),
    "view_as_complex": cresset.view_as_complex,
}  # fmt: skip


def refused(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((RuntimeError, IndexError, ValueError)) as found:
            run()
    return str(found.value)


@pytest.mark.parametrize("name", CASES)
def test_examples_of_one_dimension(name):
    square = cresset.eye(4) * 2
    alone = refused(lambda: CASES[name](square[0]))
    assert "singular" not in alone
    for levels in (lambda: vmap(CASES[name])(square), lambda: vmap(vmap(CASES[name]))(square.expand(3, 4, 4))):
        assert refused(levels) == alone


@pytest.mark.parametrize("name", SCALARS)
def test_examples_without_dimensions(name):
    assert refused(lambda: vmap(SCALARS[name])(cresset.ones(4))) == refused(lambda: SCALARS[name](cresset.ones(())))


def test_a_view_of_the_same_width_needs_no_dimension():
    assert vmap(lambda a: a.view(cresset.int32))(cresset.ones(4)).tolist() == [0x3F800000] * 4


PARTS = {
    "select": (0, 0), "select_copy": (0, 0), "slice": (0, 0, 1), "slice_copy": (0, 0, 1), "narrow_copy": (0, 0, 1), "split": (1,), "split_with_sizes": ([1],),
    "split_copy": (1,), "unsafe_split": (1,), "unbind": (0,), "unbind_copy": (0,), "roll": ([1], [0]),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_examples_that_are_numbers_have_no_parts(name):
    # As PyTorch 2.13, whose classes of errors differ for some: IndexError, RuntimeError for narrow_copy.
    with pytest.raises(IndexError, match="cannot be applied to a 0-dim tensor"):
        vmap(lambda x: getattr(cresset.ops.aten, name)(x, *PARTS[name]))(cresset.ones(3))


def test_a_number_in_place_of_a_part():
    for name, rest in (("slice_scatter", (0,)), ("select_scatter", (0, 0))):
        with pytest.raises(IndexError, match="cannot be applied to a 0-dim tensor"):
            vmap(lambda x: getattr(cresset, name)(x, x, *rest))(cresset.ones(3))  # noqa: B023
    assert vmap(lambda x: x.roll(1))(cresset.arange(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.int16, cresset.uint32])
def test_classes_of_each_example_are_numbers_of_classes(dtype):
    with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte, but got"):
        vmap(lambda x: cresset.nn.functional.nll_loss(x, cresset.zeros(1, dtype=dtype)))(cresset.ones(2, 1, 8))
