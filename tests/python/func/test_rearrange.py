"""rearrange against einops' notation."""

import cresset
import pytest
from cresset.func import rearrange

X = cresset.arange(24.0).view(2, 3, 4)


@pytest.mark.parametrize(
    ("tensor", "pattern", "sizes", "want"),
    [
        (X, "a b c -> c b a", {}, X.permute(2, 1, 0)),
        (X, "a b c -> (b a) c", {}, X.permute(1, 0, 2).reshape(6, 4)),
        (X, "a b (c d) -> d a (b c)", {"c": 2}, X.view(2, 3, 2, 2).permute(3, 0, 1, 2).reshape(2, 2, 6)),
        (X, "a ... -> ... a", {}, X.permute(1, 2, 0)),
        (X, "a ... -> (...) a", {}, X.reshape(2, 12).t()),
        (X, "... c -> ... c", {}, X),
        (X, "a b c -> a 1 b () c", {}, X.view(2, 1, 3, 1, 4)),
        (X.view(2, 1, 12), "a 1 c -> c a", {}, X.view(2, 12).t()),
        ([X[0], X[1]], "n a b -> n (a b)", {}, X.view(2, 12)),
        (X[0, 0, 0], " -> ", {}, X[0, 0, 0]),
        (X[0, 0, 0], " -> 1", {}, X[0, 0, :1]),
        (X[:, :0], "a b c -> (a b) c", {}, X[:, :0].reshape(0, 4)),
    ],
)
def test_patterns(tensor, pattern, sizes, want):
    have = rearrange(tensor, pattern, **sizes)
    assert have.shape == want.shape and cresset.equal(have, want)


def test_derivatives_and_batches():
    assert cresset.equal(cresset.vmap(lambda t: rearrange(t, "a b -> (b a)"))(X), X.permute(0, 2, 1).reshape(2, 12))
    x = X.clone().requires_grad_()
    (rearrange(x, "a b c -> (a c) b") * cresset.arange(3.0)).sum().backward()
    assert x.grad[0, :, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("pattern", "sizes", "words"),
    [
        ("a b", {}, "Pattern must contain a single '->' separator"),
        ("a -> b -> c", {}, "Pattern must contain a single '->' separator"),
        ("a b c -> a b", {}, r"Identifiers only on one side of rearrange expression \(should be on both\): {'c'}"),
        ("a b c -> a b c d", {}, "Identifiers only on one side"),
        ("a b -> a b", {}, r"Number of dimensions in pattern \(2\) must be equal to the number of dimensions in the tensor \(3\)"),
        ("a b c d ... -> a b c d ...", {}, r"Number of dimensions in pattern \(4\) must be less than or equal to"),
        ("a b a -> a b", {}, "Indexing expression contains duplicate dimension 'a'"),
        ("a b c -> a b c", {"d": 3}, "Identifiers not found in rearrange expression: {'d'}"),
        ("a b (c d) -> a b c d", {}, "cannot infer the sizes of two dimensions at once c and d"),
        ("a b (c d) -> a b c d", {"c": 3}, r"inferred dimension does not evenly fit into larger dimension: 4 vs \(3, '\?'\)"),
        ("a b c -> a (b (c))", {}, "Axis composition is one-level"),
        ("a b c -> (a b c", {}, "Imbalanced parentheses in expression"),
        ("a b c -> a) b c", {}, "Brackets are not balanced"),
        ("... a ... -> a", {}, "only one ellipsis for tensor"),
        ("a b c -> a 2 b c", {}, "rearrange only supports unnamed axes of size 1"),
        ("a b c -> a b _c", {}, "Invalid axis identifier: _c"),
    ],
)
def test_patterns_that_do_not_fit(pattern, sizes, words):
    with pytest.raises(ValueError, match=words):
        rearrange(X, pattern, **sizes)
