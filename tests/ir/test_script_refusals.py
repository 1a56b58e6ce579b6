"""What scripts refuse, in PyTorch's words; and small things that they take."""

from typing import Any, List, Optional, Tuple

import pytest

import cresset
from cresset import Tensor, jit, nn, rand, tensor, zeros

REFUSED = [
    ("a slice deleted", "def f(x: List[int]):\n  del x[1:3]\n", "del statements only support deletion at a single index"),
    ("two types of lists", "def f(x):\n  return [[x]] + [[1]]\n", "previously matched to type"),
    ("a list for a number", "def f():\n  return torch.jit.annotate(int, [x for x in [1, 2]])\n", "Expected an annotation of type List but got int"),
    ("a star alone", "def f():\n  for *a in [1, 2]:\n    pass\n", "A Starred expression may only appear on the lhs within the presence of another"),
    ("a tensor for sizes", "def f(x, dim):\n  return x.sum(dim)\n",
     "instead found type 'Tensor .inferred.'.\n *Inferred the value for argument 'dim' to be of type 'Tensor' because it was not annotated with an explicit type."),
    ("an annotated tensor for sizes", "def f(x, dim: Tensor):\n  return x.sum(dim)\n", "but instead found type 'Tensor'."),
    ("constructors by several lists", "def f():\n  return torch.LongTensor(1, [2])\n", "multiple positional arguments that were not all integers"),
    ("constructors by name", "def f():\n  return torch.LongTensor(hello='1')\n", "hello"),
]  # fmt: skip


