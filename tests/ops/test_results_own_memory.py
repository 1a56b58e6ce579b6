"""Results of functions that are made of several operators are no views of what these made in between, as with PyTorch 2.13: they can be detached in
place, and changing them in place is no change of a view."""

import cresset as torch
import cresset.nn.functional as F
import pytest

M = torch.arange(16.0).reshape(4, 4).requires_grad_()
V = torch.arange(4.0).requires_grad_()
B = torch.arange(48.0).reshape(3, 4, 4).requires_grad_()
X = torch.arange(96.0).reshape(2, 3, 4, 4).requires_grad_()
IMAGES = torch.ones(2, 4, 3, 3, requires_grad=True)

CALLS = {
    "matmul of batches": (lambda: X @ X, (2, 3, 4, 4)),
    "matmul of a batch and a matrix": (lambda: B @ M, (3, 4, 4)),
    "matmul of a matrix and a batch": (lambda: M @ X, (2, 3, 4, 4)),
    "matmul of a batch and a vector": (lambda: X @ V, (2, 3, 4)),
    "matmul of a vector and a batch": (lambda: V @ X, (2, 3, 4)),
    "matmul of a vector and a matrix": (lambda: V @ M, (4,)),
    "linear without bias": (lambda: F.linear(B, M), (3, 4, 4)),
    "linear of a vector": (lambda: F.linear(V, M), (4,)),
    "einsum of one operand": (lambda: torch.einsum("ij->i", M), (4,)),
    "kron": (lambda: torch.kron(M, M), (16, 16)),
    "attention": (lambda: F.scaled_dot_product_attention(X, X, X, attn_mask=M.detach()), (2, 3, 4, 4)),
    "group_norm": (lambda: F.group_norm(IMAGES, 2), (2, 4, 3, 3)),
    "LSTM": (lambda: torch.nn.LSTM(4, 4)(B)[0], (3, 4, 4)),
    "GRU": (lambda: torch.nn.GRU(4, 4)(B)[0], (3, 4, 4)),
    "combinations": (lambda: torch.combinations(V), (6, 2)),
    "quantile": (lambda: torch.quantile(M, 0.5), ()),
    "quantile of rows, dimension kept": (lambda: torch.quantile(M, 0.5, dim=1, keepdim=True), (4, 1)),
}


@pytest.mark.parametrize("what", CALLS)
def test_result_is_no_view(what):
    call, size = CALLS[what]
    result = call()
    assert result.shape == size and result.requires_grad and not result._is_view()
    assert not result.detach_().requires_grad


def test_values_and_gradients_are_those_of_loops():
    left, right = B.detach().double() / 48, M.detach().double() / 16
    expected = torch.tensor([[[sum(left[n, i, k].item() * right[k, j].item() for k in range(4)) for j in range(4)] for i in range(4)] for n in range(3)], dtype=torch.float64)
    torch.testing.assert_close(left @ right, expected)
    torch.testing.assert_close(torch.vmap(lambda a, b: a @ b, in_dims=(0, 1))(left, torch.stack([right] * 3, 1)), expected)
    torch.testing.assert_close(torch.vmap(lambda a: a @ torch.stack([right, right]))(left), torch.stack([expected, expected], 1))
    torch.autograd.gradcheck(torch.matmul, (left.requires_grad_(), right.requires_grad_()))
    torch.autograd.gradcheck(lambda a: torch.quantile(a, 0.3, dim=1), (torch.tensor([[3.0, 1.0, 2.0]], dtype=torch.float64, requires_grad=True),))
