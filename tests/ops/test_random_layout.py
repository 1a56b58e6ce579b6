"""Random fills draw in the order of memory, so a permuted tensor gets the numbers of its dense counterpart."""

import cresset
import pytest

FILLS = {
    "uniform_": lambda t: t.uniform_(),
    "bernoulli_": lambda t: t.bernoulli_(0.4),
    "exponential_": lambda t: t.exponential_(),
    "geometric_": lambda t: t.geometric_(0.3),
    "cauchy_": lambda t: t.cauchy_(),
    "log_normal_": lambda t: t.log_normal_(),
    "random_": lambda t: t.random_(0, 1000),
}


def seeded(fill, t):
    cresset.manual_seed(0)
    return fill(t)


@pytest.mark.parametrize("name", FILLS)
def test_permuted(name):
    dense = seeded(FILLS[name], cresset.empty(4, 3, 8))
    permuted = seeded(FILLS[name], cresset.empty(4, 3, 8).permute(2, 0, 1))
    assert permuted.stride() == (1, 24, 8)
    assert cresset.equal(permuted.permute(1, 2, 0), dense)


@pytest.mark.parametrize("name", FILLS)
def test_with_gaps(name):
    dense = seeded(FILLS[name], cresset.empty(8, 4))
    memory = cresset.full((16, 4), -1.0)
    seeded(FILLS[name], memory[::2].t())
    assert cresset.equal(memory[::2], dense)
    assert cresset.equal(memory[1::2], cresset.full((8, 4), -1.0))


def test_probabilities_follow_self():
    p = cresset.linspace(0, 1, 32).reshape(4, 8)
    dense = seeded(lambda t: t.bernoulli_(p), cresset.empty(4, 8))
    permuted = seeded(lambda t: t.bernoulli_(p.t()), cresset.empty(4, 8).t())
    assert cresset.equal(permuted.t(), dense)


def test_dropout_of_a_transposed_input():
    x = cresset.ones(8, 4)
    dense = seeded(lambda t: cresset.nn.functional.dropout(t, 0.5), x)
    transposed = seeded(lambda t: cresset.nn.functional.dropout(t, 0.5), x.t())
    assert transposed.stride() == (1, 4)
    assert cresset.equal(transposed.t(), dense)


def test_complex_mean_is_in_both_parts():
    centred = seeded(lambda t: t.normal_(), cresset.empty(20, dtype=cresset.complex64))
    moved = seeded(lambda t: t.normal_(2.0, 3.0), cresset.empty(20, dtype=cresset.complex64))
    assert cresset.allclose(cresset.view_as_real(moved), cresset.view_as_real(centred) * 3 + 2)


@pytest.mark.parametrize("dtype", [cresset.uint8, cresset.int16, cresset.int64, cresset.bool, cresset.float64, cresset.bfloat16], ids=str)
@pytest.mark.parametrize("p_dtype", [cresset.float32, cresset.float64], ids=str)
def test_bernoulli_into_any_type(dtype, p_dtype):
    p = cresset.rand(4, 8, dtype=p_dtype)
    expected = seeded(lambda t: t.bernoulli_(p), cresset.empty(4, 8, dtype=dtype))
    for out in (cresset.full((4, 8), 1, dtype=dtype), cresset.empty(0, dtype=dtype)):
        result = seeded(lambda t: cresset.bernoulli(p, out=t), out)
        assert result is out and out.dtype == dtype and cresset.equal(result, expected)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        cresset.bernoulli(p.requires_grad_(), out=cresset.empty(4, 8))


def test_multinomial_into_any_layout_and_on_meta():
    """Recorded from PyTorch 2.13: the same draws whatever the layout of out."""
    want = [[2, 3, 0, 4], [0, 1, 2, 4], [4, 0, 2, 1]]
    for out in (cresset.empty(3, 4, dtype=cresset.long), cresset.empty(4, 3, dtype=cresset.long).t()):
        cresset.manual_seed(1)
        cresset.multinomial(cresset.rand(3, 5), 4, out=out)
        assert out.tolist() == want
    drawn = cresset.multinomial(cresset.ones(4, 4, device="meta"), 2)
    assert drawn.shape == (4, 2) and drawn.dtype == cresset.long and drawn.is_meta
