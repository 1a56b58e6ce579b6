"""Lists of scripts by the type of their elements: which have an order, and which make a tensor. Expected: PyTorch 2.13."""

from typing import Any, List, Optional

import pytest

import cresset as torch


def words_of(function, *args):
    with pytest.raises(RuntimeError) as error:
        torch.jit.script(function)(*args)
    return str(error.value)


NOT_SORTABLE = (
    "Only list of Tensors, ints, floats, bools, strs, a User Defined Class that defines the __lt__ compare method or Tuples of aforementioned types "
    "can be sorted, got list of {}"
)
NOT_IN_TUPLES = (
    "Contained elements in {} are not sortable. Only Int, Bool, Float, String, Tensor, a User Defined Class with __lt__ method defined or Tuples of "
    "aforementioned types can be sorted."
)


def dicts_in_tuples():
    t = [({1: 2}, {2: 3})]
    t.sort()
    return t


def lists_in_tuples():
    return sorted([(2, [1]), (1, [2])])


def lists():
    return sorted([[1], [0]])


def dicts():
    return sorted([{1: 2}])


def any_ints():
    a: List[Any] = [1, 2]
    return sorted(a)


def optional_ints():
    a: List[Optional[int]] = [2, 1]
    return sorted(a)


def any_mixed():
    a: List[Any] = [1, "a"]
    return sorted(a)


def optional_mixed():
    a: List[Optional[int]] = [1, None]
    return sorted(a)


@pytest.mark.parametrize("function, words", [
    (dicts_in_tuples, NOT_IN_TUPLES.format("(Dict(int, int), Dict(int, int))")), (lists_in_tuples, NOT_IN_TUPLES.format("(int, int[])")),
    (lists, NOT_SORTABLE.format("List[int]")), (dicts, NOT_SORTABLE.format("Dict[int, int]")), (any_ints, NOT_SORTABLE.format("int")),
    (optional_ints, NOT_SORTABLE.format("int")), (any_mixed, "Only values of same type can be compared. Found int and str"),
    (optional_mixed, "Only values of same type can be compared. Found int and NoneType"),
])  # fmt: skip
def test_lists_without_an_order(function, words):
    assert words in words_of(function)


def no_lists():
    a: List[List[int]] = []
    return sorted(a)


def tuples():
    return sorted([(2, "a"), (1, "b")])


def test_lists_with_one():
    assert torch.jit.script(no_lists)() == [] and torch.jit.script(tuples)() == [(1, "b"), (2, "a")]


def no_ints():
    a: List[int] = []
    return torch.tensor(a)


def no_rows():
    a: List[List[List[int]]] = []
    return torch.tensor(a)


def no_flags():
    a: List[bool] = []
    return torch.as_tensor(a)


def no_floats():
    a: List[float] = []
    return torch.tensor(a)


@pytest.mark.parametrize("function, dtype", [(no_ints, torch.int64), (no_rows, torch.int64), (no_flags, torch.bool), (no_floats, torch.float32)])
def test_empty_lists_have_their_type(function, dtype):
    t = torch.jit.script(function)()
    assert t.dtype == dtype and t.shape == (0,)


EMPTY = (
    "Input must be of ints, floats, or bools, got Tensor\nEmpty lists default to List[Tensor]. Add a variable annotation to the assignment to create an "
    "empty list of another type (torch.jit.annotate(List[T, []]) where T is the type of elements in the list for Python 2)"
)


def nothing():
    return torch.tensor([])


def nothing_as():
    return torch.as_tensor([])


def nothing_typed():
    return torch.tensor([], dtype=torch.int32)


def nothing_in_a_row():
    return torch.tensor([[]])


def of_tensors():
    return torch.tensor([torch.tensor(1), torch.tensor(2)])


def of_anything():
    a: List[Any] = [1, 2]
    return torch.tensor(a)


def of_flags_and_ints():
    return torch.tensor([1, True])


@pytest.mark.parametrize("function, words", [
    (nothing, EMPTY), (nothing_as, EMPTY), (nothing_typed, EMPTY), (nothing_in_a_row, "Input must be of ints, floats, or bools, got Tensor"),
    (of_tensors, "Input must be of ints, floats, or bools, got Tensor"), (of_anything, "Input must be of ints, floats, or bools, got Any"),
    (of_flags_and_ints, "Input must be of ints, floats, or bools, got Union[int, bool]"),
])  # fmt: skip
def test_lists_of_what_is_no_number(function, words):
    assert words in words_of(function)


def of_sizes(x: torch.Tensor):
    return torch.tensor([x.size(0), 2.5])


def test_two_types_are_not_cut_to_the_first():
    """Where PyTorch's words are of its insides, those of the other lists."""
    assert "Input must be of ints, floats, or bools, got Union[" in words_of(of_sizes, torch.ones(3))
