"""Native kernels against the CPU, over the samples of the operator table."""

import math
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
    whole = cresset.empty(3, dtype=cresset.int64, device="opencl")  # its type is the argument dtype: elements are cast, then added
    same(cresset.sum(d + 0.7, 0, out=whole), x.sum(0, dtype=cresset.int64), 0)
    with pytest.raises(RuntimeError, match="can't be cast"):
        cresset.sqrt(d, out=cresset.empty(2, 3, dtype=cresset.int64, device="opencl"))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got long int instead"):
        cresset.mm(d, d.t(), out=cresset.empty(2, 2, dtype=cresset.int64, device="opencl"))


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
        x, w = (v.clone().to(device).requires_grad_() for v in values)
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


WRONG = {
    "index_select": (lambda d, i: d.index_select(0, i), "index 9 is out of bounds for a dimension with size 4"),
    "negative": (lambda d, i: d.index_select(0, i.clamp(max=0)), "index -9 is out of bounds for a dimension with size 4"),
    "gather": (lambda d, i: d.gather(0, i), "index 9 is out of bounds for a dimension with size 4"),
    "scatter": (lambda d, i: d.scatter(0, i, d[:3]), "index 9 is out of bounds for a dimension with size 4"),
    "index_add": (lambda d, i: d.index_add(0, i, d[:3]), "index 9 is out of bounds for a dimension with size 4"),
    "indexing": (lambda d, i: d[i], "index 9 is out of bounds for a dimension with size 4"),
    "embedding": (lambda d, i: cresset.nn.functional.embedding(i.clamp(min=0), d[:, None]), "index 9 is out of bounds for a dimension with size 4"),
    "nll_loss": (lambda d, i: cresset.nn.functional.nll_loss(d.expand(3, 4), i.clamp(min=0)), "Target 9 is out of bounds: there are 4 classes"),
    "division": (lambda d, i: d.long() // i.clamp(0, 1), "ZeroDivisionError"),
    "remainder": (lambda d, i: d.long() % cresset.zeros_like(d).long(), "ZeroDivisionError"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_raised_where_the_device_is_waited_for(name):
    call, text = WRONG[name]
    d, i = cresset.arange(4.0, device="opencl"), cresset.tensor([0, 9, -9], device="opencl")
    if name == "division":
        d = d[:3]
    call(d, i)
    with pytest.raises(RuntimeError, match=text):
        cresset.accelerator.synchronize("opencl")
    cresset.accelerator.synchronize("opencl")  # once
    assert d.tolist() == [float(n) for n in range(len(d))]


def test_wrong_values_touch_nothing():
    d, wrong = cresset.arange(4.0, device="opencl"), cresset.tensor([0, 9, -9], device="opencl")
    sums = d.scatter_add(0, wrong, cresset.ones(3, device="opencl"))
    with pytest.raises(RuntimeError, match="is out of bounds for a dimension with size 4"):
        sums.cpu()
    assert sums.cpu().tolist() == [1.0, 1.0, 2.0, 3.0]
    assert d[cresset.tensor([-1, 3], device="opencl")].tolist() == [3.0, 3.0]


PLACES = [((3, 40), 0), ((3, 40), 1), ((2, 33, 17), 1)]  # shape and dimension
REDUCTIONS = {
    "sum": lambda x, d: x.sum(d), "mean": lambda x, d: x.mean(d), "prod": lambda x, d: x.cos().prod(d), "max": lambda x, d: x.max(d), "amin": lambda x, d: x.amin(d),
    "argmin": lambda x, d: x.argmin(d), "any": lambda x, d: (x > 0.9).any(d), "all": lambda x, d: (x < 0.9).all(d), "var": lambda x, d: x.var(d),
    "std_mean": lambda x, d: cresset.std_mean(x, d), "logsumexp": lambda x, d: x.logsumexp(d), "norm1": lambda x, d: x.norm(1, d), "norm2": lambda x, d: x.norm(2, d),
    "norm_inf": lambda x, d: x.norm(float("inf"), d), "norm_min": lambda x, d: x.norm(-float("inf"), d), "norm3": lambda x, d: x.norm(3, d), "softmax": lambda x, d: x.softmax(d),
    "log_softmax": lambda x, d: x.log_softmax(d), "integers": lambda x, d: (x * 50).long().sum(d), "bools": lambda x, d: (x > 0).sum(d),
    "half": lambda x, d: x.half().sum(d), "bfloat16": lambda x, d: x.bfloat16().softmax(d),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_in_every_place(name, fallbacks):
    """Lengths that are no multiples of sixteen, which processors take at a time."""
    for shape, dim in PLACES:
        x = cresset.arange(float(np.prod(shape))).reshape(shape).mul(0.7).sin()
        same(REDUCTIONS[name](x.to("opencl"), dim), REDUCTIONS[name](x, dim), 2e-2 if name in ("half", "bfloat16") else 1e-4)
    assert fallbacks() == []


def test_reductions_keep_what_is_not_a_number():
    x = cresset.arange(200.0).reshape(4, 50).sin()
    x[1, 30], x[2, 3], x[3] = float("nan"), float("inf"), -float("inf")
    for f in (lambda t: t.max(1), lambda t: t.min(0), lambda t: t.sum(1), lambda t: t.logsumexp(1), lambda t: t.softmax(1), lambda t: t.norm(float("inf"), 1), lambda t: t.amax(0)):
        for have, want in zip(flat(f(x.to("opencl"))), flat(f(x)), strict=True):
            np.testing.assert_allclose(array(have.cpu()), array(want), rtol=1e-5, equal_nan=True)


def test_convolutions_of_many_shapes(fallbacks):
    conv = cresset.nn.functional.conv2d
    for kernel, stride, padding, dilation in ((3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 2, 1), (3, 1, 2, 2), ((1, 3), (2, 3), (0, 1), 1), (4, 4, 0, 1)):
        results = []
        for device in ("cpu", "opencl"):
            size = (kernel, kernel) if isinstance(kernel, int) else kernel
            x = cresset.arange(2 * 3 * 20 * 37.0).mul(0.3).sin().reshape(2, 3, 20, 37).to(device).requires_grad_()
            w = cresset.arange(4.0 * 3 * size[0] * size[1]).cos().reshape(4, 3, *size).to(device).requires_grad_()
            y = conv(x, w, stride=stride, padding=padding, dilation=dilation)
            y.sin().sum().backward()
            results.append([y.detach(), x.grad, w.grad])
        for want, have in zip(*results, strict=True):
            np.testing.assert_allclose(array(have.cpu()), array(want), rtol=2e-3, atol=2e-4)
    half = cresset.ones(1, 2, 5, 5).half().to("opencl")
    assert conv(half, half[:, :, :3, :3]).dtype is cresset.float16
    assert fallbacks() == []


def test_norms_of_many_shapes(fallbacks):
    functional = cresset.nn.functional
    for shape in ((3, 5, 4, 4), (2, 3, 7, 9), (4, 20), (2, 3, 35), (600, 2)):  # of the last a channel is a work group's
        results = []
        for device in ("cpu", "opencl"):
            x = cresset.arange(float(np.prod(shape))).mul(0.9).sin().reshape(shape).to(device).requires_grad_()
            w = cresset.arange(float(shape[1])).add(1).to(device).requires_grad_()
            v = cresset.arange(float(shape[-1])).add(1).to(device).requires_grad_()
            mean, var = cresset.zeros(shape[1], device=device), cresset.ones(shape[1], device=device)
            loss = functional.batch_norm(x, mean, var, w, w, training=True).sin().sum() + functional.layer_norm(x, shape[-1:], v, v).cos().sum()
            loss = loss + functional.batch_norm(x, mean, var, w, w).sum()
            loss.backward()
            results.append([x.grad, w.grad, v.grad, mean, var, loss.detach()])
        for want, have in zip(*results, strict=True):
            np.testing.assert_allclose(array(have.cpu()), array(want), rtol=2e-3, atol=2e-3)
    assert fallbacks() == []


# An item does a row, a group does one, an item does one by sixteen elements, an item does sixteen of them.
@pytest.mark.parametrize("shape, dim", [((50, 7), 1), ((600, 2), 0), ((3, 45), 1), ((3, 45), 0), ((2, 5, 33), 1)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_rows_anywhere(name, shape, dim, fallbacks):
    results = []
    for device in ("cpu", "opencl"):
        x = cresset.arange(float(np.prod(shape))).mul(0.7).sin().reshape(shape).to(device).requires_grad_()
        y = getattr(x, name)(dim)
        y.sin().sum().backward()
        results.append([y.detach(), x.grad])
    for want, have in zip(*results, strict=True):
        np.testing.assert_allclose(array(have.cpu()), array(want), rtol=1e-4, atol=1e-6)
    assert fallbacks() == []


def test_checks_are_those_of_the_overload():
    """`pow` and `clamp_min` of tensors have no numbers to check; a program for one set of numbers serves others, and every type."""
    for dtype in (cresset.float32, cresset.int64):
        x = cresset.tensor([1, 2, 3], dtype=dtype)
        assert x.to("opencl").pow(x.to("opencl")).tolist() == [1, 4, 27]
        low, high = cresset.tensor([2, 2, 2], dtype=dtype), cresset.tensor([2, 3, 2], dtype=dtype)
        assert cresset.clamp(x.to("opencl"), low.to("opencl"), high.to("opencl")).tolist() == [2, 2, 2]
        assert cresset.clamp_min(x.to("opencl"), low.to("opencl")).tolist() == [2, 2, 3]
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed."):
        cresset.tensor([2, 3], device="opencl").pow(-1)
    assert cresset.pow(-2, cresset.tensor([1, 2], device="opencl")).tolist() == [-2, 4]
    values = cresset.tensor([0, 5, 9], dtype=cresset.float32)
    assert cresset.nn.functional.hardtanh(values.to("opencl")).tolist() == [0, 1, 1]  # limits that bytes refuse
    assert cresset.nn.functional.relu6(values.to(cresset.uint8).to("opencl")).tolist() == [0, 5, 6]


@pytest.mark.parametrize("name, arguments", [
    ("hardtanh", (2.5, 1.0)), ("hardtanh", (math.nan, 1.0)), ("hardtanh", (-1.0, math.nan)), ("hardtanh_backward", (-1.0, 1.0)),
    ("hardshrink_backward", (0.5,)), ("softshrink_backward", (0.5,)), ("mish_backward", ()),
    ("logit_backward", ()), ("logit_backward", (0.1,)), ("logit_backward", (-1.0,)), ("tanh", ()),
])  # fmt: skip
def test_limits_meet_special_values_as_on_the_cpu(name, arguments):
    x = cresset.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 0.25, 3.0, -1.0, 1.0, -1e30, 1e30])
    given = (x.flip(0), x) if name.endswith("backward") else (x,)
    operator = getattr(cresset.ops.aten, name)
    cresset.testing.assert_close(operator(*(g.to("opencl") for g in given), *arguments).cpu(), operator(*given, *arguments), equal_nan=True)


def test_means_beside_variances_are_sums_of_their_own():
    for x in (cresset.empty(3, 0), cresset.full((2, 3), -math.inf), cresset.randn(5, 700)):
        for f in (cresset.var_mean, cresset.std_mean):
            for theirs, mine in zip(f(x, dim=1), f(x.to("opencl"), dim=1)):
                cresset.testing.assert_close(mine.cpu(), theirs, equal_nan=True)


def test_one_number_is_that_of_all_dimensions():
    x, w = cresset.randn(2, 2, 7, 7), cresset.randn(3, 2, 3, 3)
    for options in ({"stride": [2]}, {"padding": [1]}, {"dilation": [2]}, {"stride": [1]}):
        cresset.testing.assert_close(cresset.conv2d(x.to("opencl"), w.to("opencl"), **options).cpu(), cresset.conv2d(x, w, **options), rtol=1e-4, atol=1e-4)
