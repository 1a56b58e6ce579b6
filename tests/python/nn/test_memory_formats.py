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
