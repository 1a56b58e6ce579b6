from answers import show
import torch
from torchdiffeq import odeint, odeint_adjoint, odeint_event

net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)).double()


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net

    def forward(self, t, y):
        return self.net(y) - 0.1 * y


start, times = torch.tensor([[1.0, 0.0]], dtype=torch.double, requires_grad=True), torch.linspace(0, 1, 5, dtype=torch.double)
for method in ("dopri5", "dopri8", "bosh3", "adaptive_heun", "euler", "midpoint", "rk4", "explicit_adams", "implicit_adams"):
    show(method, odeint(Field(), start, times, method=method))
out = odeint_adjoint(Field(), start, times)
out.square().sum().backward()
show("adjoint", [out, start.grad, [p.grad for p in net.parameters()]])
moment, state = odeint_event(
    lambda t, y: torch.stack([y[1], torch.tensor(-9.8, dtype=torch.double)]), torch.tensor([10.0, 0.0], dtype=torch.double),
    torch.tensor(0.0, dtype=torch.double), event_fn=lambda t, y: y[0],
)  # fmt: skip
show("event", [moment, state[-1]])
