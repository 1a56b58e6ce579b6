from answers import show
import torch
import torchsde


class SDE(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.mu, self.sigma = torch.nn.Linear(2, 2), torch.nn.Parameter(torch.tensor([0.3, 0.5]))

    def f(self, t, y):
        return self.mu(y)

    def g(self, t, y):
        return self.sigma.expand_as(y)


sde, start, times = SDE(), torch.ones(3, 2), torch.linspace(0, 1, 4)
motion = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(3, 2), entropy=5, levy_area_approximation="space-time")
for method in ("euler", "milstein", "srk"):
    show(method, torchsde.sdeint(sde, start, times, bm=motion, method=method, dt=0.1))
out = torchsde.sdeint_adjoint(sde, start, times, dt=0.1, bm=motion)
out.square().sum().backward()
show("adjoint", [out, sde.sigma.grad])
