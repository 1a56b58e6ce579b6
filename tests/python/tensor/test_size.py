"""torch.Size as a tuple: PyTorch 2.13's answers."""

import cresset as torch
import pytest

ONE = torch.Size([1])


@pytest.mark.parametrize(
    "made, shown",
    [
        (lambda: (3,) + ONE, "torch.Size([3, 1])"),
        (lambda: () + ONE, "torch.Size([1])"),
        (lambda: ONE + (3,), "torch.Size([1, 3])"),
        (lambda: sum([ONE, ONE], ()), "torch.Size([1, 1])"),
        (lambda: 2 * ONE, "torch.Size([1, 1])"),
        (lambda: ONE * 2, "torch.Size([1, 1])"),
        (lambda: torch.Size([True, False]), "torch.Size([1, 0])"),
        (lambda: torch.Size([4, 5, 6])[1:], "torch.Size([5, 6])"),
    ],
)
def test_shown(made, shown):
    assert repr(made()).replace("cresset", "torch") == shown


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ("a",) + ONE, r"torch.Size\(\) takes an iterable of 'int' \(item 0 is 'str'\)"),
        (lambda: ONE + ("a",), r"torch.Size\(\) takes an iterable of 'int' \(item 1 is 'str'\)"),
        (lambda: ONE + [1], r"can only concatenate tuple \(not list\) to torch.Size"),
        (lambda: [1] + ONE, "can only concatenate list"),
    ],
)
def test_refused(call, words):
    with pytest.raises(TypeError, match=words):
        call()
