"""Masked reductions against NumPy's masked arrays and plain loops over what counts."""

import cresset
import numpy as np
import pytest
from cresset import masked

RNG = np.random.default_rng(5)
X = np.round(RNG.normal(size=(2, 3, 4)) * 4, 2)
MASK = RNG.random((2, 3, 4)) < 0.6
MASK[:, :, 0] = True  # something counts in every row
MASKS = {"none": None, "full": MASK, "row": MASK[0, 0], "column": MASK[1, :, :1]}

NUMPY = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "amax": np.max,
    "amin": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "median": lambda v: np.sort(v)[(len(v) - 1) // 2],
    "norm": lambda v: np.sqrt(np.sum(v * v)),
    "logsumexp": lambda v: np.log(np.sum(np.exp(v))),
    "var": lambda v: np.var(v, ddof=1) if len(v) > 1 else np.nan,
    "std": lambda v: np.std(v, ddof=1) if len(v) > 1 else np.nan,
}


def each_row(op, x, mask, axis):
    """`op` of the elements that count, for every row along `axis`."""
    x, mask = np.moveaxis(x, axis, -1), np.moveaxis(np.broadcast_to(True if mask is None else mask, x.shape), axis, -1)
    out = np.empty(x.shape[:-1])
    for at in np.ndindex(out.shape):
        if op in ("argmax", "argmin"):
            out[at] = np.flatnonzero(mask[at])[NUMPY[op](x[at][mask[at]])]
        else:
            out[at] = NUMPY[op](x[at][mask[at]])
    return out


def tensors(mask, dtype=cresset.float64):
    return cresset.tensor(X, dtype=dtype), None if mask is None else cresset.tensor(mask)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", NUMPY)
@pytest.mark.parametrize("kind", ["none", "full", "row"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reduction(op, kind, keepdim):
    x, mask = tensors(MASKS[kind])
    want = each_row(op, X, MASKS[kind], -1)
    have = getattr(masked, op)(x, dim=-1, keepdim=keepdim, mask=mask)
    assert have.dtype == cresset.float64
    np.testing.assert_allclose(have.numpy(), want[..., None] if keepdim else want, rtol=1e-12)
    if op == "median":
        return
    everything = each_row(op, X.reshape(1, -1), np.broadcast_to(True if mask is None else MASKS[kind], X.shape).reshape(1, -1), -1)
    np.testing.assert_allclose(getattr(masked, op)(x, mask=mask).numpy(), everything[0], rtol=1e-12)


@pytest.mark.parametrize("op", ["sum", "mean", "var", "amax", "norm"])
def test_several_dimensions(op):
    x, mask = tensors(MASK)
    moved = [np.moveaxis(a, 1, 0).reshape(3, -1) for a in (X, MASK)]
    np.testing.assert_allclose(getattr(masked, op)(x, dim=(0, 2), mask=mask).numpy(), each_row(op, *moved, -1), rtol=1e-12)


@pytest.mark.parametrize("kind", MASKS)
def test_normalisations(kind):
    x, mask = tensors(MASKS[kind])
    full = np.broadcast_to(True if mask is None else MASKS[kind], X.shape)
    e = np.where(full, np.exp(X), 0)
    with np.errstate(all="ignore"):
        soft = e / e.sum(-1, keepdims=True)
        np.testing.assert_allclose(masked.softmax(x, -1, mask=mask).numpy(), soft, rtol=1e-12)
        np.testing.assert_allclose(masked.log_softmax(x, -1, mask=mask).numpy(), np.log(soft), rtol=1e-10)
        e = np.where(full, np.exp(-X), 0)
        np.testing.assert_allclose(masked.softmin(x, -1, mask=mask).numpy(), e / e.sum(-1, keepdims=True), rtol=1e-12)
    kept = np.where(full, X, 0)
    length = np.maximum(np.sqrt((kept * kept).sum(1, keepdims=True)), 1e-12)
    np.testing.assert_allclose(masked.normalize(x, 2.0, 1, mask=mask).numpy(), kept / length, rtol=1e-12)
    np.testing.assert_allclose(masked.cumsum(x, 1, mask=mask).numpy(), np.cumsum(kept, 1), rtol=1e-12)
    np.testing.assert_allclose(masked.cumprod(x, 1, mask=mask).numpy(), np.cumprod(np.where(full, X, 1), 1), rtol=1e-12)


def test_logaddexp():
    x, mask = tensors(MASK)
    have = masked.logaddexp(x, x * 2, input_mask=mask, other_mask=~mask)
    np.testing.assert_allclose(have.numpy(), np.where(MASK, X, 2 * X), rtol=1e-12)


def test_nothing_counts():
    x, none = cresset.tensor([[1.0, 2.0]]), cresset.tensor([False, False])
    want = {"sum": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf, "mean": np.nan, "var": np.nan, "norm": 0.0, "logsumexp": -np.inf, "median": np.nan}
    for op, value in want.items():
        np.testing.assert_array_equal(getattr(masked, op)(x, dim=1, mask=none).numpy(), np.array([value], dtype=np.float32))
    assert masked.amax(x.long(), 1, mask=none).item() == np.iinfo(np.int64).min


def test_gradient_goes_to_what_counts():
    x, mask = tensors(MASK)
    x.requires_grad_()
    (grad,) = cresset.autograd.grad(masked.mean(x, mask=mask), x)
    np.testing.assert_allclose(grad.numpy(), MASK / MASK.sum(), rtol=1e-12)


def test_types():
    x = cresset.tensor([[1, 2], [3, 4]], dtype=cresset.int32)
    mask = cresset.tensor([True, False])
    assert masked.sum(x, 1, mask=mask).dtype == cresset.int64
    assert masked.cumsum(x, 1, mask=mask).dtype == cresset.int32
    assert masked.amax(x, 1, mask=mask, dtype=cresset.float64).tolist() == [1.0, 3.0]
    assert masked.sum(x, 1, mask=mask.long()).tolist() == [1, 3]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: masked.mean(x.long(), 1), ValueError, "Could not infer output dtype"),
        (lambda x: masked.amax(x > 0, 1, mask=x > 0), NotImplementedError, "identity of amax on .*bool input"),
        (lambda x: masked.sum(x, 2), IndexError, "Dimension out of range"),
        (lambda x: masked.sum(x, (0, 0)), RuntimeError, "dim=0 appears multiple times"),
        (lambda x: masked.sum(x, 0, mask=cresset.ones(1, 2, 2, dtype=cresset.bool)), IndexError, "expected broadcastable mask"),
        (lambda x: masked.sum(x, 0, mask=cresset.ones(5, dtype=cresset.bool)), RuntimeError, "must match the existing size"),
        (lambda x: masked.median(x.long(), 1, mask=x > 9), ValueError, "no fully masked out rows"),
        (lambda x: masked.var(x, 1, True, correction=1), ValueError, "Only one of"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call(cresset.ones(2, 2))
