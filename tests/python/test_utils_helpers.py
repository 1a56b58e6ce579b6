"""Helpers that packages import from torch._utils; what is expected is what PyTorch 2.13 gives."""

import pytest

import cresset
from cresset import _utils

TENSORS = [cresset.ones(3), cresset.ones(2, dtype=cresset.int64), cresset.ones(4), cresset.ones(2), cresset.ones(5, dtype=cresset.int64)]


@pytest.mark.parametrize(
    ("limit", "numbers"), [(8, [[3], [4], [2], [2], [5]]), (20, [[3], [4], [2], [2], [5]]), (28, [[3, 4], [2], [2], [5]]), (100, [[3, 4, 2], [2, 5]])]
)
def test_tensors_are_taken_up_to_a_limit(limit, numbers):
    assert [[t.numel() for t in group] for group in _utils._take_tensors(TENSORS, limit)] == numbers


def test_flattened_and_back():
    parts = [cresset.ones(2, 2), cresset.zeros(0), cresset.ones(3)]
    flat = _utils._flatten_dense_tensors(parts)
    assert flat.shape == (7,) and [t.shape for t in _utils._unflatten_dense_tensors(flat, parts)] == [t.shape for t in parts]
    assert _utils._flatten_dense_tensors(parts[:1]).data_ptr() == parts[0].data_ptr()
    assert _utils._unflatten_dense_tensors(flat, parts)[0].data_ptr() == flat.data_ptr()
    with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
        _utils._flatten_dense_tensors([])
    with pytest.raises(RuntimeError, match=r"start \(0\) \+ length \(4\) exceeds dimension size \(2\)"):
        _utils._unflatten_dense_tensors(cresset.ones(2), parts[:1])


def test_reordered():
    mixed = [TENSORS[i] for i in (1, 4, 0, 2, 3)]
    assert [t.numel() for t in _utils._reorder_tensors_as(mixed, TENSORS)] == [3, 2, 4, 2, 5]


@pytest.mark.parametrize(
    ("arguments", "index"),
    [(("cpu", False, True), -1), (("cpu:0", True, True), -1), ((None, True), None), ((3,), 3), (("meta", True), None), ((cresset.device("meta", 2),), 2), (("cuda:1",), 1)],
)
def test_index_of_a_device(arguments, index):
    assert _utils._get_device_index(*arguments) == index


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ("cpu", "Expected a non cpu device, but got: cpu"),
        *((d, f"Expected a torch.device with a specified index or an integer, but got:{d}") for d in (None, "meta", 2.5)),
    ],
)
def test_no_index_of_a_device(device, text):
    with pytest.raises(ValueError) as error:
        _utils._get_device_index(device)
    assert str(error.value) == text


def test_names_and_properties_of_classes():
    class Named:
        name = _utils.classproperty(lambda cls: cls.__name__)

    assert _utils._import_dotted_name("cresset.nn.Linear") is cresset.nn.Linear
    assert Named.name == Named().name == "Named"
