from answers import show
import torch
from torch import nn
from backpack import backpack, extend, extensions as ex

torch.manual_seed(0)
X, y = torch.randn(6, 1, 8, 8), torch.randint(0, 3, (6,))
model = extend(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 7), nn.Sigmoid(), nn.Linear(7, 3)))
loss_f = extend(nn.CrossEntropyLoss())
for e in (ex.BatchGrad, ex.BatchL2Grad, ex.Variance, ex.SumGradSquared, ex.DiagGGNExact, ex.DiagGGNMC, ex.KFAC, ex.KFLR, ex.BatchDiagGGNExact, ex.SqrtGGNExact):
    try:
        torch.manual_seed(1)
        model.zero_grad()
        e_ = e()
        with backpack(e_):
            loss_f(model(X), y).backward()
        out = []
        for n, p in model.named_parameters():
            v = getattr(p, e_.savefield)
            out += list(v) if isinstance(v, (list, tuple)) else [v]
        show(e.__name__, out)
    except Exception as error:
        show(e.__name__, f"{type(error).__name__}: {error}"[:200])
lin = extend(nn.Sequential(nn.Linear(5, 4), nn.Sigmoid(), nn.Linear(4, 3)))
for e in (ex.KFRA, ex.HMP, ex.GGNMP, ex.DiagHessian, ex.BatchDiagHessian, ex.PCHMP):
    try:
        e_ = e()
        with backpack(e_):
            loss_f(lin(torch.linspace(-1, 1, 30).view(6, 5)), y).backward()
        v = getattr(lin[0].weight, e_.savefield)
        show(e.__name__, v(torch.ones(2, *lin[0].weight.shape)) if callable(v) else v)
    except Exception as error:
        show(e.__name__, f"{type(error).__name__}: {error}"[:200])