@pytest.mark.parametrize("text, message", [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused(text, message):
    with pytest.raises(RuntimeError, match=message):
        jit.CompilationUnit(text)


def test_first_assignments_in_branches():
    class Late:
        def __init__(self, x):
            if 1 == 1:
                self.attr = x

    with pytest.raises(RuntimeError, match="First assignment cannot be in a control-flow block"):
        jit.script(Late)


@jit.script
def plain(x):
    return x


@jit.script
def annotated(x: Tensor):
    return x


@jit.script
def of_none():
    return cresset.tensor([None])


@jit.script
def sorted_tensors(x: List[Tensor]):
    x.sort()
    return x


@jit.script
def sorted_things(x: List[Any]):
    x.sort()
    return x


RAISED = [
    (plain, ("1",), "Expected a value of type 'Tensor .inferred.' for argument 'x'.*\nInferred 'x' to be of type 'Tensor' because it was not"),
    (annotated, ("1",), "Expected a value of type 'Tensor' for argument 'x' but instead found type 'str'.\nPosition: 0"),
    (of_none, (), "Input must be of ints, floats, or bools, got NoneType"),
    (sorted_tensors, ([zeros(2), zeros(2)],), "Boolean value of Tensor with more than one value is ambiguous"),
    (sorted_things, ([(1, (2, 3)), (2, ("a", "b"))],), "Only values of same type can be compared. Found Tuple.int, Tuple.int, int.. and Tuple.int, Tuple.str, str.."),
    (sorted_things, ([1, "a"],), "Only values of same type can be compared. Found int and str"),
]  # fmt: skip


@pytest.mark.parametrize("function, arguments, message", RAISED, ids=range(len(RAISED)))
def test_raised(function, arguments, message):
    with pytest.raises(RuntimeError, match=message):
        function(*arguments)


def test_sorted_things():
    assert sorted_things([(1, 2), (0, 3)]) == [(0, 3), (1, 2)]
    assert [t.item() for t in sorted_tensors([tensor(2), tensor(1)])] == [1, 2]


def test_values_of_a_wrong_type_are_in_no_list():
    assert 3 in jit.script([1, 3])
    with pytest.raises(TypeError):
        "a" in jit.script([1, 3])  # noqa: B015


def test_modules_that_are_no_containers():
    class Plain(nn.Module):
        def forward(self, x):
            return x

    with pytest.raises(TypeError, match="'Plain' object is not iterable"):
        list(jit.script(Plain()))


def test_tensors_are_printed_with_their_elements(capfd):
    @jit.script
    def shown(x):
        print(x, [x], 1)
        return str(x) + "{}".format(x)  # noqa: UP032

    text = " 0  1\n 2  3\n[ CPUFloatType{2,2} ]"
    assert shown(cresset.arange(4.0).view(2, 2)) == text * 2
    assert capfd.readouterr().out == f"{text} [{text}] 1\n"


# ---- what scripts take


def gradients(x, y):
    # type: (Tensor, Tensor) -> List[Optional[Tensor]]
    z = x + 2 * y + x * y
    return cresset.autograd.grad((z.sum(),), (x, y))


def weighted(x, y):
    # type: (Tensor, Tensor) -> List[Optional[Tensor]]
    given = jit.annotate(List[Optional[Tensor]], [cresset.full((2, 2), 3.0)])
    return cresset.autograd.grad((x * y,), (x, y), given)


def unused(x, y):
    # type: (Tensor, Tensor) -> List[Optional[Tensor]]
    return cresset.autograd.grad(((2 * y).sum(),), (x, y), allow_unused=True)


@pytest.mark.parametrize("function", [gradients, weighted, unused])
def test_gradients_in_scripts(function):
    x, y = rand(2, 2).requires_grad_(), rand(2, 2).requires_grad_()
    for a, b in zip(jit.script(function)(x, y), function(x, y), strict=True):
        assert a is b is None or a.equal(b)


def test_backward_in_scripts():
    @jit.script
    def backward(x):
        cresset.autograd.backward([(x * x).sum()], [cresset.tensor(2.0)])

    x = rand(2, 2).requires_grad_()
    backward(x)
    assert x.grad.equal(4 * x.detach())


def test_einsum_of_lists_of_indices():
    @jit.script
    def product(x, y):
        return cresset.einsum(x, [0, 30], y, [30, 2], [2, 0])

    @jit.script
    def implicit(x, y):
        return cresset.einsum(x, [0, 1], y, [1, 2])

    x, y = rand(2, 3), rand(3, 4)
    assert "aten::einsum" in str(product.graph)
    assert cresset.allclose(product(x, y), (x @ y).T) and cresset.allclose(implicit(x, y), x @ y)


def test_constructors_from_before_dtypes():
    @jit.script
    def made():
        return cresset.BoolTensor([2, 0]), cresset.DoubleTensor([1.5]), cresset.LongTensor((3, 4)), cresset.HalfTensor(), cresset.IntTensor(2, 3).shape

    b, d, i, h, shape = made()
    assert b.dtype is cresset.bool and b.tolist() == [True, False]
    assert d.dtype is cresset.float64 and d.tolist() == [1.5] and i.tolist() == [3, 4]
    assert h.dtype is cresset.float16 and h.shape == (0,) and list(shape) == [2, 3]


@jit.ignore
def last(x, *more):
    return more[-1] if more else x


def test_ignored_functions_with_any_number_of_arguments():
    @jit.script
    def calls(x, y, z):
        return last(x), last(x, y), last(x, y, z)

    x, y, z = rand(1), rand(1), rand(1)
    for a, b in zip(calls(x, y, z), (x, y, z)):
        assert a is b or a.equal(b)


def test_tuples_of_lists_for_lists_of_lists():
    @jit.script
    def product(a, b, dims: Tuple[List[int], List[int]]):
        return cresset.tensordot(a, b, dims=dims)

    a, b = rand(3, 4, 5), rand(4, 3, 2)
    assert cresset.allclose(product(a, b, ([1, 0], [0, 1])), cresset.tensordot(a, b, dims=([1, 0], [0, 1])))


# ---- and a few more words


def test_enumerate_needs_an_argument():
    with pytest.raises(RuntimeError, match="enumerate expected at least 1 arguments, got 0"):
        jit.CompilationUnit("def f():\n  for _ in enumerate():\n    pass\n")
    with pytest.raises(RuntimeError, match="enumerate expected at most 2 arguments, got 3"):
        jit.CompilationUnit("def f(x: List[int]):\n  for _ in enumerate(x, 1, 2):\n    pass\n")


class Plain:
    def __init__(self):
        self.num = 99


def test_objects_that_do_not_add():
    def added():
        a = Plain()
        a += Plain()
        return a

    with pytest.raises(RuntimeError, match="Cannot emit inplace op on .*Plain since it does not define an __iadd__ or __add__ method"):
        jit.script(added)


def test_lists_of_tensors_that_are_not_of_one_element():
    @jit.script
    def equal(x: List[Tensor], y: List[Tensor]):
        return x == y

    assert equal([tensor(1)], [tensor(1)]) and not equal([tensor(1)], [tensor(2)])
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        equal([zeros(2)], [zeros(2)])


def test_counts_of_a_wrong_type():
    assert jit.script([1, 3, 3]).count(3) == 2
    with pytest.raises(TypeError):
        jit.script([1]).count("a")


def test_constants_that_are_none():
    class Wrong(jit.ScriptModule):
        __constants__ = ["invalid"]

        def __init__(self, value):
            super().__init__()
            self.invalid = value

    with pytest.raises(TypeError, match="Linear' object in attribute 'Wrong.invalid' is not a valid constant"):
        Wrong([nn.Linear(3, 4)])
    with pytest.raises(TypeError, match="'dict' object in attribute 'Wrong.invalid' is not a valid constant"):
        Wrong((3, (4, {})))


class Unused(nn.Module):
    @jit.unused
    @cresset.no_grad()
    def fn(self, x):
        # type: (Tensor) -> int
        return next(x)  # never compiled

    def forward(self, x):
        if x.dim() > 5:
            return self.fn(x)
        return 1


def test_unused_methods_below_other_decorators():
    assert jit.script(Unused())(zeros(2)) == 1


def test_random_slopes_of_a_number():
    for x in (tensor(-2.0), tensor(2.0), rand(3) - 0.5):
        y = nn.functional.rrelu(x, training=True)
        assert y.shape == x.shape and ((y == x) | (x <= 0)).all()
        assert jit.script(nn.RReLU())(x).shape == x.shape
