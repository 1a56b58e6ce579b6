"""Every row on every common element type: the values of double precision, or a clean refusal."""

import cresset
import numpy as np
import op_samples
import pytest
from op_samples import Failure, array, cast, flat

# How far a result may be from double precision on the same (already rounded) arguments.
TYPES = {"float32": 1e-4, "float64": 0.0, "float16": 2e-2, "bfloat16": 1e-1, "int64": None, "bool": None}
REFUSALS = (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError)


@pytest.mark.parametrize("row", [r for r in op_samples.rows() if not r.random], ids=lambda row: row.id)
@pytest.mark.parametrize("name", TYPES)
def test_type(row, name):
    dtype, tolerance = getattr(cresset, name), TYPES[name]

    def check(call):
        given = cast(call, dtype)
        try:
            result = flat(row.op()(*given.args, **given.kwargs))
        except REFUSALS as error:
            if not str(error).strip():
                raise Failure(f"{type(error).__name__} without a message") from error
            if name in ("float32", "float64"):
                raise
            return
        for t in result:
            array(t)
        if tolerance is None:
            return
        exact = given.map(lambda t: t.to(cresset.float64) if t.is_floating_point() else t)
        for number, (h, w) in enumerate(zip(result, flat(row.op()(*exact.args, **exact.kwargs)))):
            if h.shape != w.shape:
                raise Failure(f"result {number} has shape {list(h.shape)}, in double precision {list(w.shape)}")
            if h.is_floating_point() and not np.allclose(array(h), array(w), rtol=tolerance, atol=tolerance, equal_nan=True):
                raise Failure(f"result {number} differs from double precision by {np.nanmax(np.abs(array(h) - array(w))):.3g}")

    op_samples.check_samples(name, row, check)


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16])
def test_half_types_round_a_sum_once(dtype):
    """Convolutions and gradients of averages add in float: what float gives, rounded."""
    def calls(x, w, g, y):
        conv = cresset.nn.functional.conv2d(x, w, padding=1)
        grads = cresset.ops.aten.convolution_backward(g, x, w, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
        return [conv, *grads, cresset.ops.aten._adaptive_avg_pool2d_backward(y, x), cresset.ops.aten.avg_pool2d_backward(x, x, [3, 3], [1, 1], [1, 1], False, True, None)]

    generator = cresset.Generator().manual_seed(0)
    arguments = [cresset.randn(*shape, generator=generator).to(dtype) for shape in ((5, 3, 6, 7), (4, 3, 3, 3), (5, 4, 6, 7), (5, 3, 4, 5))]
    for have, exact in zip(calls(*arguments), calls(*[t.float() for t in arguments]), strict=True):
        assert have.dtype is dtype and cresset.equal(have, exact.to(dtype))
