from answers import show
import higher
import torch

net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
x, y = torch.randn(10, 3), torch.randn(10, 1)
for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.Adam(p, lr=0.05)):
    net.zero_grad()
    optimizer = make(net.parameters())
    with higher.innerloop_ctx(net, optimizer, copy_initial_weights=False) as (inner, steps):
        for _ in range(3):
            steps.step((inner(x) - y).square().mean())
        outer = (inner(x) - y).abs().mean()
        outer.backward()
    show(type(optimizer).__name__, [outer, [p.grad for p in net.parameters()]])
functional = higher.patch.make_functional(net)
show("functional", functional(x, params=[p * 2 for p in net.parameters()]))
