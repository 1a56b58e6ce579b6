from answers import show
import torch
from torch import nn


def train(net, opt, steps=5):
    x = torch.randn(8, 4)
    for _ in range(steps):

        def closure():
            opt.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            return loss

        opt.step(closure)
    return (net(x) ** 2).mean()


import torch_optimizer as O

NAMES = """
    A2GradExp A2GradInc A2GradUni AccSGD AdaBelief AdaBound AdaMod Adafactor Adahessian AdamP AggMo Apollo DiffGrad LARS Lamb Lookahead MADGRAD NovoGrad
    PID QHAdam QHM RAdam Ranger RangerQH RangerVA SGDP SGDW SWATS Shampoo Yogi
"""
for n in NAMES.split():
    if n in ("Adahessian", "Lookahead"):
        continue
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
    show(n, train(net, getattr(O, n)(net.parameters())))
torch.manual_seed(0)
net = nn.Linear(4, 1)
o = O.Lookahead(O.Yogi(net.parameters(), lr=0.1))
show("lookahead", train(net, o))
