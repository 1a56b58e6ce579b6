"""Indices that are a number of each example's own: what vmap gives is what a loop over the examples gives."""

import pytest

import cresset as torch

vmap = torch.func.vmap
X = torch.arange(24.0).reshape(2, 3, 4)
K = torch.tensor([0, 2])


def put(x, index, value):
    x = x.clone()
    x[index] = value
    return x


def add_at(x, k):
    x = x.clone()
    x[k] += 1
    return x


READS = {
    "x[k]": lambda x, k: x[k], "x[:, k]": lambda x, k: x[:, k], "x[..., k]": lambda x, k: x[..., k], "x[k, 1:]": lambda x, k: x[k, 1:], "x[k, None]": lambda x, k: x[k, None],
    "x[k, k]": lambda x, k: x[k, k], "x[k, 1]": lambda x, k: x[k, 1], "x[1, k]": lambda x, k: x[1, k], "x[-1][k]": lambda x, k: x[-1][k], "x[(k,)]": lambda x, k: x[(k,)],
    "x[k - 3]": lambda x, k: x[k - 3], "x[k][k]": lambda x, k: x[k][k], "x[:, None, k]": lambda x, k: x[:, None, k],
}  # fmt: skip
WRITES = {
    "x[k] = number": lambda x, k: put(x, k, 9.0), "x[:, k] = number": lambda x, k: put(x, (slice(None), k), 9.0), "x[k] = row": lambda x, k: put(x, k, torch.arange(4.0)),
    "x[:, k] = column": lambda x, k: put(x, (slice(None), k), torch.arange(3.0)), "x[k] = row of its own": lambda x, k: put(x, k, x[0] * 2), "x[k, 1:3] = number": lambda x, k: put(x, (k, slice(1, 3)), 5.0),
    "x[k] = one row": lambda x, k: put(x, k, torch.arange(4.0)[None]), "x[k] = k": lambda x, k: put(x, k, k.to(x.dtype)), "x[k] += 1": add_at, "x[k, k] = number": lambda x, k: put(x, (k, k), -1.0),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_as_a_loop(name, dtype):
    f, k = (READS | WRITES)[name], K.to(dtype)
    assert torch.equal(vmap(f)(X, k), torch.stack([f(x, i) for x, i in zip(X, k)]))
    other = X.permute(1, 0, 2).contiguous()
    assert torch.equal(vmap(f, in_dims=(1, 0))(other, k), torch.stack([f(x, i) for x, i in zip(X, k)]))


@pytest.mark.parametrize("name", READS)
def test_a_tensor_of_all_examples(name):
    f = READS[name]
    assert torch.equal(vmap(lambda k: f(X[1], k))(K), torch.stack([f(X[1], k) for k in K]))
    assert torch.equal(vmap(vmap(lambda k: f(X[1], k)))(torch.stack([K, K.flip(0)])), torch.stack([torch.stack([f(X[1], k) for k in ks]) for ks in (K, K.flip(0))]))


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_derivatives(name):
    f = (READS | WRITES)[name]
    mine = torch.func.grad(lambda x: (vmap(f)(x, K) ** 2).sum())(X)
    loop = torch.func.grad(lambda x: sum((f(x[i], K[i]) ** 2).sum() for i in range(2)))(X)
    assert torch.equal(mine, loop)
    assert torch.equal(torch.func.jvp(lambda x: vmap(f)(x, K), (X,), (X,))[1], torch.func.jvp(lambda x: torch.stack([f(x[i], K[i]) for i in range(2)]), (X,), (X,))[1])


def test_beside_other_index_tensors():
    """As in PyTorch such a number is an index tensor without dimensions: separated from others, their dimensions come first."""
    j = torch.tensor([1, 0, 1])
    assert vmap(lambda k: X[:, k, j])(K).tolist() == [[[1.0, 0.0, 1.0], [13.0, 12.0, 13.0]], [[9.0, 8.0, 9.0], [21.0, 20.0, 21.0]]]
    assert vmap(lambda k: X[k // 2, :, j])(K)[0].tolist() == [[1.0, 5.0, 9.0], [0.0, 4.0, 8.0], [1.0, 5.0, 9.0]]


@pytest.mark.parametrize(
    "f, k, error, words",
    [
        (lambda k: X[0, :, 0][k], torch.tensor([0, 5]), IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        (lambda k: X[0, 0][k], torch.tensor([0.0, 1.0]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
        (lambda k: X[0, 0][k], torch.tensor([True, False]), RuntimeError, "dynamic shape"),
        (lambda k: X[0, 0][k:], K, RuntimeError, r"calling \.item\(\) on a Tensor"),
        (lambda k: X.select(1, k), K, RuntimeError, r"calling \.item\(\) on a Tensor"),
        (lambda k: put(X[0], k, 9.0), K, None, ""),
    ],
)
def test_what_is_refused(f, k, error, words):
    if error is None:  # `clone` of what all examples share has no room for each one's own writes
        error, words = RuntimeError, "not possible"
    with pytest.raises(error, match=words):
        vmap(f)(k)


# Operators that scatter under vmap where the indices are batched: they ask of one example what they ask of a single call.
S = torch.arange(12).reshape(2, 2, 3)
I = torch.tensor([[0, 1], [1, 1]])  # noqa: E741


def in_a_loop(f, *args):
    return torch.stack([f(*(a[i] for a in args)) for i in range(2)])


@pytest.mark.parametrize("alpha", [1, 2, 2.0, 1.5, -2.5, True])
def test_index_add_of_integers(alpha):
    f = lambda x, i, s: torch.index_add(x, 0, i, s, alpha=alpha)  # noqa: E731
    got = vmap(f)(S, I, S + 1)
    assert got.dtype is torch.int64
    assert got.tolist() == in_a_loop(f, S, I, S + 1).tolist()
    assert vmap(lambda x, i, s: x.clone().index_add_(0, i, s, alpha=alpha))(S, I, S + 1).tolist() == got.tolist()


REFUSED = {
    "index_add: rows": lambda i: torch.index_add(S[0], 0, i, S[0, :1]),
    "index_add: sizes": lambda i: torch.index_add(S[0], 0, i, S[0, :, :2]),
    "index_add: types": lambda i: torch.index_add(S[0], 0, i, S[0].float()),
    "index_add: index": lambda i: torch.index_add(S[0], 0, i.float(), S[0]),
    "index_copy: sizes": lambda i: torch.index_copy(S[0], 0, i, S[0, :, :2]),
    "index_copy: index": lambda i: torch.index_copy(S[0], 0, i.int(), S[0]),
    "index_fill: index": lambda i: torch.index_fill(S[0], 0, i.int(), 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_single_call_refuses(name):
    with pytest.raises((RuntimeError, IndexError)) as alone:
        REFUSED[name](I[0])
    with pytest.raises(type(alone.value)) as batched:
        vmap(REFUSED[name])(I)
    assert str(batched.value).split("\n")[0] == str(alone.value).split("\n")[0]


def test_rows_of_another_examples_table():
    tables = torch.arange(12.0).reshape(2, 3, 2)
    for bad in (3, -1, 5):
        with pytest.raises(IndexError, match="index out of range in self"):
            vmap(torch.embedding)(tables, torch.tensor([[0, bad], [1, 2]]))
    assert vmap(torch.embedding)(tables, torch.tensor([[0, 2], [1, 2]])).tolist() == in_a_loop(torch.embedding, tables, torch.tensor([[0, 2], [1, 2]])).tolist()


def test_counts_of_one_length_are_stacked():
    x = torch.tensor([[0, 1, 1], [1, 1, 1]])
    assert vmap(torch.bincount)(x).tolist() == [[1, 2], [0, 3]]
    assert vmap(lambda v: torch.bincount(v, minlength=3))(x).tolist() == [[1, 2, 0], [0, 3, 0]]
    assert vmap(torch.repeat_interleave)(torch.tensor([[2, 0], [1, 1]])).tolist() == [[0, 0], [0, 1]]
    with pytest.raises(RuntimeError, match="equal size"):
        vmap(torch.bincount)(torch.tensor([[0, 1], [0, 5]]))
