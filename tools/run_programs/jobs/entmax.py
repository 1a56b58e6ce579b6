from answers import show
import torch
from entmax import (
    sparsemax,
    entmax15,
    entmax_bisect,
    sparsemax_bisect,
    normmax_bisect,
    budget_bisect,
    SparsemaxLoss,
    Entmax15Loss,
    EntmaxBisectLoss,
)

x = torch.randn(3, 6, requires_grad=True)
for f in (
    sparsemax,
    entmax15,
    lambda v: entmax_bisect(v, 1.3),
    sparsemax_bisect,
    lambda v: normmax_bisect(v, 2),
    lambda v: budget_bisect(v, 2),
):
    y = f(x)
    show("y", y)
    show("g", torch.autograd.grad((y * torch.arange(6.0)).sum(), x)[0])
for L in (SparsemaxLoss(), Entmax15Loss(), EntmaxBisectLoss(1.3)):
    show(type(L).__name__, L(x, torch.tensor([1, 2, 3])))
