"""Random chains of views. The model of a view is the array of the positions that its elements have in memory."""

import cresset
import numpy as np
from arrays import memory, shapes, tensor
from hypothesis import assume, given, settings
from hypothesis import strategies as st


def dim_of(draw, positions):
    """A dimension, counted from either end."""
    d = draw(st.integers(0, positions.ndim - 1))
    return d, draw(st.sampled_from([d, d - positions.ndim]))


def permute(draw, x, p):
    order = draw(st.permutations(range(p.ndim)))
    return x.permute(order), p.transpose(order)


def transpose(draw, x, p):
    assume(p.ndim)
    (a, given_a), (b, given_b) = dim_of(draw, p), dim_of(draw, p)
    return x.transpose(given_a, given_b), p.swapaxes(a, b)


def movedim(draw, x, p):
    assume(p.ndim)
    (a, given_a), (b, given_b) = dim_of(draw, p), dim_of(draw, p)
    return x.movedim(given_a, given_b), np.moveaxis(p, a, b)


def slicing(draw, x, p):
    bound = st.none() | st.integers(-5, 5)
    index = tuple(slice(draw(bound), draw(bound), draw(st.integers(1, 3))) for _ in range(draw(st.integers(0, p.ndim))))
    return x[index], p[index]


def select(draw, x, p):
    assume(p.ndim)
    d, given_d = dim_of(draw, p)
    assume(p.shape[d])
    index = draw(st.integers(-p.shape[d], p.shape[d] - 1))
    return x.select(given_d, index), p.take(index, d)


def narrow(draw, x, p):
    assume(p.ndim)
    d, given_d = dim_of(draw, p)
    start = draw(st.integers(0, p.shape[d]))
    length = draw(st.integers(0, p.shape[d] - start))
    return x.narrow(given_d, start, length), p.take(np.arange(start, start + length), d)


def unsqueeze(draw, x, p):
    d = draw(st.integers(-p.ndim - 1, p.ndim))
    return x.unsqueeze(d), np.expand_dims(p, d)


def squeeze(draw, x, p):
    if not p.ndim or draw(st.booleans()):
        return x.squeeze(), p.squeeze()
    d, given_d = dim_of(draw, p)
    return x.squeeze(given_d), p.squeeze(d) if p.shape[d] == 1 else p


def expand(draw, x, p):
    shape = [draw(st.integers(0, 3)) if n == 1 and draw(st.booleans()) else n for n in p.shape]
    shape = [draw(st.integers(1, 2))] * draw(st.integers(0, 1)) + shape
    return x.expand(shape), np.broadcast_to(p, shape)


def unfold(draw, x, p):
    assume(p.ndim)
    d, given_d = dim_of(draw, p)
    size, step = draw(st.integers(0, p.shape[d])), draw(st.integers(1, 3))
    windows = (p.shape[d] - size) // step + 1
    parts = [p.take(np.arange(i * step, i * step + size), d) for i in range(windows)]
    return x.unfold(given_d, size, step), np.stack([np.moveaxis(part, d, -1) for part in parts], d)


def diagonal(draw, x, p):
    assume(p.ndim >= 2)
    a, b = draw(st.permutations(range(p.ndim)))[:2]
    offset = draw(st.integers(-2, 2))
    return x.diagonal(offset, a, b), np.diagonal(p, offset, a, b)


