"""Older names of functions: range, _refs, _VF and the dispatcher's from Python."""

import cresset as torch
import pytest


@pytest.mark.parametrize(
    "arguments, options, expected",
    [
        ((0, 1), {}, [0.0, 1.0]), ((1, 4, 0.5), {}, [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]), ((4, 1, -1), {}, [4.0, 3.0, 2.0, 1.0]),
        ((), {"start": 1, "end": 3}, [1.0, 2.0, 3.0]), ((0.5, 3), {"dtype": torch.int64}, [0, 1, 2, 3]), ((0, 10, 3), {}, [0.0, 3.0, 6.0, 9.0]),
    ],
)  # fmt: skip
def test_range(arguments, options, expected):
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        made = torch.range(*arguments, **options)
    assert made.tolist() == expected and made.dtype == options.get("dtype", torch.float32)
    out = torch.empty(0, dtype=made.dtype)
    with pytest.warns(UserWarning):
        assert torch.range(*arguments, **{k: v for k, v in options.items() if k != "dtype"}, out=out) is out
    assert torch.equal(out, made)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arguments, words", [((1, 0), "inconsistent with step sign"), ((0, 1, 0), "step must be nonzero"), ((0, float("inf")), "unsupported range: 0 -> inf")])
def test_ranges_that_are_refused(arguments, words):
    with pytest.raises(RuntimeError, match=words):
        torch.range(*arguments)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        torch.ops.aten.range.step(0, 4, 0.25, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        torch.range(0, float("inf"), dtype=torch.int64)
    with pytest.raises(NotImplementedError, match="\"range_cpu\" not implemented for 'Bool'"):
        torch.ops.aten.range.step(0, 3, 1, dtype=torch.bool)


def test_references_are_the_operators():
    x = torch.tensor([1.0, 4.0])
    assert torch._refs.sum(x) == 5 and torch._refs.nn.functional.relu(-x).sum() == 0 and torch._refs.special.erf(x).shape == (2,)
    assert torch._refs.linalg.norm(x) == x.norm() and torch._refs.view(x, (2, 1)).shape == (2, 1) and torch._refs._conversions.half(x).dtype == torch.float16
    assert torch.equal(torch._refs.T(x.view(1, 2)), x.view(2, 1)) and torch._VF.add(x, x).sum() == 10
    y = torch.ones(2, 3)
    for name, sizes in (("reshape", (3, 2)), ("view", (3, 2)), ("permute", (1, 0)), ("expand", (4, 2, 3)), ("repeat", (1, 2)), ("reshape", (-1,))):
        function = getattr(torch._refs, name)
        assert function(y, *sizes).shape == function(y, sizes).shape == getattr(y, name)(*sizes).shape
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        torch._refs.nothing


def test_calls_through_the_dispatcher():
    sin = torch._C._dispatch_find_schema_or_throw("aten::sin", "")
    x = torch.ones(2)
    assert torch.equal(torch._C._dispatch_call_boxed(sin, x), x.sin())
    assert not torch._C._dispatch_isTensorSubclassLike(x) and torch.DispatchKey.CPU is torch._C.DispatchKey.CPU
    seen = []
    torch.vmap(lambda a: seen.append(torch._C._dispatch_isTensorSubclassLike(a)) or a)(x)
    assert seen == [True]
    strided = torch.ones(2, 3).t().requires_grad_()
    copy = torch._dynamo.utils.clone_input(strided)
    assert copy.stride() == strided.stride() and copy.is_leaf and copy.requires_grad and torch.equal(copy, strided)


def test_split_by_the_names_of_its_python_form():
    x = torch.arange(6).reshape(2, 3)
    for parts in (torch.split(x, split_size_or_sections=2, dim=1), torch.split(tensor=x, split_size_or_sections=2, dim=-1), torch.split(x, 2, 1)):
        assert [p.tolist() for p in parts] == [[[0, 1], [3, 4]], [[2], [5]]]
    assert [p.tolist() for p in torch.functional.split(x, split_size_or_sections=[1, 1])] == [[[0, 1, 2]], [[3, 4, 5]]]
    assert x.split(split_size=1)[1].tolist() == [[3, 4, 5]]
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'split_size'"):
        torch.split(x, split_size=1)
    assert isinstance(torch.split(x, 1), tuple) and torch.split(x, 1)[0]._is_view()
    scripted = torch.jit.trace(lambda t: torch.split(t, split_size_or_sections=[1, 2], dim=1), x)
    assert [p.tolist() for p in scripted(x + 1)] == [[[1], [4]], [[2, 3], [5, 6]]]
