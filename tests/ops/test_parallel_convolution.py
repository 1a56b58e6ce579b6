"""Convolutions in parts: every split (images, channels of result and input, groups) gives what one thread gives, to rounding."""

import pytest

import cresset

CASES = {  # images, channels, results, kernel, groups, side, stride
    "one image": (1, 64, 64, 3, 1, 56, 1),
    "first layer": (1, 3, 64, 7, 1, 112, 2),
    "images": (8, 64, 128, 1, 1, 28, 2),
    "channels that are no multiple of a block": (3, 48, 40, 3, 1, 30, 1),
    "depthwise": (2, 64, 64, 3, 64, 56, 1),
    "groups": (5, 64, 96, 3, 4, 28, 1),
    "many weights": (1, 512, 512, 3, 1, 7, 1),
    "odd sizes": (7, 32, 50, 5, 2, 33, 2),
    "few results": (64, 2, 16, 5, 1, 28, 1),
    "stride of the kernel": (1, 8, 32, 3, 1, 99, 3),
    "stride beyond the kernel": (1, 8, 32, 3, 1, 130, 4),
}


@pytest.fixture(autouse=True)
def restore_threads():
    before = cresset.get_num_threads()
    yield
    cresset.set_num_threads(before)


@pytest.mark.parametrize("memory_format", [cresset.contiguous_format, cresset.channels_last])
@pytest.mark.parametrize("name", CASES)
def test_parts_give_what_one_thread_gives(name, memory_format):
    n, channels, results, kernel, groups, side, stride = CASES[name]
    generator = cresset.Generator().manual_seed(0)
    x = cresset.randn(n, channels, side, side, generator=generator).contiguous(memory_format=memory_format)
    w = cresset.randn(results, channels // groups, kernel, kernel, generator=generator).contiguous(memory_format=memory_format)
    b = cresset.randn(results, generator=generator)

    def on(threads):
        cresset.set_num_threads(threads)
        leaves = [t.clone().requires_grad_() for t in (x, w, b)]
        y = cresset.conv2d(*leaves, stride=stride, padding=kernel // 2, groups=groups)
        y.sin().sum().backward()
        return [y.detach()] + [leaf.grad for leaf in leaves]

    want = on(1)
    for threads in (2, 3, 5):
        for got, right in zip(on(threads), want, strict=True):
            assert got.is_contiguous(memory_format=memory_format) or got.dim() == 1
            assert float((got - right).abs().max()) <= 1e-4 * float(right.abs().max())


@pytest.mark.parametrize(
    "sizes, kernel, options",
    [
        ((1, 3, 20000), (64, 3, 9), {"stride": 2, "padding": 3}),
        ((1, 3, 20001), (64, 3, 5), {"stride": 3, "padding": 0, "dilation": 2}),
        ((1, 2, 12, 40, 40), (32, 2, 3, 5, 3), {"stride": (1, 2, 1), "padding": (1, 0, 2)}),
        ((1, 3, 101, 90), (64, 3, 5, 3), {"stride": (2, 1), "padding": (0, 1), "dilation": (3, 1)}),
        ((1, 3, 64, 64), (64, 3, 60, 3), {"padding": (1, 1)}),
    ],
)
def test_rows_of_one_image(sizes, kernel, options):
    """Gradients of few channels: threads take rows of the input."""
    generator = cresset.Generator().manual_seed(0)
    x, w = cresset.randn(*sizes, generator=generator), cresset.randn(*kernel, generator=generator)

    def on(threads):
        cresset.set_num_threads(threads)
        leaf = x.clone().requires_grad_()
        (getattr(cresset, f"conv{len(sizes) - 2}d")(leaf, w, **options)).sin().sum().backward()
        return leaf.grad

    want = on(1)
    for threads in (2, 3, 7):
        assert float((on(threads) - want).abs().max()) <= 1e-4 * float(want.abs().max())


def test_products_of_bfloat16():
    a, b = cresset.randn(300, 700).bfloat16(), cresset.randn(700, 500).bfloat16()
    want = a.float() @ b.float()
    for threads in (1, 2, 5):
        cresset.set_num_threads(threads)
        assert float(((a @ b).float() - want).abs().max()) <= 2**-8 * float(want.abs().max())
