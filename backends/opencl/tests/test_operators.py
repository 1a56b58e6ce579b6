"""Native kernels against the CPU, over the samples of the operator table."""

from pathlib import Path

import cresset
import numpy as np
import op_samples
import pytest
from op_samples import array, flat

NAMES = [n for n in Path(__file__).with_name("native_operators.txt").read_text().split("\n") if n and not n.startswith("#")]
ROWS = {row.id.split("::")[-1]: row for row in op_samples.rows()}

def on_device(call):
    return call.map(lambda t: t.to("opencl"))


def single(call):
    """float64 samples as float32, the type that every device has."""
    return call.map(lambda t: t.detach().float() if t.dtype == cresset.float64 else t.detach())


def same(have, want, tolerance):
    for h, w in zip(flat(have), flat(want), strict=True):
        assert h.dtype == w.dtype and h.shape == w.shape and h.stride() == w.stride()
        np.testing.assert_allclose(array(h.cpu()), array(w), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_samples(name, fallbacks):
    row, native = ROWS[name], 0
    for _, sample in row.calls():
        call = single(sample)
        try:
            want = row.op()(*call.args, **call.kwargs)
        except NotImplementedError:
            continue  # float32 is not a type of this operator
        device = on_device(call)
        fallbacks_before = len(fallbacks())
        same(row.op()(*device.args, **device.kwargs), want, 3e-5)
        native += len(fallbacks()) == fallbacks_before
        cresset._C._fallback_reset()
    assert native > 0, "no sample ran natively"


@pytest.mark.parametrize("dtype", [cresset.bool, cresset.uint8, cresset.int8, cresset.int16, cresset.int32, cresset.int64, cresset.float16,
                                   cresset.bfloat16, cresset.float32, cresset.float64], ids=str)
def test_types(dtype, fallbacks):
    x = cresset.tensor([[0, 1, 2], [3, 5, 127]]).to(dtype)
    d = x.to("opencl")
    same(d.t() * d.t(), x.t() * x.t(), 0)
    same(d > 1, x > 1, 0)
    same(d.sum(), x.sum(), 0)
    for other in (cresset.float32, cresset.int64, cresset.bool):
        same(d.to(other), x.to(other), 0)
    assert fallbacks() == []


def test_promotion_and_numbers():
    i, f = cresset.arange(6).reshape(2, 3), cresset.arange(3.0)
    a, b = i.to("opencl"), f.to("opencl")
    same(a + b, i + f, 0)
    same(a / 2, i / 2, 0)
    same(a + cresset.tensor(2.5), i + cresset.tensor(2.5), 0)
    same(a.to(cresset.uint8) + 250, i.to(cresset.uint8) + 250, 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        a // 0
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        b.add_(a)
    with pytest.raises(RuntimeError, match="must match the size"):
        a + cresset.ones(2, device="opencl")


def test_out_forms():
    x = cresset.arange(6.0).reshape(2, 3)
    d = x.to("opencl")
    out = cresset.empty(3, 2, device="opencl").t()
    assert cresset.mul(d, d, out=out) is out
    same(out.contiguous(), x * x, 0)
    product = cresset.empty(0, device="opencl")
    cresset.mm(d, d.t(), out=product)
    same(product, x @ x.t(), 1e-6)
    with pytest.raises(RuntimeError, match="can't be cast"):
        cresset.sum(d, 0, out=cresset.empty(3, dtype=cresset.int64, device="opencl"))


def test_views_share_memory():
    x = cresset.arange(24.0).reshape(2, 3, 4)
    d = x.to("opencl")
    for t in (x, d):
        t[:, 1:, ::2].mul_(10)
        t.permute(2, 0, 1)[3] = -1
        t.select(1, 0).fill_(7)
    same(d, x, 0)


GRADIENTS = {
    "batch_norm": lambda x, w: cresset.nn.functional.batch_norm(x, None, None, w[0, 0, 0], w[1, 1, 1], training=True),
    "layer_norm": lambda x, w: cresset.nn.functional.layer_norm(x, (6,), w[0, 0, 0].repeat(2), w[1, 1, 1].repeat(2)),
    "conv2d": lambda x, w: cresset.nn.functional.conv2d(x, w, w[0, 0, 0, :2], stride=2, padding=1),
    "grouped conv2d": lambda x, w: cresset.nn.functional.conv2d(x, w[:3, :1].repeat(2, 1, 1, 1), groups=3, dilation=2),
    "max_pool2d": lambda x, w: cresset.nn.functional.max_pool2d(x, 3, stride=2, padding=1),
    "cross_entropy": lambda x, w: cresset.nn.functional.cross_entropy(x, (x[:, 0] * 3).long().abs() % 3),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, fallbacks):
    f = GRADIENTS[name]
    values = cresset.arange(2 * 3 * 6 * 6.0).reshape(2, 3, 6, 6).mul(0.37).sin(), cresset.arange(2 * 3 * 3 * 3.0).reshape(2, 3, 3, 3).cos()
    if "grouped" in name:
        values = values[0], cresset.arange(3 * 3 * 3 * 3.0).reshape(3, 3, 3, 3).cos()
    results = []
    for device in ("cpu", "opencl"):
        x, w = (v.to(device).requires_grad_() for v in values)
        y = f(x, w)
        y.sin().sum().backward()
        results.append([y.detach(), x.grad, *([w.grad] if w.grad is not None else [])])
    for want, have in zip(*results):
        np.testing.assert_allclose(array(have.cpu()), array(want), rtol=2e-4, atol=2e-5)
    assert fallbacks() == []


def test_big_reductions():
    x = cresset.rand(3, 70_000)
    d = x.to("opencl")
    same(d.sum(), x.sum(), 1e-5)
    same(d.sum(1), x.sum(1), 1e-5)
    same(d.argmax(1), x.argmax(1), 0)
    same(d.var(1), x.var(1), 1e-4)
    same(d.log_softmax(1), x.log_softmax(1), 1e-5)
    same(d.sum(0), x.sum(0), 1e-5)


def test_bigger_products():
    a, b = cresset.rand(2, 130, 70), cresset.rand(2, 70, 150)
    same(a.to("opencl") @ b.to("opencl"), a @ b, 1e-4)
    same(a[0].to("opencl") @ b[0].to("opencl"), a[0] @ b[0], 1e-4)
    same(a.mT.to("opencl").mT @ b.mT.to("opencl").mT, a @ b, 1e-4)


def test_indices_out_of_range_touch_nothing():
    d = cresset.arange(4.0, device="opencl")
    wrong = cresset.tensor([0, 9, -9], device="opencl")
    assert d.index_select(0, wrong).cpu().tolist() == [0.0, 0.0, 0.0]
    assert d.scatter_add(0, wrong, cresset.ones(3, device="opencl")).cpu().tolist() == [1.0, 1.0, 2.0, 3.0]
