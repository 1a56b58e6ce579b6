"""In-place operators that write what they still have to read: refused as in PyTorch, which would give numbers that depend on order."""

import cresset
import pytest

READ = "some elements of the input tensor and the written-to tensor refer to a single memory location"
WRITTEN = "more than one element of the written-to tensor refers to a single memory location"


def index(*values):
    return cresset.tensor(values)


def numbers():
    return cresset.zeros(5, dtype=cresset.int64)


REFUSED = {
    "scatter_": lambda x: x[1:].scatter_(0, index(0, 1), x[:2]),
    "scatter_ of itself": lambda x: x.scatter_(0, index(0, 1), x),
    "scatter_ by itself": lambda x: (n := numbers())[1:].scatter_(0, n[:2], cresset.ones_like(n[:2])),
    "scatter_ of a number by itself": lambda x: (n := numbers())[1:].scatter_(0, n[:2], 1),
    "scatter_ with reduce": lambda x: x[1:].scatter_(0, index(0, 1), x[:2], reduce="add"),
    "scatter_ of a number with reduce": lambda x: (n := numbers())[1:].scatter_(0, n[:2], 1, reduce="add"),
    "scatter_add_": lambda x: x[1:].scatter_add_(0, index(0, 1), x[:2]),
    "scatter_add_ of itself": lambda x: x.scatter_add_(0, index(0, 1), x),
    "scatter_reduce_": lambda x: x[1:].scatter_reduce_(0, index(0, 1), x[:2], "amax"),
    "index_add_": lambda x: x[1:].index_add_(0, index(0, 1), x[:2]),
    "index_add_ of itself": lambda x: x.index_add_(0, index(0, 1, 2, 3, 4), x),
    "index_copy_": lambda x: x[1:].index_copy_(0, index(0, 1), x[:2]),
    "index_reduce_": lambda x: x[1:].index_reduce_(0, index(0, 1), x[:2], "prod"),
    "index_fill_ by itself": lambda x: (n := numbers())[1:].index_fill_(0, n[:2], 1),
    "index_put_": lambda x: x[1:].index_put_((index(0, 1),), x[:2]),
    "index_put_ that adds": lambda x: x[1:].index_put_((index(0, 1),), x[:2], accumulate=True),
    "index_put_ of itself": lambda x: x.index_put_((index(1, 0, 2, 3, 4),), x),
    "index_put_ by itself": lambda x: (n := numbers())[1:].index_put_((n[:2],), cresset.ones_like(n[:2])),
    "item assignment": lambda x: x[1:].__setitem__(index(0, 1), x[:2]),
    "put_": lambda x: x[1:].put_(index(0, 1), x[:2]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_read_must_lie_apart(case):
    x = cresset.arange(5.0)
    with pytest.raises(RuntimeError, match=READ):
        REFUSED[case](x)
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_meta_refuses_too():
    x = cresset.empty(5, device="meta")
    with pytest.raises(RuntimeError, match=READ):
        x[1:].scatter_(0, cresset.empty(2, dtype=cresset.int64, device="meta"), x[:2])


ALLOWED = {
    "neighbours": lambda x: x[2:].scatter_(0, index(1, 0), x[:2]),
    "a clone": lambda x: x[1:].index_copy_(0, index(0, 1), x[:2].clone()),
    "one element": lambda x: x[1:].index_fill_(0, index(0, 1), x[4]),
    "nothing": lambda x: x.scatter_(0, cresset.empty(0, dtype=cresset.int64), x[:0]),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_lies_apart_is_written(case):
    ALLOWED[case](cresset.arange(5.0))


@pytest.mark.parametrize("write", ["scatter_add_", "index_add_", "index_copy_"])
def test_places_that_share_memory(write):
    with pytest.raises(RuntimeError, match=WRITTEN):
        getattr(cresset.zeros(1).expand(3), write)(0, index(0), cresset.ones(1))


def test_overlap_is_named_before_types_and_shapes():
    x, flags, whole = cresset.arange(5.0), cresset.arange(5) > 2, cresset.zeros(6, dtype=cresset.int32)
    for wrong in (
        lambda: x[:-1].bitwise_and_(x[1:]),
        lambda: x[:-1].add_(x[2:]),
        lambda: cresset.add(flags[:-1], flags[1:] + 0.5, out=flags[1:]),
        lambda: cresset.logical_not(whole[:-1], out=whole[1:]),
        lambda: cresset.div(whole[:-1], whole[1:], out=whole[1:]),
        lambda: cresset.add(whole[:-1], whole[1:], out=whole[2:]),
    ):
        with pytest.raises(RuntimeError, match=READ):
            wrong()
    for wrong in (lambda: cresset.zeros(3).expand(2, 3).bitwise_and_(1), lambda: cresset.zeros(3).expand(2, 3).add_(cresset.ones(4))):
        with pytest.raises(RuntimeError, match=WRITTEN):
            wrong()
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Bool"):
        flags[:-1].add_(1.5)
