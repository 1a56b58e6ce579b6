"""Meta, out=, in-place and strided calls of every row against the plain functional call."""

import cresset
import numpy as np
import op_samples
import pytest
from op_samples import Failure, array, flat

each_row = pytest.mark.parametrize("row", [r for r in op_samples.rows() if not r.random], ids=lambda row: row.id)


# Their arguments say which strides there are.
FIXED_STRIDES = {"aten::as_strided", "aten::as_strided_scatter", "aten::_reshape_alias", "aten::_unsafe_view"}


def plain(call):
    """The same call, outside of autograd, on fresh memory."""
    return call.map(lambda t: t.detach().clone())


def strided(t, device="cpu"):
    """A tensor of the same values whose last dimension is the slowest in memory."""
    order = [*range(t.dim())][-1:] + [*range(t.dim() - 1)]
    memory = cresset.empty([t.shape[i] for i in order], dtype=t.dtype, device=device)
    back = memory.permute([order.index(i) for i in range(t.dim())])
    return back if device == "meta" else back.copy_(t.detach())


def same(what, have, want, exact=True):
    """Two lists of tensors agree in type, shape and values."""
    if len(have) != len(want):
        raise Failure(f"{what}: {len(have)} tensors, {len(want)} wanted")
    for number, (h, w) in enumerate(zip(have, want)):
        if h.dtype != w.dtype or h.shape != w.shape:
            raise Failure(f"{what} {number}: {h.dtype} {list(h.shape)}, wanted {w.dtype} {list(w.shape)}")
        h, w = array(h), array(w)
        if not (np.array_equal(h, w, equal_nan=w.dtype.kind in "fc") if exact else np.allclose(h, w, rtol=1e-6, atol=1e-9, equal_nan=True)):
            raise Failure(f"{what} {number}: values differ")


def layouts(tensors):
    return [(t.dtype, list(t.shape), list(t.stride())) for t in tensors]


@each_row
def test_meta(row):
    """The Meta backend gives the types, shapes and strides of the CPU, for dense and for permuted arguments."""

    def check(call):
        for change in [lambda t: t.detach()] + [strided] * (row["name"] not in FIXED_STRIDES):
            real = call.map(change)
            try:
                want = layouts(flat(row.op()(*real.args, **real.kwargs)))
            except RuntimeError:
                # Views do not exist for every layout.
                if change is not strided or not row["view"]:
                    raise
                continue
            if not want:
                continue
            if not real.tensors():
                real.kwargs["device"] = "meta"
            meta = real.map(lambda t: cresset.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta"))
            result = flat(row.op()(*meta.args, **meta.kwargs))
            if any(t.device.type != "meta" for t in result):
                raise Failure("a result is not on meta")
            if layouts(result) != want:
                raise Failure(f"meta {layouts(result)}, cpu {want}")

    op_samples.check_samples("meta", row, check)


@each_row
def test_strided(row):
    """Arguments with other strides give the same values."""

    def check(call):
        if row["name"] in FIXED_STRIDES:
            return
        want = flat(row.op()(*plain(call).args, **call.map(lambda t: t.detach()).kwargs))
        other = call.map(strided)
        try:
            have = flat(row.op()(*other.args, **other.kwargs))
        except RuntimeError:
            if not row["view"]:
                raise
            return
        same("strided result", have, want, exact=False)

    op_samples.check_samples("strided", row, check)


@pytest.mark.parametrize("row", [r for r in op_samples.rows() if r.out and r.out["returns"] and not r.random], ids=lambda row: row.id)
def test_out(row):
    """out= gives the functional result: into empty tensors, into ready ones, and into strided ones, whose layout stays."""
    names = [a["name"] for a in row.out["arguments"] if a["write"]]
    known = {a["name"] for a in row.out["arguments"]}

    def check(call):
        call = plain(call)
        want = flat(row.op()(*call.args, **call.kwargs))

        def run(what, outs):
            kwargs = {k: v for k, v in call.kwargs.items() if k in known}
            result = flat(row.op(row.out)(*call.args, **kwargs, **dict(zip(names, outs))))
            if [t.data_ptr() for t in result] != [t.data_ptr() for t in outs]:
                raise Failure(f"{what}: the result is not the given tensor")
            same(what, outs, want, exact=False)

        run("out into empty", [cresset.empty(0, dtype=t.dtype) for t in want])
        run("out into ready", [cresset.empty(t.shape, dtype=t.dtype) for t in want])
        outs = [strided(t.detach() * 0 if t.dtype != cresset.bool else t) for t in want]
        before = layouts(outs)
        run("out into strided", outs)
        if layouts(outs) != before:
            raise Failure(f"strides of out changed from {before} to {layouts(outs)}")

    op_samples.check_samples("out", row, check)


@pytest.mark.parametrize("row", [r for r in op_samples.rows() if r.inplace and r.inplace["returns"] and not r.random], ids=lambda row: row.id)
def test_inplace(row):
    """The in-place form changes self to the functional result and has its gradient, or refuses another type or shape."""

    def check(call):
        values = plain(call)
        want = flat(row.op()(*values.args, **values.kwargs))[0]
        self = values.args[0]
        before = self.clone()
        op = row.op(row.inplace)
        if want.shape != self.shape or not cresset.can_cast(want.dtype, self.dtype):
            with pytest.raises(RuntimeError):
                op(*values.args, **values.kwargs)
            same("self after an error", [self], [before])
            return
        result = op(*values.args, **values.kwargs)
        if result.data_ptr() != self.data_ptr():
            raise Failure("in place gives another tensor")
        same("in place", [self], [want.to(self.dtype)])
        other = plain(call)
        base = strided(other.args[0])
        op(base, *other.args[1:], **other.kwargs)
        same("in place, strided", [base], [want.to(self.dtype)], exact=False)

        leaves = call.leaves()
        functional = [t for t in flat(row.op()(*call.args, **call.kwargs)) if t.requires_grad]
        if not functional or want.dtype != self.dtype or not call.args[0].requires_grad:
            return
        changed = op(call.args[0].clone(), *call.args[1:], **call.kwargs)
        weight = cresset.ones_like(want)
        pairs = zip(cresset.autograd.grad(changed, leaves, weight, allow_unused=True), cresset.autograd.grad(functional, leaves, [weight], allow_unused=True))
        for number, (have, expected) in enumerate(pairs):
            if (have is None) != (expected is None):
                raise Failure(f"gradient {number} in place is {'missing' if have is None else 'there'}, functional is not")
            if have is not None:
                same(f"gradient {number} in place", [have], [expected], exact=False)

    op_samples.check_samples("inplace", row, check)
