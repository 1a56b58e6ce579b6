"""Results have the memory format of their input where PyTorch's have it."""

import cresset
import pytest
from cresset.nn import functional as F

FORMATS = {4: cresset.channels_last, 5: cresset.channels_last_3d}
W = cresset.linspace(0.5, 2, 6)


@pytest.mark.parametrize("dims", [4, 5])
@pytest.mark.parametrize(
    "name, function",
    [
        ("group_norm", lambda x: F.group_norm(x, 3)),
        ("group_norm affine", lambda x: F.group_norm(x, 3, W, W)),
        ("batch_norm", lambda x: F.batch_norm(x, None, None, training=True)),
        ("pad reflect", lambda x: F.pad(x, (1, 1) * (x.dim() - 2), mode="reflect")),
        ("pad replicate", lambda x: F.pad(x, (1, 1) * (x.dim() - 2), mode="replicate")),
        ("pad constant", lambda x: F.pad(x, (1, 1) * (x.dim() - 2))),
        ("roll", lambda x: x.roll((1, -2), (1, 2))),
    ],
)
def test_channels_last_stays(name, function, dims):
    x = cresset.randn(2, 6, *(3, 4, 5)[: dims - 2])
    wanted, found = function(x), function(x.to(memory_format=FORMATS[dims]))
    assert found.is_contiguous(memory_format=FORMATS[dims]) and wanted.is_contiguous()
    cresset.testing.assert_close(found, wanted)


def test_rolling_the_order_of_elements_is_plain():
    x = cresset.arange(24.0).reshape(1, 2, 3, 4)
    found = x.to(memory_format=cresset.channels_last).roll(5)
    assert found.is_contiguous() and cresset.equal(found, x.roll(5))


def test_gradients_of_group_norm_in_both_formats():
    found = []
    for memory_format in (cresset.contiguous_format, cresset.channels_last):
        cresset.manual_seed(0)
        x = cresset.randn(2, 6, 3, 3, dtype=cresset.float64).to(memory_format=memory_format).requires_grad_()
        weight = W.double().requires_grad_()
        out = F.group_norm(x, 2, weight, weight)
        found.append(cresset.autograd.grad(out.square().sum(), (x, weight)))
    cresset.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("which", ["input", "weight", "both"])
@pytest.mark.parametrize("dims", [4, 5])
def test_convolutions_and_their_gradients(dims, which, groups, transposed, dtype):
    """One operand in channels last is enough, and values are those of plain operands."""
    cresset.manual_seed(0)
    kind, n = FORMATS[dims], dims - 2
    x = cresset.randn(2, 8, *(5,) * n, dtype=dtype)
    w = cresset.randn(*((8, 6 // groups) if transposed else (6, 8 // groups)), *(2, 3, 2)[:n], dtype=dtype)
    bias = cresset.randn(6, dtype=dtype)
    convolve = getattr(F, f"conv_transpose{n}d" if transposed else f"conv{n}d")
    found = []
    for last in (False, True):
        own = [
            x.contiguous(memory_format=kind) if last and which != "weight" else x.clone(),
            w.contiguous(memory_format=kind) if last and which != "input" else w.clone(),
            bias.clone(),
        ]
        for t in own:
            t.requires_grad_()
        out = convolve(*own, stride=2, padding=1, groups=groups)
        grads = cresset.autograd.grad(out.sin().sum(), own)
        if last:
            assert all(t.is_contiguous(memory_format=kind) for t in (out, *grads[:2]))
        found.append((out, *grads))
    cresset.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("dims", [4, 5])
def test_gradients_of_padding(mode, dims):
    found = []
    for memory_format in (cresset.contiguous_format, FORMATS[dims]):
        cresset.manual_seed(0)
        x = cresset.randn(2, 6, *(3, 4, 5)[: dims - 2], dtype=cresset.float64).to(memory_format=memory_format).requires_grad_()
        (grad,) = cresset.autograd.grad(F.pad(x, (1, 2, 2, 1, 1, 0)[: 2 * (dims - 2)], mode=mode).sin().sum(), x)
        assert grad.is_contiguous(memory_format=memory_format)
        found.append(grad)
    cresset.testing.assert_close(found[0], found[1])


def test_norms_of_channels_beside_one_place():
    x = cresset.arange(6.0).view(1, 3, 2, 1).permute(0, 2, 1, 3)
    norm = cresset.nn.BatchNorm2d(2)
    for training in (False, True):
        y = norm.train(training)(x)
        assert y.stride() == (6, 1, 2, 2) and cresset.allclose(y, norm.train(training)(x.contiguous()), atol=1e-6)


@pytest.mark.parametrize("dims", [4, 5])
def test_one_average_a_channel_says_that_channels_are_last(dims):  # PyTorch's strides: the mean's would be (6, 1, 1, 1)
    function = F.adaptive_avg_pool2d if dims == 4 else F.adaptive_avg_pool3d
    x = cresset.randn(2, 6, *(3, 4, 5)[: dims - 2])
    found = function(x.to(memory_format=FORMATS[dims]).requires_grad_(), 1)
    assert found.stride() == (6, 1, *[6] * (dims - 2)) and function(x, 1).stride() == (6, *[1] * (dims - 1))
    cresset.testing.assert_close(found, function(x, 1))
    found.sum().backward()
