"""Wrong kernels, as data: does the score card find each of them?

python planted_faults.py LIBRARY [FIRST STEP] plants one fault at a time in the device `minimal`, whose other operators run on the CPU, and prints as
JSON the checks that found it. A fault is an operator, the form that a backend registers for it, and what is done to the arguments before
the CPU computes the right result (`before`) or to the result after it (`after`).
"""

import json
import sys
from dataclasses import dataclass

import cresset
from cresset.library import Library
from cresset.testing.devices import backend_key, load_backend
from cresset.utils._pytree import tree_map_only

DEVICE, nan, inf = "minimal", float("nan"), float("inf")


@dataclass
class Fault:
    """`operator` is the row of the card, `form` what is registered. A form that ends in `out` gets its result written there."""

    name: str
    operator: str
    form: str
    before: object = None
    after: object = None
    given: object = None  # like `before`, with the tensors of the device
    generator: str = ""   # "ignored": one that is passed is not looked at; "kept": every draw is the first of its seed
    dtypes: tuple = ("float32", "int64")


# --- what is done to results ----------------------------------------------------------------------------------------------------------


def flat_tail(start):
    """Elements from start(n) on are 0."""
    def after(r, *args, **kwargs):
        r = r.contiguous().clone()
        r.view(-1)[start(r.numel()):] = 0
        return r

    return after


def flush(t):
    if not isinstance(t, cresset.Tensor) or not t.is_floating_point():
        return t
    return cresset.where(t.abs() < cresset.finfo(t.dtype).tiny, cresset.zeros_like(t), t)


def as_contiguous(t):
    """The elements in the order of memory, as a kernel reads them that does not look at strides."""
    return t.as_strided(t.shape, cresset.empty(t.shape).stride(), t.storage_offset()) if t.dim() and t.untyped_storage().nbytes() >= (
        t.storage_offset() + t.numel()) * t.element_size() else t


def no_offset(t):
    return t.as_strided(t.shape, t.stride(), 0)


def through(dtype):
    return lambda r, *args, **kwargs: r.to(dtype).to(r.dtype) if r.dtype == cresset.int64 else r


def without(**defaults):
    """Arguments by name with the values that a kernel takes that does not look at them."""
    return lambda args, kwargs: (args, kwargs | {k: v for k, v in defaults.items() if k in kwargs})


def place(number, value):
    """The argument at a place has another value."""
    return lambda args, kwargs: (tuple(value(a) if n == number else a for n, a in enumerate(args)), kwargs)


def first(change):
    return place(0, change)


_seen = {}


def alpha_of_first_call(args, kwargs):
    key = tuple(args[0].shape)
    return args, kwargs | {"alpha": _seen.setdefault(key, kwargs.get("alpha", 1))}


def carry_lost(r, x, dim, **kwargs):
    return cresset.cat([c.cumsum(dim) for c in x.split(256, dim)], dim).to(r.dtype) if x.dim() else r


def rows_of(n):
    """Reductions that see only the first n of a row."""
    return lambda args, kwargs: ((args[0].narrow(-1, 0, min(n, args[0].shape[-1])) if args[0].dim() else args[0], *args[1:]), kwargs)


def last_wins(r, x, dim, index, source, **kwargs):
    r = x.clone()
    for place, i in enumerate(index.reshape(-1).tolist() if x.dim() else ()):
        r.select(dim, i).copy_(x.select(dim, i) + kwargs.get("alpha", 1) * source.select(dim, place))
    return r


def modulo(args, kwargs):
    a, b = args[:2]
    if not isinstance(b, cresset.Tensor) or a.dim() == 0 or b.numel() == 0 or cresset.broadcast_shapes(a.shape, b.shape) != a.shape:
        return args, kwargs
    return (a, b.reshape(-1)[cresset.arange(a.numel()) % b.numel()].reshape(a.shape), *args[2:]), kwargs


