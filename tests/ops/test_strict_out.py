"""Rows with `out_memory = "apart"`: an out tensor that shares memory with an input is refused before any write; and some of other types."""

import cresset
import pytest

SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory location"


def calls():
    x, index, mask = cresset.arange(6.0), cresset.tensor([2, 1, 0]), cresset.tensor([True, False] * 3)
    yield x, lambda: cresset.gather(x, 0, index, out=x[:3])
    yield index, lambda: cresset.gather(cresset.tensor([1, 2, 3]), 0, index, out=index)
    yield x, lambda: cresset.take(x, index, out=x[:3])
    yield x, lambda: cresset.index_select(x, 0, index, out=x[:3])
    yield x, lambda: cresset.masked_select(x, mask, out=x[:3])
    yield x, lambda: cresset.cat([x[:2], x[2:4]], out=x[:4])
    yield x, lambda: cresset.kthvalue(x, 2, out=(x[:1], cresset.zeros(1, dtype=cresset.int64)))
    yield x, lambda: cresset.topk(x, 2, out=(x[:2], cresset.zeros(2, dtype=cresset.int64)))
    yield x, lambda: cresset.mode(x.view(2, 3), 0, out=(x[:3], cresset.zeros(3, dtype=cresset.int64)))


@pytest.mark.parametrize("number", range(9))
def test_shared_memory(number):
    written, call = list(calls())[number]
    before = written.clone()
    with pytest.raises(RuntimeError, match=SHARED):
        call()
    assert cresset.equal(written, before)


def test_memory_side_by_side_is_no_overlap():
    x = cresset.arange(6.0)
    assert cresset.gather(x[:3], 0, cresset.tensor([2, 1, 0]), out=x[3:]).tolist() == [2.0, 1.0, 0.0]


def test_dtype():
    x, index, out = cresset.arange(6.0), cresset.tensor([2, 1, 0]), cresset.zeros(3, dtype=cresset.float64)
    for call in (
        lambda: cresset.gather(x, 0, index, out=out),
        lambda: cresset.take(x, index, out=out),
        lambda: cresset.index_select(x, 0, index, out=out),
        lambda: cresset.masked_select(x, x < 3, out=out),
    ):
        with pytest.raises(RuntimeError, match="dtype float, but got double instead|out.dtype = Double|must have the same scalar type"):
            call()
    ones, pair = cresset.ones(3), (cresset.zeros(0), out)
    for call in (
        lambda: cresset.complex(ones, ones, out=cresset.zeros(3, dtype=cresset.complex128)),
        lambda: cresset.polar(ones, ones, out=cresset.zeros(3, dtype=cresset.complex128)),
        lambda: cresset.multinomial(ones, 2, out=out),
        lambda: cresset.aminmax(ones.view(3, 1), dim=1, out=pair),
    ):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype|Expected object of scalar type|expects Long tensor out"):
            call()
    assert not out.any()
