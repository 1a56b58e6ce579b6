"""Reading and assigning through every kind of index."""

import numpy as np
import pytest

import cresset as torch

A = np.arange(24).reshape(2, 3, 4)
MASK = np.array([[True, False, True], [False, True, True]])

# Indices that mean the same to NumPy.
INDICES = [
    np.s_[1], np.s_[-1], np.s_[0, 2], np.s_[0, 2, 3], np.s_[:], np.s_[1:], np.s_[:, 1:3], np.s_[..., 0], np.s_[0, ..., 1], np.s_[::2, 1::2],
    np.s_[None], np.s_[:, None, 1], np.s_[None, ..., None], np.s_[()], np.s_[...], np.s_[[0, 1]], np.s_[[1, 0, 1]], np.s_[:, [2, 0]],
    np.s_[[0, 1], [1, 2]], np.s_[[0, 1], :, [1, 2]], np.s_[:, [0, 1], [1, 2]], np.s_[0, [0, 1], 1:], np.s_[MASK], np.s_[MASK, 0],
    np.s_[:, [True, False, True]], np.s_[True], np.s_[False], np.s_[[[0, 1], [1, 0]], [[0, 2], [1, 1]]], np.s_[5:, 0], np.s_[-5:2],
]  # fmt: skip


def ours(index):
    """The index with arrays as tensors."""
    if isinstance(index, tuple):
        return tuple(ours(i) for i in index)
    return torch.from_numpy(index.copy()) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_read(index):
    x = torch.from_numpy(A.copy())
    assert x[ours(index)].tolist() == A[index].tolist()


@pytest.mark.parametrize("index", [i for i in INDICES if i is not np.s_[()]], ids=str)
def test_assign(index):
    want, x = A.copy(), torch.from_numpy(A.copy())
    want[index] = -1
    x[ours(index)] = -1
    assert x.tolist() == want.tolist()
    values = np.arange(want[index].size).reshape(want[index].shape)
    want[index] = values
    x[ours(index)] = torch.from_numpy(values)
    assert x.tolist() == want.tolist()


def test_basic_indices_are_views():
    x = torch.zeros(2, 3)
    for view in (x[0], x[:, 1], x[..., 0], x[None], x[:], x[()]):
        assert view._base is x
    assert x[[0, 1]]._base is None
    x[0][1] = 5
    assert x[0, 1].item() == 5


def test_zero_dimensional_tensors_as_indices():
    x = torch.arange(6).reshape(2, 3)
    assert x[torch.tensor(1)].tolist() == [3, 4, 5]
    assert x[torch.tensor(True)].shape == (1, 2, 3)
    assert x[0, torch.tensor(2)].item() == 2
    assert x[torch.tensor([], dtype=torch.int64)].shape == (0, 3)
    assert x[torch.tensor(0) : torch.tensor(1)].shape == (1, 3)


@pytest.mark.parametrize(
    "index, error, words",
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (-3, IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (1.5, IndexError, r"only integers, slices \(`:`\), ellipsis .* \(got float\)"),
        (slice(0, 2, -1), ValueError, "step must be greater than zero"),
        (slice(0, 1.5), TypeError, "slice indices must be integers"),
        (torch.tensor([1.5]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
        (torch.tensor([5]), IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((torch.tensor([0, 1]), torch.tensor([0, 1, 2])), IndexError, "could not be broadcast together with shapes"),
        (torch.tensor([True, False, True]), IndexError, r"The shape of the mask \[3\] at index 0 does not match"),
        ("a", TypeError, "invalid data type 'str'"),
    ],
)
def test_read_errors(index, error, words):
    with pytest.raises(error, match=words):
        torch.from_numpy(A.copy())[index]


def test_zero_dimensional_tensor_cannot_be_indexed_by_number():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor. Use `tensor.item"):
        torch.tensor(3)[0]
    assert torch.tensor(3)[()].item() == 3
    assert torch.tensor(3)[None].tolist() == [3]


def test_assign_errors_leave_the_tensor_alone():
    x = torch.zeros(2, 3)
    with pytest.raises(RuntimeError, match="The expanded size of the tensor .3. must match the existing size .5."):
        x[0] = torch.ones(5)
    with pytest.raises(TypeError, match="can't assign a str to a torch.FloatTensor"):
        x[0] = "a"
    with pytest.raises(TypeError, match="does not support deleting items"):
        del x[0]
    with pytest.raises(IndexError, match="out of bounds"):
        x[2, 0] = 1
    assert x.tolist() == [[0.0] * 3] * 2


def test_assign_converts_and_broadcasts():
    x = torch.zeros(3, dtype=torch.int64)
    x[0] = 1.7
    x[1:] = torch.tensor([[[4]]])
    assert x.tolist() == [1, 4, 4]


def test_assignment_is_recorded():
    w = torch.ones(3, requires_grad=True)
    x = torch.zeros(3) * w
    x[1] = (w * 5)[2]
    x.sum().backward()
    assert w.grad.tolist() == [0.0, 0.0, 5.0]


def test_length_iteration_membership():
    x = torch.arange(6).reshape(2, 3)
    assert len(x) == 2 and [r.tolist() for r in x] == [[0, 1, 2], [3, 4, 5]]
    assert 3 in x and 9 not in x and torch.tensor(4) in x
    assert [t.item() for t in reversed(torch.arange(3))] == [2, 1, 0]
    with pytest.raises(TypeError, match="len.. of a 0-d tensor"):
        len(torch.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        list(torch.tensor(1))
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in x
