from answers import show
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from laplace import Laplace

torch.manual_seed(0)
X, y = torch.randn(30, 3), torch.randint(0, 2, (30,))
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
o = torch.optim.Adam(model.parameters(), 0.05)
for _ in range(20):
    o.zero_grad()
    nn.functional.cross_entropy(model(X), y).backward()
    o.step()
loader = DataLoader(TensorDataset(X, y), batch_size=10)
for subset, structure in (("all", "full"), ("all", "diag"), ("all", "kron"), ("last_layer", "full"), ("last_layer", "diag"), ("last_layer", "kron")):
    for backend in (None,):
        try:
            la = Laplace(model, "classification", subset_of_weights=subset, hessian_structure=structure)
            la.fit(loader)
            show(f"{subset} {structure}", [la.log_marginal_likelihood(), la(X[:3]), la(X[:3], link_approx="mc") if structure != "x" else 0])
            la.optimize_prior_precision(method="marglik", n_steps=10)
            show(f"{subset} {structure} prior", la.prior_precision)
            torch.manual_seed(4)
            show(f"{subset} {structure} samples", la.sample(3))
        except Exception as error:
            show(f"{subset} {structure}", f"{type(error).__name__}: {error}"[:250])
