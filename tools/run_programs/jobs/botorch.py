from answers import show
import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound, qExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood

x = torch.rand(10, 2, dtype=torch.double)
y = (1 - (x - 0.4).norm(dim=-1, keepdim=True)) + 0.01 * torch.randn(10, 1, dtype=torch.double)
gp = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
posterior = gp.posterior(torch.full((3, 2), 0.3, dtype=torch.double))
show("posterior", [posterior.mean, posterior.variance])
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
for name, acquisition in {"ei": LogExpectedImprovement(gp, y.max()), "ucb": UpperConfidenceBound(gp, beta=0.1)}.items():
    torch.manual_seed(0)
    candidate, value = optimize_acqf(acquisition, bounds=bounds, q=1, num_restarts=2, raw_samples=16)
    show(name, [candidate, value])
sampler = SobolQMCNormalSampler(torch.Size([16]), seed=1)
show("qei", qExpectedImprovement(gp, y.max(), sampler=sampler)(torch.full((1, 2, 2), 0.5, dtype=torch.double)))
