from answers import show
import torch
from torchmin import minimize, minimize_constr, least_squares, Minimizer


def rosen(x):
    return torch.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


x0 = torch.tensor([1.3, 0.7, 0.8, 1.9, 1.2]).double()
for m in ("bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact", "trust-ncg", "trust-exact"):
    r = minimize(rosen, x0, method=m, max_iter=60)
    show(m, [r.x, r.fun, float(r.success), r.nit])
show("constrained", minimize_constr(rosen, x0, max_iter=40, constr=dict(fun=lambda x: x.square().sum(), ub=4.0)).x)
t = torch.linspace(0, 1, 20).double()
r = least_squares(lambda p: p[0] * torch.exp(-p[1] * t) - 2 * torch.exp(-1.5 * t), torch.tensor([1.0, 1.0]).double(), method="trf")
show("lsq", [r.x, r.cost])
p = torch.nn.Parameter(x0.clone())
o = Minimizer([p], method="bfgs", max_iter=50)


def closure():
    o.zero_grad()
    return rosen(p)


show("Minimizer", o.step(closure))
show("p", p)