def split(draw, x, p):
    assume(p.ndim)
    d, given_d = dim_of(draw, p)
    size = draw(st.integers(1, 3))
    parts = x.split(size, given_d)
    assert len(parts) == max(1, -(-p.shape[d] // size))
    i = draw(st.integers(0, len(parts) - 1))
    return parts[i], p.take(np.arange(i * size, min((i + 1) * size, p.shape[d])), d)


def unflatten(draw, x, p):
    assume(p.ndim)
    d, given_d = dim_of(draw, p)
    n = p.shape[d]
    part = draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0] or [1]))
    sizes = (part, n // part)
    return x.unflatten(given_d, sizes), p.reshape(*p.shape[:d], *sizes, *p.shape[d + 1 :])


def view(draw, x, p):
    """view where the layout allows it: always on a contiguous tensor."""
    assume(x.is_contiguous())
    if p.size == 0:
        return x.view(*p.shape, 1), p[..., None]
    shape = [2, -1] if p.size % 2 == 0 and draw(st.booleans()) else [-1]
    return x.view(*shape), p.reshape(shape)


STEPS = [permute, transpose, movedim, slicing, select, narrow, unsqueeze, squeeze, expand, unfold, diagonal, split, unflatten, view]


@st.composite
def chains(draw, steps=5):
    """A base tensor whose values are their positions, a view of it and the positions of the view's elements."""
    shape = draw(shapes(max_dims=4, max_side=4))
    positions = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    base = cresset.arange(positions.size).reshape(shape)
    x, p, names = base, positions, []
    for _ in range(draw(st.integers(1, steps))):
        step = draw(st.sampled_from(STEPS))
        names.append(step.__name__)
        x, p = step(draw, x, p)
        assume(p.ndim <= 6 and p.size <= 4000)
    return base, x, p, " ".join(names)


def reached(x):
    """The positions that offset and strides of a tensor reach."""
    places = np.full(tuple(x.shape), x.storage_offset())
    for d, (n, stride) in enumerate(zip(x.shape, x.stride())):
        places = places + (np.arange(n) * stride).reshape([-1 if i == d else 1 for i in range(x.dim())])
    return places


@settings(max_examples=250)
@given(chains())
def test_values_and_strides(chain):
    base, x, p, names = chain
    assert tuple(x.shape) == p.shape, names
    assert np.array_equal(x.numpy(), p), names
    assert np.array_equal(reached(x), p), f"{names}: strides {x.stride()}, offset {x.storage_offset()}"
    assert not p.size or memory(x) == memory(base), names
    assert x.is_contiguous() == contiguous(p.shape, x.stride()), names


def contiguous(shape, strides):
    expected = 1
    for n, stride in zip(shape[::-1], strides[::-1]):
        if n != 1 and stride != expected and 0 not in shape:
            return False
        expected *= n
    return True


@settings(max_examples=150)
@given(chains(), st.sampled_from(["fill", "copy", "mul", "zero"]))
def test_writes_reach_the_base(chain, write):
    base, x, p, names = chain
    assume(np.unique(p).size == p.size)
    want = base.numpy().copy().reshape(-1)
    new = np.arange(p.size).reshape(p.shape) - 7
    if write == "fill":
        x.fill_(-1)
        want[p] = -1
    elif write == "zero":
        x.zero_()
        want[p] = 0
    elif write == "copy":
        x.copy_(tensor(new))
        want[p] = new
    else:
        x.mul_(-2)
        want[p] = -2 * p
    assert np.array_equal(base.numpy().reshape(-1), want), names
    assert base._version == 1 == x._version


@given(chains())
def test_copies_are_dense_and_equal(chain):
    _, x, p, names = chain
    for copy in (x.contiguous(), x.clone(memory_format=cresset.contiguous_format), x.reshape(-1)):
        assert copy.is_contiguous() and np.array_equal(copy.numpy().reshape(-1), p.reshape(-1)), names
    assert x.sum().item() == p.sum() and np.array_equal((x + x).numpy(), p + p), names


@given(chains())
def test_gradient_of_a_chain_counts_uses(chain):
    base, x, p, names = chain
    strides, offset = x.stride(), x.storage_offset()
    leaf = cresset.zeros(base.numel(), dtype=cresset.float64, requires_grad=True)
    leaf.as_strided(x.shape, strides, offset).sum().backward()
    assert np.array_equal(leaf.grad.numpy(), np.bincount(p.reshape(-1), minlength=base.numel())), names
