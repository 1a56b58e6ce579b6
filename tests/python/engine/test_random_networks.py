"""Random convolutional and linear networks as engines beside their scripts: odd sizes, strides, groups, dilation, any batch, layouts, 1 and 3 threads."""

import random
import sys
from pathlib import Path

import pytest

import cresset
import cresset.engine
from cresset.lowering import Input

sys.path.insert(0, str(Path(__file__).parent))
from random_networks import Network

ERRORS = (RuntimeError, ValueError, IndexError, ZeroDivisionError)
REFUSED = "view size is not compatible"  # an engine may give a view that the script cannot make of its strides


def example_of(choice):
    if choice.random() < 0.75:
        return cresset.randn(choice.choice([1, 2, 3]), choice.choice([1, 2, 3, 4, 6, 8, 12, 16, 20]), choice.choice([5, 7, 8, 9, 13]), choice.choice([4, 5, 8, 11, 14]))
    return cresset.randn(choice.choice([1, 2, 5]), *([choice.choice([3, 4])] if choice.random() < 0.5 else []), choice.choice([4, 6, 9, 16, 31]))


def others_like(x, free):
    """Other batches, none, channels last, transposed; with `free`, other heights and widths."""
    yield x
    for n in (1, 4, 7, 0):
        yield cresset.randn(n, *x.shape[1:])
    if x.dim() != 4:
        yield cresset.randn(*x.shape[::-1]).permute(*range(x.dim() - 1, -1, -1))
        return
    yield cresset.randn(3, *x.shape[1:]).contiguous(memory_format=cresset.channels_last)
    yield cresset.randn(x.shape[1], 2, x.shape[3], x.shape[2]).transpose(0, 1).transpose(2, 3)
    if free:
        yield cresset.randn(2, x.shape[1], 17, 9)
        yield cresset.randn(1, x.shape[1], 6, 23)


def results_of(function, x):
    found = function(x.clone())
    return found if isinstance(found, tuple) else (found,)


def compare(script, engine, x):
    try:
        expected = results_of(script, x)
    except ERRORS as error:
        if REFUSED not in str(error):
            with pytest.raises(ERRORS):
                engine(x.clone())
        return
    # The memory of intermediate results is planned in the second run and used in those after it.
    for theirs, ours in [pair for _ in range(4) for pair in zip(expected, results_of(engine, x), strict=True)]:
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        largest = theirs[theirs.isfinite()].abs().max().item() if theirs.numel() and theirs.isfinite().any() else 1.0
        cresset.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4 * max(1.0, largest), equal_nan=True)


@pytest.mark.parametrize("seed", range(40))
def test_engines_of_random_networks(seed):
    choice = random.Random(seed)
    cresset.manual_seed(seed)
    x = example_of(choice)
    network = Network(seed, x)
    free = x.dim() == 4 and choice.random() < 0.4
    with cresset.inference_mode():
        script = cresset.jit.trace(network, (x.clone(),), check_trace=False)
        engine = cresset.engine.compile(script, inputs=[Input((-1, x.shape[1], -1, -1) if free else (-1, *x.shape[1:]))], min_block_size=1)
        before = cresset.get_num_threads()
        try:
            for other in others_like(x, free):
                cresset.set_num_threads(choice.choice([1, 3]))
                compare(script, engine, other)
        finally:
            cresset.set_num_threads(before)


class Rows(cresset.nn.Module):
    """Sizes that a shape is computed of: large ones that a stride makes equal are no constants."""

    def __init__(self, kernel, stride):
        super().__init__()
        self.layer = cresset.nn.Conv2d(2, 3, kernel, stride=stride)

    def forward(self, x):
        y = self.layer(x)
        return y.reshape(y.size(0), y.size(1), y.size(2) * y.size(3))


class Positions(cresset.nn.Module):
    """Sizes beyond a table raise; those within are no constants."""

    def __init__(self, rows):
        super().__init__()
        self.table = cresset.nn.Parameter(cresset.randn(rows, 1))

    def forward(self, x):
        y = x + self.table[: x.size(2)]
        return y.reshape(y.size(0), -1, y.size(2) * y.size(3)).softmax(-1)


LAYERS = {
    "stride of three": (Rows(3, 3), [(1, 2, 9, 9), (2, 2, 12, 10), (1, 2, 7, 30)]),
    "large kernel and stride": (Rows(40, 512), [(1, 2, 600, 600), (2, 2, 40, 1100)]),
    "kernel of 400": (Rows((400, 1), (160, 1)), [(1, 2, 400, 3), (2, 2, 1000, 2), (1, 2, 3000, 1)]),
    "table of positions": (Positions(30), [(1, 2, 9, 9), (2, 2, 30, 4), (1, 2, 1, 3)]),
    "kernel beyond the input": (cresset.nn.Conv2d(2, 3, 5, stride=4), [(1, 2, 9, 9), (1, 2, 3, 9), (1, 2, 4, 4)]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_sizes(name):
    layer, sizes = LAYERS[name]
    script = cresset.jit.trace(layer.eval(), (cresset.randn(sizes[0]),), check_trace=False)
    with cresset.inference_mode():
        engine = cresset.engine.compile(script, inputs=[Input((-1, 2, -1, -1))], min_block_size=1)
        for size in sizes:
            compare(script, engine, cresset.randn(size))


def test_strides_of_results():
    """A result that is permuted or flattened behind a convolution has the strides of the script, so that views of it work."""
    class Columns(cresset.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = cresset.nn.Conv2d(3, 4, 3)

        def forward(self, x):
            return self.layer(x).flatten(2), self.layer(x).permute(0, 2, 3, 1)

    script = cresset.jit.trace(Columns().eval(), (cresset.randn(2, 3, 6, 5),), check_trace=False)
    with cresset.inference_mode():
        engine = cresset.engine.compile(script, inputs=[Input((-1, 3, -1, -1))], min_block_size=1)
        for shape in ((2, 3, 6, 5), (1, 3, 7, 8), (3, 3, 6, 5)):
            x = cresset.randn(shape)
            for theirs, ours in zip(results_of(script, x), results_of(engine, x), strict=True):
                assert ours.stride() == theirs.stride() and cresset.allclose(ours, theirs, atol=1e-5)
