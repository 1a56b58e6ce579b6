"""The type of `out=`: every row does what PyTorch does (out_types.toml), and a refusal leaves all out tensors as they were."""

import tomllib
from pathlib import Path

import cresset
import op_samples
import pytest
from op_samples import Failure, flat

RULES = tomllib.loads((Path(__file__).parent / "out_types.toml").read_text())
TYPES = [getattr(cresset, name) for name in ("bool", "int32", "int64", "float32", "float64", "complex64", "complex128")]
ROWS = [(rule, row) for rule, names in RULES.items() for row in op_samples.rows() if row.id in names and row.out]


def fits(rule, result, out):
    return result == out if rule == "exact" else cresset.can_cast(result, out)


def outs_of(row, given):
    names = [a["name"] for a in row.out["arguments"] if a["write"] and a["name"] not in {b["name"] for b in row["arguments"]}]
    return {names[0]: given} if row.out["arguments"][-1]["type"] == "Tensor[]" else dict(zip(names, given))


@pytest.mark.parametrize("rule, row", ROWS, ids=[row.id for _, row in ROWS])
def test_other_types(rule, row):
    known = {a["name"] for a in row.out["arguments"]}

    def check(call):
        call = call.map(lambda t: t.detach())
        arguments = {k: v for k, v in call.kwargs.items() if k in known}
        results = flat(row.op()(*call.args, **call.kwargs))
        for number, result in enumerate(results):
            for type in TYPES:
                given = [cresset.ones(t.shape, dtype=type if i == number else t.dtype) for i, t in enumerate(results)]
                try:
                    row.op(row.out)(*call.args, **arguments, **outs_of(row, given))
                    raised = None
                except (RuntimeError, TypeError) as error:
                    raised = error
                what = f"result {number} of {result.dtype} into {type}"
                if fits(rule, result.dtype, type) != (raised is None):
                    raise Failure(f"{what}: {'raised ' + str(raised) if raised else 'was not refused'}")
                if raised and (rule == "joined") != isinstance(raised, TypeError):
                    raise Failure(f"{what}: {raised!r}")
                if raised and not all(bool((t == 1).all()) for t in given):
                    raise Failure(f"{what}: an out tensor was written before the error")

    op_samples.check_samples("out types", row, check)


X = cresset.arange(6.0).view(2, 3)


def test_words():
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        cresset.mm(X, X.T, out=cresset.zeros(2, 2, dtype=cresset.float64))
    with pytest.raises(TypeError, match=r"torch.cat\(\): input types can't be cast to the desired output type Long"):
        cresset.stack([X, X], out=cresset.zeros(2, 2, 3, dtype=cresset.int64))
    with pytest.raises(RuntimeError, match="all only supports bool tensor for result, got: Float"):
        cresset.all(X, 0, out=cresset.zeros(3))
    assert cresset.all(X, 0, out=cresset.zeros(3, dtype=cresset.uint8)).tolist() == [0, 1, 1]


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "nansum", "mean"])
def test_type_of_out_is_the_argument(name):
    """Without dtype these compute in the type of out."""
    x, function = cresset.tensor([[1.5, 2.5], [3.5, -0.5]]), getattr(cresset, name)
    for type in (cresset.float64, cresset.float16, *([] if name == "mean" else [cresset.int64])):
        want = function(x, 0, dtype=type)
        assert cresset.equal(function(x, 0, out=cresset.empty(0, dtype=type)), want)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float instead"):
        function(x, 0, dtype=cresset.float64, out=cresset.empty(0))


def test_factories():
    """The type beside out= must be out's."""
    for call in (lambda **k: cresset.zeros(3, **k), lambda **k: cresset.arange(3, **k), lambda **k: cresset.linspace(0, 1, 3, **k)):
        out = cresset.ones(3, dtype=cresset.int32)
        with pytest.raises(RuntimeError, match=r"dtype Float does not match dtype of out parameter \(Int\)"):
            call(dtype=cresset.float32, out=out)
        assert out.tolist() == [1, 1, 1]
        assert call(dtype=cresset.int32, out=out) is out
    with pytest.raises(RuntimeError, match=r"device type meta does not match device type of out parameter \(cpu\)"):
        cresset.zeros(3, device="meta", out=cresset.ones(3))
    for call in (lambda **k: cresset.ones(3, **k), lambda **k: cresset.arange(3, **k), lambda **k: cresset.range(0, 2, **k)):
        out = cresset.full((3,), 5.0)
        with pytest.raises(RuntimeError, match=r"layout sparse_coo does not match layout of out parameter \(strided\)"):
            call(layout=cresset.sparse_coo, out=out)
        assert out.tolist() == [5, 5, 5] and call(layout=cresset.strided, requires_grad=True, out=out).requires_grad
    with pytest.raises(RuntimeError, match=r"device type meta does not match device type of out parameter \(cpu\)"):
        cresset.range(0, 2, device="meta", out=cresset.ones(3))


def test_lists():
    x = cresset.arange(10.0).view(5, 2)
    for call in (lambda **k: cresset.split_copy(x, 3, **k), lambda **k: cresset.split_with_sizes_copy(x, [3, 2], **k),
                 lambda **k: cresset.unbind_copy(x, 1, **k)):  # fmt: skip
        want = call()
        outs = [cresset.empty(0) for _ in want]
        assert call(out=outs) is None and all(cresset.equal(a, b) for a, b in zip(outs, want))
        ready = tuple(cresset.zeros(t.shape) for t in want)
        call(out=ready)
        assert all(cresset.equal(a, b) for a, b in zip(ready, want))
        with pytest.raises(RuntimeError, match="expected an out= argument of size 2, got size 1"):
            call(out=outs[:1])
        wrong = [cresset.zeros(want[0].shape), cresset.zeros(want[1].shape, dtype=cresset.float64)]
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
            call(out=wrong)
        assert not wrong[0].any()
        with pytest.raises(TypeError, match="argument 'out' must be tuple of Tensors, not Tensor"):
            call(out=outs[0])


@pytest.mark.parametrize("call", [
    lambda a, out: cresset.addmm(a, a, a, out=out), lambda a, out: cresset.cumsum(a, 0, out=out), lambda a, out: cresset.renorm(a, 2, 0, 1, out=out),
    lambda a, out: cresset.index_add(a, 0, cresset.tensor([0]), a[:1].clone(), out=out), lambda a, out: cresset.msort(a, out=out),
    lambda a, out: cresset.scatter(a, 0, cresset.zeros(1, 1, dtype=cresset.int64), 1.0, out=out),
])  # fmt: skip
def test_parts_of_inputs(call):
    """out may be an input as a whole, but not share a part with it."""
    memory = cresset.arange(10.0)
    a, shifted = memory[:9].view(3, 3), memory[1:].view(3, 3)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single memory location"):
        call(a, shifted)
    assert memory.tolist() == list(range(10))
    want = call(a.clone(), None)
    assert cresset.equal(call(a, a), want)
