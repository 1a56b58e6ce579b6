"""Indices out of range, assignments through a mask, layouts of images: what PyTorch 2.13 says and does."""

import pytest

import cresset

I = cresset.tensor  # noqa: E741
OUT = r"INDICES element is out of DATA bounds, id={} axis_dim={}"
EMPTY = r"index_select\(\): self indexing axis dim should be positive"


@pytest.mark.parametrize(
    "sizes, dim, index, error, words",
    [
        ((3,), 0, [7], IndexError, "index out of range in self"),
        ((3, 2), 0, [7], IndexError, "index out of range in self"),
        ((4, 3, 2), 2, [-1], IndexError, "index out of range in self"),
        ((3, 2), 1, [0, 9], RuntimeError, OUT.format(9, 2)),
        ((4, 3, 2), 1, [-1], RuntimeError, OUT.format(-1, 3)),
        ((2, 0), 0, [5], RuntimeError, OUT.format(5, 2)),
        ((0, 3), 1, [7], RuntimeError, OUT.format(7, 3)),
        ((2, 0), 1, [0], RuntimeError, EMPTY),
        ((0, 3), 0, [5], RuntimeError, EMPTY),
    ],
)
def test_index_select_out_of_range(sizes, dim, index, error, words):
    with pytest.raises(error, match=words):
        cresset.randn(sizes).index_select(dim, I(index))


def test_a_mask_alone_fills_with_one_element_of_any_type():
    x = cresset.zeros(2, 3, dtype=cresset.long)
    mask = cresset.ones(2, 3, dtype=cresset.bool)
    for value, want in ((I([3.0]), 3), (I([[4.7]]), 4), (I(5.5), 5)):
        x[mask] = value
        assert (x == want).all()
    x[I([True, False]), 0] = I([6.0])
    assert x.tolist() == [[6, 5, 5], [5, 5, 5]]
    assert (x.index_put((mask,), I([8.0])) == 8).all() and (x.index_put_((mask,), I(9.0)) == 9).all()
    for index in (I([0]), (mask[:, 0], I([0, 1]))):
        with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match, got Long for the destination and Float for the source"):
            x[index] = I([6.0])


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.int64, cresset.bool])
def test_integers_that_do_not_fit(dtype):
    x = cresset.zeros(2, dtype=dtype)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        x[0] = 2**70
    assert not x.any()


def test_channels_last_of_sizes_one_and_none():
    last = cresset.channels_last
    assert cresset.ones(2, 3, 1, 1).to(memory_format=last).stride() == (3, 1, 3, 3)
    assert cresset.ones(2, 3, 1, 1).contiguous(memory_format=last).stride() == (3, 1, 1, 1)
    assert cresset.nn.Conv2d(3, 2, 1).to(memory_format=last).weight.stride() == (3, 1, 3, 3)
    none = cresset.ones(0, 3, 2, 2)
    assert not none.is_contiguous(memory_format=last) and none.contiguous(memory_format=last).stride() == (12, 1, 6, 3)
    assert none.contiguous(memory_format=last).is_contiguous(memory_format=last)
    image = cresset.randn(2, 3, 2, 2).to(memory_format=last)
    assert cresset.nn.functional.pixel_unshuffle(image, 2).stride() == (12, 1, 12, 12)
    assert cresset.nn.functional.channel_shuffle(cresset.randn(2, 4, 1, 1).to(memory_format=last), 2).stride() == (4, 1, 4, 4)


def test_blocks_of_negative_count():
    with pytest.raises(RuntimeError, match=r"calculated shape of the array of sliding blocks as \(-4, -3\), which is too small \(non-positive\)"):
        cresset.nn.functional.fold(cresset.randn(1, 12, 12), (4, 5), (2, 2), dilation=8)


@pytest.mark.parametrize("place", [3, -1])
def test_sorters_stay_inside(place):
    with pytest.raises(RuntimeError, match=r"torch.searchsorted\(\): sorter index out of range"):
        cresset.searchsorted(I([5, 1, 3]), I([2]), sorter=I([1, 2, place]))


@pytest.mark.parametrize("dtype, value", [(cresset.float16, -1e9), (cresset.bfloat16, 1e60), (cresset.float8_e5m2, 1e9)])
@pytest.mark.parametrize("index", [0, slice(0, 2), ..., [0, 1], (slice(None), 1)])
def test_numbers_beyond_a_reduced_type_become_infinite(dtype, value, index):
    x = cresset.zeros(2, 2, dtype=dtype)
    x[index] = value
    there = x.float() != 0
    assert there.any() and x.float()[there].eq(float("inf") if value > 0 else -float("inf")).all()
