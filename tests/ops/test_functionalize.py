"""Every in-place form (on a view) and out= form under functionalize: the same results; no out= operator runs as it is."""

import cresset
import op_samples
import pytest
from cresset.func import functionalize
from cresset.utils._python_dispatch import TorchDispatchMode
from op_samples import Failure, flat
from test_forms import plain, same


class Writes(TorchDispatchMode):
    """The operators that write, in order."""

    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(a.is_write for a in func._schema.arguments):
            self.ops.append(func._schema.name)
        return func(*args, **(kwargs or {}))


def run(f, *args):
    with Writes() as writes:
        result = functionalize(f)(*args)
    return result, writes.ops


@pytest.mark.parametrize(
    "row", [r for r in op_samples.rows() if r.inplace and r.inplace["returns"] and not r.random], ids=lambda row: row.id
)
def test_inplace(row):
    def check(call):
        values, others = plain(call), plain(call)
        op = row.op(row.inplace)
        base = cresset.stack([values.args[0], values.args[0]])

        def f(base, *rest):
            view = base[1]
            op(view, *rest, **values.kwargs)
            return view, base

        try:
            want = f(base.clone(), *plain(call).args[1:])
        except RuntimeError as expected:
            try:
                functionalize(f)(base, *others.args[1:])
            except RuntimeError:
                return
            raise Failure(f"no error, wanted {expected}") from None
        (view, whole), _ = run(f, base, *others.args[1:])
        same("a view changed in place", [view, whole, base], [want[0], want[1], want[1]])

    op_samples.check_samples("functionalize", row, check)


@pytest.mark.parametrize(
    "row", [r for r in op_samples.rows() if r.out and r.out["returns"] and not r.random], ids=lambda row: row.id
)
def test_out(row):
    names = [a["name"] for a in row.out["arguments"] if a["write"]]
    known = {a["name"] for a in row.out["arguments"]}

    def check(call):
        call = plain(call)
        want = flat(row.op()(*call.args, **call.kwargs))
        kwargs = {k: v for k, v in call.kwargs.items() if k in known}

        def f(*args):
            outs = [cresset.empty(0, dtype=t.dtype) for t in want]
            row.op(row.out)(*args, **kwargs, **dict(zip(names, outs)))
            return outs

        outs, written = run(f, *call.args)
        same("out", outs, want, exact=False)
        if any(name == row["name"] for name in written):
            raise Failure(f"out= was run as it is: {written}")

    op_samples.check_samples("functionalize out", row, check)
