"""Where random numbers land in tensors that are not contiguous, and what layout results have: recorded with PyTorch 2.13 after manual_seed(14)."""

import pytest

import cresset

T = cresset
CASES = {
    "bernoulli with a number": (lambda: T.randn(2, 3, 4, 5).permute(3, 1, 0, 2).bernoulli(0.5), (24, 8, 4, 1), [0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 0]),
    "normal of means": (lambda: T.normal(T.zeros(4, 5).t(), 1.0), (4, 1), [-0.3417864, -0.0956495, 1.3965263, 0.7791395, -0.5159874, 2.2893176]),
    "normal of deviations": (lambda: T.normal(0.0, T.ones(4, 5).t()), (4, 1), [-0.3417864, -0.0956495, 1.3965263, 0.7791395, -0.5159874, 2.2893176]),
    "randn into few": (lambda: T.randn(5, 2, out=T.empty(2, 5).t()), (1, 5), [-1.0141327, 0.5212001, -0.3720329, 1.2622106, -0.7515989, -1.4680099]),
    "randn into many": (lambda: T.randn(10, 2, out=T.empty(2, 10).t()), (1, 10), [-1.0141327, -1.0844631, -0.3720329, -2.0900581, -0.7515989, -0.1508295]),
    "rand into": (lambda: T.rand(10, 2, out=T.empty(2, 10).t()), (1, 10), [0.5694949, 0.1465578, 0.0047202, 0.8304785, 0.9302528, 0.3578782]),
    "randint into": (lambda: T.randint(5, (10, 2), out=T.empty(2, 10, dtype=T.long).t()), (1, 10), [0, 2, 3, 3, 4, 1, 4, 0, 4, 0, 2, 1]),
    "randint from low into": (lambda: T.randint(2, 9, (10, 2), out=T.empty(2, 10).t()), (1, 10), [8, 7, 8, 4, 2, 6, 3, 8, 4, 4, 4, 7]),
    "multinomial of a transposed matrix": (lambda: T.multinomial(T.ones(4, 5).t(), 2), (2, 1), [3, 1, 0, 1, 3, 0, 2, 1, 1, 0]),
    "one of a transposed matrix": (lambda: T.multinomial(T.ones(4, 5).t(), 1, True), (1, 1), [3, 0, 3, 2, 1]),
    "multinomial of every other row": (lambda: T.multinomial(T.ones(4, 10).t()[::2], 2), (2, 1), [3, 1, 0, 1, 3, 0, 2, 1, 1, 0]),
    "alpha_dropout": (lambda: T.nn.functional.alpha_dropout(T.ones(4, 5).t(), 0.5, True), (1, 5), [-0.7791939, 1.6655989, -0.7791939, 1.6655989, 1.6655989, -0.7791939]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_numbers_and_strides(name):
    call, strides, first = CASES[name]
    T.manual_seed(14)
    got = call()
    assert got.stride() == strides
    T.testing.assert_close(got.flatten()[: len(first)].double(), T.tensor(first, dtype=T.double), rtol=0, atol=1e-6)


def test_sizes_of_out():
    out = T.empty(0)
    assert T.rand(3, out=out) is out and out.shape == (3,)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        T.randn(2, 2, out=out)
    assert out.shape == (2, 2)
    with pytest.raises(RuntimeError, match="negative dimension"):
        T.rand(-1, out=out)


def test_rrelu_rounds_once_and_is_contiguous():
    """PyTorch 2.13 after manual_seed(3)."""
    T.manual_seed(3)
    x = T.full((6,), -1.0, requires_grad=True)
    y = T.rrelu(x, training=True)
    assert [v.hex() for v in y.tolist()] == [
        "-0x1.0e8d860000000p-3", "-0x1.7a57ae0000000p-3", "-0x1.24e3760000000p-2", "-0x1.4aa2b20000000p-3", "-0x1.2125440000000p-2", "-0x1.01c2980000000p-2",
    ]  # fmt: skip
    y.sum().backward()
    T.testing.assert_close(x.grad, -y.detach())
    assert T.rrelu(T.full((3, 2), -1.0).t(), training=True).stride() == (3, 1)
