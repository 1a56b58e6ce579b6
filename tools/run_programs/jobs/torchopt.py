from answers import show
import torch
import torchopt

net = torch.nn.Linear(4, 1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
optimizer = torchopt.MetaSGD(net, lr=0.1)
meta = torch.nn.Parameter(torch.tensor(1.0))
loss = (meta * net(x) - y).square().mean()
optimizer.step(loss)
outer = (net(x) - y).square().mean()
outer.backward()
show("meta", [outer, meta.grad])
net = torch.nn.Linear(4, 1)
for make in (torchopt.Adam, torchopt.SGD, torchopt.RMSProp, torchopt.AdamW):
    optimizer, losses = make(net.parameters(), lr=0.05), []
    for _ in range(3):
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    show(make.__name__, losses)
model, params = torch.func.functional_call, dict(net.named_parameters())
transform = torchopt.chain(torchopt.clip.clip_grad_norm(1.0), torchopt.adam(lr=0.1))
params = tuple(p.detach().clone().requires_grad_() for p in net.parameters())
state = transform.init(params)
grads = torch.autograd.grad((x @ params[0].T + params[1] - y).square().mean(), params)
updates, state = transform.update(grads, state, inplace=False)
show("functional", torchopt.apply_updates(params, updates, inplace=False))


@torchopt.diff.implicit.custom_root(lambda p, a: p - a.square(), argnums=1)
def solve(p, a):
    return a.detach().square()


a = torch.tensor([1.0, 2.0], requires_grad=True)
solve(torch.zeros(2), a).sum().backward()
show("implicit", a.grad)
