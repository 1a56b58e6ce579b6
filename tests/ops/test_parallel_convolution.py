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


def test_products_of_bfloat16():
    a, b = cresset.randn(300, 700).bfloat16(), cresset.randn(700, 500).bfloat16()
    want = a.float() @ b.float()
    for threads in (1, 2, 5):
        cresset.set_num_threads(threads)
        assert float(((a @ b).float() - want).abs().max()) <= 2**-8 * float(want.abs().max())
