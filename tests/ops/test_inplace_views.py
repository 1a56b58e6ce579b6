"""Every in-place form on views, to second order and in forward mode: the base that holds the view is what is differentiated, and the view is gone by then."""

import cresset
import gradcheck
import numpy as np
import op_samples
import pytest

TABLE = {op_samples.qualified(data): data for data in op_samples.operators()}


def inplace_form(row):
    """The operator of the table that does what the row does, in place: derived from the row or a row of its own."""
    if row.inplace:
        return row.inplace
    name, dot, overload = row["name"], "." if row["overload"] else "", row["overload"]
    return TABLE.get(f"{name}_{dot}{overload}")


def transposed(x):
    base = x.transpose(0, -1).clone(memory_format=cresset.contiguous_format) if x.dim() else x.clone()
    return base, base.transpose(0, -1) if x.dim() else base.view(())


def narrowed(x):
    whole = x if x.dim() else x.unsqueeze(0)
    base = cresset.cat([whole, whole * 0.5, whole])
    part = base.narrow(0, whole.shape[0], whole.shape[0])
    part = part if x.dim() else part.squeeze(0)
    return base, part.mul_(2)


def expanded_then_cloned(x):
    base = x.unsqueeze(0).expand(2, *x.shape).clone()
    return base, base[1]


def chained(x):
    base = cresset.stack([x, x], -1)
    return base, base.movedim(-1, 0).narrow(0, 1, 1).squeeze(0).view(x.shape) if x.dim() < 2 else base.movedim(-1, 0).narrow(0, 1, 1).squeeze(0)


def gaps_in_memory(x):
    """The base itself is not dense."""
    base = cresset.empty_strided((2, *x.shape), (2 * x.numel() + 3, *x.clone().stride()), dtype=x.dtype)
    base = base.copy_(x)
    return base, base[1]


def real_part(x):
    """A view of another type is found again by repeating the calls that made it."""
    base = cresset.complex(x, x)
    return base, cresset.view_as_real(base).select(-1, 1)


VIEWS = [transposed, narrowed, expanded_then_cloned, chained, gaps_in_memory, real_part]
ROWS = [row for row in op_samples.rows() if row.differentiable and not row.random and not row["view"] and inplace_form(row)]


def problem(row, call, view):
    """None when derivatives of the in-place form on the view agree with differences, or when it does not apply."""
    self = call.args[0]
    if not (isinstance(self, cresset.Tensor) and self.requires_grad) or (view is real_part and self.is_complex()):
        return None
    op = row.op(inplace_form(row))

    leaves = call.leaves()

    def changed(*inputs):
        now = dict(zip(map(id, leaves), inputs))
        moved = call.map(lambda t: now.get(id(t), t))
        base, part = view(moved.args[0])
        op(part, *moved.args[1:], **moved.kwargs)
        return base

    with cresset.no_grad():
        try:
            op(self.detach().clone(), *call.args[1:], **call.kwargs)
        except (RuntimeError, TypeError):
            return None  # the result has another shape or type
    try:
        gradcheck.check_reverse(changed, leaves, np.random.default_rng(7))
        gradcheck.check_second(changed, leaves, np.random.default_rng(7))
        cresset.autograd.gradcheck(changed, leaves, check_forward_ad=True, check_backward_ad=False, check_undefined_grad=False, fast_mode=True)
        cresset.autograd.gradgradcheck(
            changed, leaves, check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False, fast_mode=True
        )
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_inplace_on_views(row):
    problems = []
    for index, call in row.calls():
        if cresset.float32 in [*call.args, *call.kwargs.values()]:
            continue
        for view in VIEWS:
            if (found := problem(row, call, view)) is not None:
                problems.append(f"{row.id}({row['samples'][index]}) on {view.__name__}: {found}")
    assert not problems, "\n".join(problems)


def test_the_forms_are_many():
    """The list above is found in the table; a change of its keys must not empty it."""
    names = {inplace_form(row)["name"].removeprefix("aten::") for row in ROWS}
    assert len(names) > 100 and {"exp_", "relu_", "index_put_", "scatter_", "addmm_", "cumprod_", "masked_fill_", "pow_"} <= names
