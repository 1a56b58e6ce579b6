"""out= and in-place forms write the elements of their tensor and nothing else: strided, offset and overlapping ones of every row."""

import cresset
import op_samples
import pytest
from op_samples import Failure, array, flat
from test_forms import plain, same

MARGIN = 5
FILL = 77


def storage(n, dtype):
    """A row of n elements of a value that no result has everywhere."""
    return cresset.full((n,), FILL, dtype=cresset.int64).to(dtype)


def layouts(shape):
    """(name, strides, elements) of non-overlapping layouts of a shape: with gaps, permuted, reversed order of dimensions."""
    sizes = [max(s, 1) for s in shape]

    def strides_of(order, gap):
        strides, step = [0] * len(shape), gap
        for d in reversed(order):
            strides[d] = step
            step *= sizes[d]
        return strides, step

    dims = list(range(len(shape)))
    yield "offset", *strides_of(dims, 1)
    yield "gaps", *strides_of(dims, 3)
    if len(shape) > 1:
        yield "permuted", *strides_of(dims[::-1], 1)
        yield "permuted gaps", *strides_of(dims[::-1], 2)


def placed(shape, strides, span, dtype):
    """A view with margins, its storage, and which elements of it are the view's."""
    base = storage(span + 2 * MARGIN, dtype)
    inside = cresset.zeros(base.shape, dtype=cresset.bool)
    view = base.as_strided(shape, strides, MARGIN)
    if view.numel():
        inside.as_strided(shape, strides, MARGIN).fill_(True)
    return view, base, inside


def check_around(what, base, inside):
    if not (array(base)[~inside.numpy()] == array(storage(len(base), base.dtype))[~inside.numpy()]).all():
        raise Failure(f"{what}: elements around the view changed")


def runner(row, call):
    names = [a["name"] for a in row.out["arguments"] if a["write"]]
    known = {a["name"] for a in row.out["arguments"]}
    kwargs = {k: v for k, v in call.kwargs.items() if k in known}
    return lambda outs, args=call.args: flat(row.op(row.out)(*args, **kwargs, **dict(zip(names, outs))))


OUT_ROWS = [r for r in op_samples.rows() if r.out and r.out["returns"] and not r.random]


@pytest.mark.parametrize("row", OUT_ROWS, ids=lambda row: row.id)
def test_out(row):
    def check(call):
        call = plain(call)
        want = flat(row.op()(*call.args, **call.kwargs))
        run = runner(row, call)
        for kinds in zip(*(list(layouts(t.shape)) for t in want)):
            places = [placed(t.shape, strides, span, t.dtype) for t, (_, strides, span) in zip(want, kinds)]
            result = run([view for view, _, _ in places])
            what = f"out {kinds[0][0]}"
            if [t.data_ptr() for t in result if t.numel()] != [view.data_ptr() for view, _, _ in places if view.numel()]:
                raise Failure(f"{what}: the result is not the given tensor")
            same(what, [view for view, _, _ in places], want, exact=False)
            for _, base, inside in places:
                check_around(what, base, inside)

    op_samples.check_samples("out", row, check)


@pytest.mark.parametrize("row", OUT_ROWS, ids=lambda row: row.id)
def test_out_with_elements_twice(row):
    """Refused, and nothing is written."""

    def check(call):
        call = plain(call)
        want = flat(row.op()(*call.args, **call.kwargs))
        if not all(t.numel() > 1 for t in want):
            return
        bases = [storage(1, t.dtype) for t in want]
        outs = [base.expand(t.shape) for base, t in zip(bases, want)]
        with pytest.raises(RuntimeError):
            runner(row, call)(outs)
        if any(bool((base != storage(1, base.dtype)).any()) for base in bases):
            raise Failure("out was written before the error")

    op_samples.check_samples("out", row, check)


@pytest.mark.parametrize("row", [r for r in OUT_ROWS if len(r.out["returns"]) == 1], ids=lambda row: row.id)
def test_out_is_an_input(row):
    """Either the functional result, or an error and an unchanged input."""

    def check(call):
        call = plain(call)
        want = flat(row.op()(*call.args, **call.kwargs))
        if len(want) != 1:
            return
        for i, argument in enumerate(call.args):
            if not isinstance(argument, cresset.Tensor) or argument.dtype != want[0].dtype or argument.shape != want[0].shape:
                continue
            own = argument.clone()
            args = [*call.args[:i], own, *call.args[i + 1 :]]
            try:
                runner(row, call)([own], args)
            except RuntimeError:
                same("an input after the error", [own], [argument])
            else:
                same(f"out is argument {i}", [own], want, exact=False)

    op_samples.check_samples("out", row, check)


INPLACE_ROWS = [r for r in op_samples.rows() if r.inplace and r.inplace["returns"] and not r.random]


@pytest.mark.parametrize("row", INPLACE_ROWS, ids=lambda row: row.id)
def test_inplace(row):
    def check(call):
        call = plain(call)
        want = flat(row.op()(*call.args, **call.kwargs))[0]
        first = call.args[0]
        if not isinstance(first, cresset.Tensor) or want.shape != first.shape or not cresset.can_cast(want.dtype, first.dtype):
            return
        for what, strides, span in layouts(first.shape):
            view, base, inside = placed(first.shape, strides, span, first.dtype)
            view.copy_(first)
            row.op(row.inplace)(view, *call.args[1:], **call.kwargs)
            same(f"in place, {what}", [view], [want.to(first.dtype)], exact=False)
            check_around(f"in place, {what}", base, inside)

    op_samples.check_samples("inplace", row, check)


@pytest.mark.parametrize(
    "call", [lambda o: cresset.arange(4, out=o), lambda o: cresset.arange(0, 4, 1, out=o), lambda o: cresset.linspace(0, 3, 4, out=o),
             lambda o: cresset.linspace(cresset.tensor(0.0), cresset.tensor(3.0), 4, out=o)],
    ids=["arange", "arange.start", "linspace", "linspace of tensors"],
)  # fmt: skip
def test_a_range_keeps_the_shape_of_its_out(call):
    view, base, inside = placed((2, 2), (4, 2), 7, cresset.float32)
    assert call(view) is view
    assert view.tolist() == [[0.0, 1.0], [2.0, 3.0]] and view.stride() == (4, 2)
    check_around("a range", base, inside)


def test_logspace_keeps_the_shape_of_its_out():
    view, base, inside = placed((2, 2), (4, 2), 7, cresset.float32)
    cresset.logspace(0, 3, 4, 2.0, out=view)
    assert view.tolist() == [[1.0, 2.0], [4.0, 8.0]]
    check_around("logspace", base, inside)
