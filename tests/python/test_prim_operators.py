"""torch.ops.prims: results, words and schemas are PyTorch 2.13's."""

import cresset
import pytest
from cresset import _prims
from cresset.fx.experimental.proxy_tensor import make_fx

P = cresset.ops.prims
T = cresset.tensor
X = cresset.arange(6.0).view(2, 3)
NEW = {"dtype": cresset.float32, "device": "cpu", "requires_grad": False}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: P.add(T([1.0]), T(2.0)), [3]),
        (lambda: P.div(T([7, -7]), T([2, 2])), [3, -3]),
        (lambda: P.div(T([7.0]), T([2.0])), [3.5]),
        (lambda: P.cbrt(T([8.0, -8.0])), [2, -2]),
        (lambda: P.shift_right_arithmetic(T([-8]), T([1])), [-4]),
        (lambda: P.where(T([True, False]), T([1.0, 2.0]), T([3.0, 4.0])), [1, 4]),
        (lambda: P.convert_element_type(X, cresset.int64), [[0, 1, 2], [3, 4, 5]]),
        (lambda: P.fill(X, 3), [[3, 3, 3], [3, 3, 3]]),
        (lambda: P.sum(X, [0, 1]), 15),
        (lambda: P.sum(X.int(), [1]), [3, 12]),
        (lambda: P.amax(X, [0]), [3, 4, 5]),
        (lambda: P.amin(X, [1]), [0, 3]),
        (lambda: P.prod(X + 1, [0, 1]), 720),
        (lambda: P.var(X, [1], 1.0), [1, 1]),
        (lambda: P.broadcast_in_dim(T([1.0, 2.0]), [2, 3], [0]), [[1, 1, 1], [2, 2, 2]]),
        (lambda: P.broadcast_in_dim(T(1.0), [2], []), [1, 1]),
        (lambda: P.rev(X, [1]), [[2, 1, 0], [5, 4, 3]]),
        (lambda: P.reshape(X, [3, 2]), [[0, 1], [2, 3], [4, 5]]),
        (lambda: P.transpose(X, [1, 0]), [[0, 3], [1, 4], [2, 5]]),
        (lambda: P.squeeze(X[None], [0]), [[0, 1, 2], [3, 4, 5]]),
        (lambda: P.as_strided(X, [2], [2], 1), [1, 3]),
        (lambda: P.copy_to(X.clone(), X + 1), [[1, 2, 3], [4, 5, 6]]),
        (lambda: P.resize(X.clone(), [3]), [0, 1, 2]),
        (lambda: P.iota(4, start=1, step=2, dtype=cresset.int64, device="cpu", requires_grad=False), [1, 3, 5, 7]),
        (lambda: P.fft_c2r(P.fft_r2c(X, dim=[1], onesided=True), dim=[1], last_dim_size=3), [[0, 3, 6], [9, 12, 15]]),
        (lambda: P.cat([X, X], 1)[0], [0, 1, 2, 0, 1, 2]),
        (lambda: P.frexp(T([8.0]))[1], [4]),
        (lambda: P.real(T([1 + 2j])), [1]),
        (lambda: P.imag(T([1 + 2j])), [2]),
    ],
)
def test_results(found, expected):
    assert found().tolist() == expected


def test_shapes_strides_and_numbers():
    assert P.collapse(X.view(1, 2, 3), 0, 1).shape == (2, 3) and P.collapse_view(X.view(1, 2, 3), 1, 2)._is_view()
    assert P.split_dim(X, 1, 3).shape == (2, 3, 1) and P.collapse(T(1.0), 0, 0).shape == (1,)
    assert P.copy_strided(X, [1, 2]).stride() == P.empty_permuted([2, 3], [1, 0], **NEW).stride() == P.empty_strided([2, 3], [1, 2], **NEW).stride() == (1, 2)
    assert [v.shape for v in P.svd(X, full_matrices=False)] == [(2, 2), (2,), (2, 3)]
    assert (P.maximum_value(cresset.int8), P.minimum_value(cresset.bool), P.item(T(3))) == (127, False, 3)
    assert P.minimum_value(cresset.float32) == cresset.finfo(cresset.float32).min and P.normal([2], mean=0.0, std=1.0, **NEW).shape == (2,)
    assert P.view_of(X)._is_view() and P.device_put(X, "cpu") is not X and P._make_token().numel() == 0


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda: P.add(T([1]), T([1.0])), RuntimeError, r"Tensor with dtype \w+\.float32 is not the expected dtype of \w+\.int64!"),
        (lambda: P.add(T([1.0, 2.0]), T([1.0])), RuntimeError, r"Shape .*\[1\]\) is not the expected shape .*\[2\]\)!"),
        (lambda: P.collapse(X, 1, 0), ValueError, "Attempting to collapse but end, 0, is less than start, 1!"),
        (lambda: P.collapse(X, 0, 5), AssertionError, "idx 5 is out of bounds for rank 2"),
        (lambda: P.collapse_view(X.t(), 0, 1), RuntimeError, "Attempting to view a collapsed tensor, but no such view exists!"),
        (lambda: P.split_dim(X, 1, 2), ValueError, "Attempting to split dimension of length 3, but outer length of 2 divides it with a remainder!"),
        (lambda: P.broadcast_in_dim(X, [3, 2], [0, 1]), RuntimeError, "dimension 0 of size 2 cannot be of size 3"),
        (lambda: P.imag(X), RuntimeError, "Only complex dtype is supported"),
        (lambda: P.xor_sum(T([5, 3]), [0]), NotImplementedError, "xor_sum only implemented with inductor"),
        (lambda: P.sin(X.clone().requires_grad_()).sum().backward(), RuntimeError, "Trying to backward through prims.sin.default but no autograd formula was registered"),
        (lambda: _prims.no_such_operator, AttributeError, "has no attribute 'no_such_operator'"),
    ],
)
def test_refused(act, kind, words):
    with pytest.raises(kind, match=words):
        act()


def test_in_graphs():
    made = make_fx(lambda x: P.convert_element_type(P.sin(x), cresset.float64))(X)
    assert [str(n.target) for n in made.graph.nodes if n.op == "call_function"] == ["prims.sin.default", "prims.convert_element_type.default"]
    assert _prims.sin is P.sin.default and str(P.sum.default._schema) == "prims::sum(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor"
    assert P.sin(X.to("meta")).shape == (2, 3) and cresset.Tag.nondeterministic_seeded in P.normal.default.tags