def half_accumulated(r, x, *args, **kwargs):
    if r.dtype != cresset.float16 or not args or not args[0] or len(args[0]) != 1 or x.dim() != 2:
        return r
    total = cresset.zeros(x.shape[1 - args[0][0] % 2], dtype=cresset.float16)
    for column in x.unbind(args[0][0]):
        total = total + column
    return total.reshape(r.shape)


def naive_variance(r, x, *args, **kwargs):
    if x.dtype != cresset.float32 or not args or not isinstance(args[0], (list, tuple)):
        return r
    dim, correction = list(args[0]), kwargs.get("correction", 1)
    n = 1
    for d in dim:
        n *= x.shape[d]
    keep = kwargs.get("keepdim", False)
    return ((x * x).sum(dim, keep) - x.sum(dim, keep) ** 2 / n) / max(n - (1 if correction is None else correction), 1e-9)


def repeats(period):
    def after(r, *args, **kwargs):
        flat = r.reshape(-1)
        return flat[cresset.arange(flat.numel()) % period].reshape(r.shape)

    return after


def last_of(value, least=2):
    """The last element is not written: what was in memory stays there."""
    def after(r, *args, **kwargs):
        r = r.contiguous().clone()
        if r.numel() >= least:
            r.view(-1)[-1] = value
        return r

    return after


def spoilt(formula):
    """Another formula, where it stays in floating point."""
    return lambda r, x, *args, **kwargs: formula(x, *args, **kwargs).to(r.dtype) if r.is_floating_point() and x.is_floating_point() else r


def each_seventh():
    calls = [0]

    def after(r, *args, **kwargs):
        calls[0] += 1
        return r + 1 if calls[0] % 7 == 0 and r.is_floating_point() else r

    return after


def nan_first(r, *args, **kwargs):
    """NaN sorted as the smallest number."""
    values, indices = r
    if not values.is_floating_point() or not values.dim() or not values.isnan().any():
        return r
    return values.nan_to_num(-inf, inf, -inf), indices


# --- the faults -----------------------------------------------------------------------------------------------------------------------

