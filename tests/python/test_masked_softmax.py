"""torch._masked_softmax: values and refusals are PyTorch 2.13's."""

import pytest

import cresset as torch

NAN = float("nan")
X = torch.arange(12.0).view(1, 1, 3, 4)
MASK = torch.tensor([[1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=torch.bool).view(1, 1, 3, 4)


def test_values_and_gradients():
    expected = torch.tensor([[0.0, 0.2689, 0.7311, 0.0], [NAN] * 4, [0.0321, 0.0871, 0.2369, 0.6439]])
    for made in (torch._masked_softmax(X, MASK), torch._masked_softmax(X, MASK, 3, 2), torch.ops.aten._masked_softmax(X, MASK, -1)):
        assert torch.allclose(made[0, 0], expected, atol=1e-4, equal_nan=True)
    assert torch.allclose(torch._masked_softmax(X, MASK, 2)[0, 0, :, 1], torch.tensor([0.0003, 0.0, 0.9997]), atol=1e-4)
    x = X.clone().requires_grad_()
    torch._masked_softmax(x, MASK)[0, 0, 2, 3].backward()
    assert bool((x.grad[MASK] == 0).all()) and x.grad[0, 0, 2, 3] > 0


def test_masks_of_lengths():
    y, first = torch.zeros(2, 1, 2, 2), torch.tensor([[True, False], [False, False]])
    assert torch._masked_softmax(y, first, 3, 0)[1, 0].tolist() == [[0, 1], [0.5, 0.5]]
    assert torch._masked_softmax(y, first, 3, 1)[:, 0].tolist() == [[[0, 1], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]]


@pytest.mark.parametrize(
    "args, error, words",
    [
        ((X, MASK.float()), RuntimeError, "Mask should be a boolean tensor"), ((X, MASK[0]), RuntimeError, "For mask_type == 2 mask shape should match input shape"),
        ((X, MASK[0, 0], 3, 0), RuntimeError, r"For mask_type == 0 mask shape should be \(L, L\)"),
        ((X, MASK[0, 0, :1], 3, 1), RuntimeError, r"For mask_type == 1 mask shape should be \(B, L\)"),
        ((X.int(), MASK), NotImplementedError, '"masked_softmax" not implemented for \'Int\''),
    ],
)  # fmt: skip
def test_refusals(args, error, words):
    with pytest.raises(error, match=words):
        torch._masked_softmax(*args)