FAULTS = [
    Fault("relu is wrong between 0 and 1/8", "relu", "relu.out", after=lambda r, x: cresset.where((x > 0) & (x < 0.125), 0.125, r).to(r.dtype)),
    Fault("relu leaves the tail of a vector of four", "relu", "relu.out", after=flat_tail(lambda n: n // 4 * 4 if n > 64 else n)),
    Fault("relu has one block of 1,024", "relu", "relu.out", after=flat_tail(lambda n: 1024)),
    Fault("relu makes 0 of NaN", "relu", "relu.out", after=lambda r, x: r.nan_to_num(0.0, inf, -inf) if r.is_floating_point() else r),
    Fault("abs flushes denormals", "abs", "abs.out", before=first(flush)),
    Fault("mul flushes denormal results", "mul.Tensor", "mul.out", after=lambda r, *a: flush(r)),
    Fault("add ignores alpha", "add.Tensor", "add.out", before=without(alpha=1)),
    Fault("add keeps alpha by shape", "add.Tensor", "add.out", before=alpha_of_first_call),
    Fault("sub takes its arguments the other way round when sizes differ", "sub.Tensor", "sub.out",
          after=lambda r, a, b, **k: -r if isinstance(b, cresset.Tensor) and a.shape != b.shape else r),
    Fault("add broadcasts by the remainder of places", "add.Tensor", "add.out", before=modulo),
    Fault("mul reads all as contiguous", "mul.Tensor", "mul.out", given=lambda t: as_contiguous(t)),
    Fault("mul ignores offsets", "mul.Tensor", "mul.out", given=lambda t: no_offset(t)),
    Fault("add counts in float32", "add.Tensor", "add.out", after=through(cresset.float32)),
    Fault("mul counts in float64", "mul.Tensor", "mul.out", after=through(cresset.float64)),
    Fault("div rounds every quotient to zero", "div.Tensor_mode", "div.out_mode", before=lambda a, k: (a, k | {"rounding_mode": "trunc"} if k.get("rounding_mode") else k)),
    Fault("sum sees 1,024 of a row", "sum.dim_IntList", "sum.IntList_out", before=rows_of(1024)),
    Fault("sum takes negative dimensions for the first", "sum.dim_IntList", "sum.IntList_out",
          before=place(1, lambda d: [max(v, 0) for v in d] if d and len(d) == 1 else d)),
    Fault("sum adds halves in half", "sum.dim_IntList", "sum.IntList_out", after=half_accumulated, dtypes=("float32", "float16")),
    Fault("sum of bool in eight bits", "sum.dim_IntList", "sum.IntList_out", after=lambda r, x, *a, **k: r & 255 if x.dtype == cresset.bool else r, dtypes=("float32", "bool")),
    Fault("mean of nothing is 0", "mean.dim", "mean.out", after=lambda r, x, *a, **k: cresset.zeros_like(r) if x.numel() == 0 else r),
    Fault("amax skips NaN", "amax", "amax.out", before=first(lambda t: t.nan_to_num(-inf, inf, -inf) if t.is_floating_point() else t)),
    Fault("argmax skips NaN", "argmax", "argmax.out", before=first(lambda t: t.nan_to_num(-inf, inf, -inf) if t.is_floating_point() else t)),
    Fault("softmax does not subtract the maximum", "_softmax", "_softmax.out", after=lambda r, x, d, h: x.exp() / x.exp().sum(d, True)),
    Fault("softmax is over the last dimension", "_softmax", "_softmax.out", before=place(1, lambda d: -1)),
    Fault("mm leaves columns behind multiples of 16", "mm", "mm.out", after=lambda r, a, b: cresset.cat([r[:, : r.shape[1] // 16 * 16], 0 * r[:, r.shape[1] // 16 * 16 :]], 1)
          if r.shape[1] > 16 else r),
    Fault("mm takes the first as it lies in memory", "mm", "mm.out", given=lambda t: as_contiguous(t)),
    Fault("addmm ignores beta", "addmm", "addmm.out", before=without(beta=1)),
    Fault("convolution ignores dilation", "convolution", "convolution.out", before=place(5, lambda d: [1] * len(d))),
    Fault("convolution takes the first stride for all", "convolution", "convolution.out", before=place(3, lambda d: [d[0]] * len(d))),
    Fault("pooling ignores ceil_mode", "max_pool2d_with_indices", "max_pool2d_with_indices.out", before=place(5, lambda c: False)),
    Fault("layer norm has its own eps", "native_layer_norm", "native_layer_norm.out", before=place(4, lambda e: 1e-5)),
    Fault("gelu ignores approximate", "gelu", "gelu.out", before=without(approximate="none")),
    Fault("leaky_relu has its own slope", "leaky_relu", "leaky_relu.out", before=place(1, lambda s: 0.01)),
    Fault("clamp forgets min beside max", "clamp", "clamp.out", before=lambda a, k: ((a[0], None, a[2]) if len(a) > 2 and a[2] is not None and a[1] is not None else a, k)),
    Fault("pow has the absolute base", "pow.Tensor_Scalar", "pow.Tensor_Scalar_out", before=first(lambda t: t.abs())),
    Fault("round goes away from zero", "round", "round.out", after=lambda r, x: cresset.where((x - x.trunc()).abs() == 0.5, x.trunc() + x.sign(), r).to(r.dtype)
          if x.is_floating_point() else r),
    Fault("remainder has the sign of the dividend", "remainder.Tensor", "remainder.Tensor_out", after=lambda r, a, b: cresset.fmod(a, b)),
    Fault("eq takes denormals for 0", "eq.Tensor", "eq.Tensor_out", before=lambda a, k: (tuple(flush(t) for t in a), k)),
    Fault("the embedding's gradient forgets padding_idx", "embedding_dense_backward", "embedding_dense_backward", before=place(3, lambda p: -1)),
    Fault("index_add loses duplicates", "index_add", "index_add.out", after=last_wins),
    Fault("cumsum loses its carry after 256", "cumsum", "cumsum.out", after=carry_lost),
    Fault("sort ignores descending", "sort.stable", "sort.values_stable", before=without(descending=False)),
    Fault("topk ignores largest", "topk", "topk.values", before=place(3, lambda v: True)),
    Fault("cat reads all as contiguous", "cat", "cat.out", given=lambda t: as_contiguous(t)),
    Fault("uniform repeats after 1,024", "uniform_", "uniform_", after=repeats(1024)),
    Fault("normal ignores the deviation", "normal_", "normal_", before=place(2, lambda s: 1.0)),
    Fault("bernoulli swaps its sides", "bernoulli_.float", "bernoulli_.float", before=place(1, lambda p: 1 - p)),
    Fault("random never gives the largest", "random_.from", "random_.from", before=place(2, lambda to: to - 1)),
    Fault("randperm leaves what is behind 1,000", "randperm", "randperm.generator",
          after=lambda r, n, **k: cresset.cat([cresset.randperm(min(n, 1000)), cresset.arange(min(n, 1000), n)]).to(r.dtype)),
    Fault("uniform ignores the generator it is given", "uniform_", "uniform_", generator="ignored"),
    Fault("exponential ignores its rate", "exponential_", "exponential_", before=place(1, lambda v: 1.0)),
    Fault("normal gives the same numbers again", "normal_", "normal_", generator="kept"),
    Fault("var forgets the correction", "var.correction", "var.correction_out", before=without(correction=1)),
    Fault("var by the difference of squares", "var.correction", "var.correction_out", after=naive_variance),
    Fault("threshold_backward lets the threshold through", "threshold_backward", "threshold_backward.grad_input", after=lambda r, g, x, t: cresset.where(x == t, g, r)),
    Fault("add takes a number of the CPU for 0", "add.Tensor", "add.out", given=lambda t: t * 0 if t.device.type == "cpu" and t.dim() == 0 else t),
    Fault("add of two types in the first", "add.Tensor", "add.out", after=lambda r, a, b, **k: (a + b.to(a.dtype)).to(r.dtype) if isinstance(b, cresset.Tensor) and b.dtype != a.dtype else r),
    Fault("dropout does not scale", "native_dropout", "native_dropout", after=lambda r, *a: (r[0] * 0.7, r[1])),
    Fault("exp fails for nothing", "exp", "exp.out", after=lambda r, x: (1 // x.numel(), r)[1]),
    Fault("prelu takes the first weight for all", "_prelu_kernel", "_prelu_kernel", before=place(1, lambda w: w.reshape(-1)[0].expand(w.shape) if w.numel() else w)),
    Fault("out is written without its strides", "exp", "exp.out", after="contiguous out"),
    Fault("exp leaves the last element", "exp", "exp.out", after=last_of(0)),
    Fault("neg has 65,536 elements at most", "neg", "neg.out", after=flat_tail(lambda n: 65536)),
    Fault("sqrt of a negative number is 0", "sqrt", "sqrt.out", after=spoilt(lambda x: x.clamp(min=0).sqrt())),
    Fault("tanh by exponentials", "tanh", "tanh.out", after=spoilt(lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()))),
    Fault("sigmoid by the exponential of x", "sigmoid", "sigmoid.out", after=spoilt(lambda x: x.exp() / (1 + x.exp()))),
    Fault("log1p by log", "log1p", "log1p.out", after=spoilt(lambda x: (1 + x).log())),
    Fault("expm1 by exp", "expm1", "expm1.out", after=spoilt(lambda x: x.exp() - 1)),
    Fault("sin in single precision", "sin", "sin.out", after=lambda r, x: r.to(cresset.float32).to(r.dtype), dtypes=("float32", "float64")),
    Fault("floor_divide goes to zero", "floor_divide", "floor_divide.out", after=lambda r, a, b: cresset.div(a, b, rounding_mode="trunc").to(r.dtype)),
    Fault("maximum skips NaN", "maximum", "maximum.out", after=lambda r, a, b: cresset.fmax(a, b)),
    Fault("where has its sides swapped for sizes that differ", "where.self", "where.self_out",
          before=lambda a, k: ((a[0], a[2], a[1]) if a[1].shape != a[2].shape else a, k)),
    Fault("ge is gt", "ge.Scalar", "ge.Scalar_out", after=lambda r, a, b: a > b),
    Fault("ne of NaN is false", "ne.Tensor", "ne.Tensor_out", after=lambda r, a, b: r & ~(a.isnan() & b.isnan())),
    Fault("all of nothing is false", "all", "all.all_out", after=lambda r, x: r & (x.numel() > 0)),
    Fault("prod of nothing is 0", "prod", "prod.out", after=lambda r, x, **k: r * (x.numel() > 0)),
    Fault("index_select never takes the last", "index_select", "index_select.out", before=lambda a, k: (
        (a[0], a[1], a[2].clamp(max=max(a[0].shape[a[1]] - 2, 0)) if a[0].dim() else a[2]), k)),
    Fault("gather takes negative dimensions for the first", "gather", "gather.out", before=place(1, lambda d: max(d, 0))),
    Fault("scatter_add writes instead", "scatter_add", "scatter_add.out", after=lambda r, x, d, i, s: cresset.scatter(x, d, i, s)),
    Fault("masked_fill reads the mask as contiguous", "masked_fill.Scalar", "masked_fill_.Scalar", given=lambda t: as_contiguous(t) if t.dtype == cresset.bool else t),
    Fault("tril ignores the diagonal", "tril", "tril.out", before=place(1, lambda d: 0)),
    Fault("bmm has the first batch for all", "bmm", "bmm.out", after=lambda r, a, b: r[:1].expand_as(r) if r.numel() else r),
    Fault("mm sums 256 of a row", "mm", "mm.out", before=lambda a, k: ((a[0][:, :256], a[1][:256]), k)),
    Fault("mm of no columns is not written", "mm", "mm.out", after=lambda r, a, b: r + 3 if a.shape[1] == 0 else r),
    Fault("baddbmm ignores alpha", "baddbmm", "baddbmm.out", before=without(alpha=1)),
    Fault("addcmul ignores value", "addcmul", "addcmul.out", before=without(value=1)),
    Fault("addcdiv squares value", "addcdiv", "addcdiv.out", before=lambda a, k: (a, k | {"value": k["value"] ** 2} if "value" in k else k)),
    Fault("lerp goes the other way", "lerp.Scalar", "lerp.Scalar_out", before=lambda a, k: ((a[1], a[0], a[2]), k)),
    Fault("averages count what is padded", "avg_pool2d", "avg_pool2d.out", before=place(5, lambda c: True)),
    Fault("bilinear ignores align_corners", "upsample_bilinear2d", "upsample_bilinear2d.out", before=place(2, lambda c: False)),
    Fault("nll_loss ignores ignore_index", "nll_loss_forward", "nll_loss_forward.output", before=place(4, lambda i: -100)),
    Fault("nll_loss ignores the weights", "nll_loss_forward", "nll_loss_forward.output", before=place(2, lambda w: None)),
    Fault("mse_loss takes the sum for the mean", "mse_loss", "mse_loss.out", before=lambda a, k: (a[:2], k | {"reduction": 2}) if len(a) + len(k) == 2 else (a, k)),
    Fault("elu ignores alpha", "elu", "elu.out", before=place(1, lambda a: 1)),
    Fault("hardtanh has its own bounds", "hardtanh", "hardtanh.out", before=lambda a, k: ((a[0],), {})),
    Fault("softplus ignores beta", "softplus", "softplus.out", before=place(1, lambda b: 1)),
    Fault("log_softmax by log of softmax", "_log_softmax", "_log_softmax.out", after=lambda r, x, d, h: x.softmax(d).log()),
    Fault("logsumexp does not subtract the maximum", "logsumexp", "logsumexp.out", after=spoilt(lambda x, d, keep=False: x.exp().sum(d, keep).log())),
    Fault("the norm is always the second", "linalg_vector_norm", "linalg_vector_norm.out", before=place(1, lambda o: 2)),
    Fault("cat takes negative dimensions for the first", "cat", "cat.out", before=place(1, lambda d: max(d, 0))),
    Fault("padding ignores its value", "constant_pad_nd", "constant_pad_nd", before=place(2, lambda v: 0)),
    Fault("nonzero leaves the last", "nonzero", "nonzero.out", after=lambda r, x: r[:-1]),
    Fault("flip turns the first dimension only", "flip", "flip", before=place(1, lambda d: d[:1])),
    Fault("roll does not go back", "roll", "roll", before=place(1, lambda s: [abs(v) for v in s])),
    Fault("convolution forgets the bias", "convolution", "convolution.out", before=place(2, lambda b: None)),
    Fault("convolution takes the first padding for all", "convolution", "convolution.out", before=place(4, lambda d: [d[0]] * len(d))),
    Fault("the convolution's bias has half a gradient", "convolution_backward", "convolution_backward", after=lambda r, *a: (r[0], r[1], r[2] * 0.5 if r[2] is not None else None)),
    Fault("softmax's gradient without its sum", "_softmax_backward_data", "_softmax_backward_data.out", after=lambda r, g, y, d, t: g * y),
    Fault("tanh's gradient without the square", "tanh_backward", "tanh_backward.grad_input", after=lambda r, g, y: g * (1 - y)),
    Fault("gelu's gradient ignores approximate", "gelu_backward", "gelu_backward.grad_input", before=without(approximate="none")),
    Fault("sort has NaN in front", "sort.stable", "sort.values_stable", after=nan_first),
    Fault("normal ignores the mean", "normal_", "normal_", before=place(1, lambda m: 0.0)),
    Fault("uniform begins at 0", "uniform_", "uniform_", before=place(1, lambda v: 0.0)),
    Fault("fill fills 1,024", "fill.Scalar", "fill_.Scalar", after=flat_tail(lambda n: 1024)),
    Fault("each seventh call is wrong", "mul.Tensor", "mul.out", after=each_seventh()),
    Fault("relu of many dimensions is wrong", "relu", "relu.out", after=lambda r, x: r + (r.dim() > 3)),
    Fault("abs of one number is not written", "abs", "abs.out", after=lambda r, x: r * 0 if r.dim() == 0 else r),
    Fault("add writes behind its end", "add.Tensor", "add.out", after="behind"),
    Fault("relu spoils its input", "relu", "relu.out", after="spoils"),
    Fault("sum sees 65,536 of a row", "sum.dim_IntList", "sum.IntList_out", before=rows_of(65536)),
    Fault("rsqrt of a negative number is 0", "rsqrt", "rsqrt.out", after=spoilt(lambda x: x.clamp(min=0).rsqrt().nan_to_num(0.0, 0.0))),
    Fault("silu's gradient has 256 of a row", "silu_backward", "silu_backward.grad_input", after=lambda r, g, x: cresset.cat([r[..., :256], 0 * r[..., 256:]], -1) if r.dim() else r),
]  # fmt: skip


# --- planting -------------------------------------------------------------------------------------------------------------------------


def _overload(name):
    base, _, overload = name.partition(".")
    return getattr(getattr(cresset.ops.aten, base), overload or "default")


def kernel(fault):
    """The right result, computed on the CPU, spoilt by the fault; for a fault without a change the right one."""
    func = _overload(fault.form)
    written = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]

    def to_cpu(t):
        t = fault.given(t) if fault.given else t
        return t.detach().cpu()

    def run(*args, **kwargs):
        outs = [kwargs.pop(n) for n in written if n in kwargs]
        target = args[0] if written and not outs else None
        tensors = [t for t in [*outs, *args] if isinstance(t, cresset.Tensor) and t.device.type != "cpu"]
        device = tensors[0].device if tensors else cresset.device(DEVICE)
        listed = {a.name for a in func._schema.arguments}
        args, kwargs = tree_map_only(cresset.Tensor, to_cpu, (args, kwargs))
        kwargs = {k: cresset.device("cpu") if isinstance(v, cresset.device) else v for k, v in kwargs.items() if k in listed}
        if "generator" in listed:
            kwargs["generator"] = _host(device, kwargs.get("generator"), fault)
        if fault.before:
            args, kwargs = fault.before(args, kwargs)
        room = {n: cresset.empty(0, dtype=o.dtype) for n, o in zip(written, outs)}
        result = func(*args, **kwargs, **room)
        if callable(fault.after):
            result = fault.after(result, *args, **{k: v for k, v in kwargs.items() if k != "generator"})
        if target is not None:
            return target.copy_(result)
        if not outs:
            return tree_map_only(cresset.Tensor, lambda t: t.to(device), result)
        for out, r in zip(outs, [result] if isinstance(result, cresset.Tensor) else result):
            if out.shape != r.shape:
                out.resize_(r.shape)
            if fault.after == "contiguous out" and out.dim():
                out = out.as_strided(out.shape, r.contiguous().stride(), out.storage_offset())
            out.copy_(r)
            if fault.after == "behind":
                _write_behind(out)
        if fault.after == "spoils":
            tensors[len(outs)].zero_()
        return outs[0] if len(outs) == 1 else tuple(outs)

    return run


def _write_behind(t):
    """One element more than the tensor has, where its memory has room."""
    end = t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1
    if t.numel() and t.untyped_storage().nbytes() >= (end + 1) * t.element_size():
        t.as_strided((1,), (1,), end).fill_(77)


def _host(device, generator, fault):
    """A stream on the CPU that follows the device's: its seed is drawn there."""
    if fault.generator == "kept":
        return cresset.Generator().manual_seed(getattr(cresset, device.type).initial_seed() if generator is None else generator.initial_seed())
    if fault.generator == "ignored":
        generator = None
    return cresset.Generator().manual_seed(int(cresset.empty(1, device=device).cauchy_(generator=generator).abs().item() * 1e6))


def planted(fault):
    library = Library("aten", "IMPL")
    library.impl(fault.form, kernel(fault), backend_key(DEVICE))
    return library


def found_by(fault):
    """[(check, dtype, reason)] of the card of the fault's operator."""
    import re

    from cresset.conform import conform

    library = planted(fault)
    try:
        card = conform(DEVICE, ops=f"^{re.escape(fault.operator)}$", dtypes=fault.dtypes, with_models=False)
    finally:
        library._destroy()
    if not card.results:
        return [("nothing was checked", "", "")]
    return [(r.check, r.dtype, r.reason[:120]) for r in card.failures()]


def main(library, start=0, step=1, names=""):
    load_backend(library)
    cresset.set_num_threads(1)
    found, right = {}, {}
    for fault in FAULTS[int(start) :: int(step)]:
        if names not in fault.name:
            continue
        found[fault.name] = found_by(fault)
        if (fault.operator, fault.form) not in right:
            right[fault.operator, fault.form] = found_by(Fault("none", fault.operator, fault.form, dtypes=fault.dtypes))
        print(fault.name, "|", found[fault.name][:1], "|", right[fault.operator, fault.form][:1], file=sys.stderr, flush=True)
    print(json.dumps({"found": found, "right": {" ".join(k): v for k, v in right.items()}}))


if __name__ == "__main__":
    main(*sys.argv[1:])
