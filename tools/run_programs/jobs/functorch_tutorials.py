from answers import show
import torch
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp, vmap

net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
params, x, y = dict(net.named_parameters()), torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])


def loss(params, x, y):
    return torch.nn.functional.cross_entropy(functional_call(net, params, (x[None],)), y[None])


show("per sample", vmap(grad(loss), (None, 0, 0))(params, x, y))
show("jacobians", [vmap(jacrev(lambda x: functional_call(net, params, (x,))))(x), vmap(jacfwd(lambda x: functional_call(net, params, (x,))))(x)])
show("hessian", hessian(lambda x: functional_call(net, params, (x,)).sum())(x[0]))
show("value", grad_and_value(loss)(params, x[0], y[0]))
nets = [torch.nn.Linear(4, 2) for _ in range(3)]
stacked, buffers = stack_module_state(nets)
show("ensemble", vmap(lambda p, b, x: functional_call(nets[0], (p, b), (x,)), (0, 0, None))(stacked, buffers, x))


def kernel(f, a, b):
    one, two = (vmap(jacrev(f), (None, 0))(params, z) for z in (a, b))
    return sum(torch.einsum("Naf,Mbf->NMab", p.flatten(2), q.flatten(2)) for p, q in zip(one.values(), two.values()))


show("tangent kernel", kernel(lambda p, x: functional_call(net, p, (x,)), x, x[:2]))
show("products", [jvp(torch.sin, (x,), (torch.ones_like(x),))[1], vjp(torch.sin, x)[1](x)[0], linearize(torch.sin, x)[1](x)])


def inner(w, x, y):
    return (torch.tanh(x @ w) - y).square().mean()


def adapt(w, x, y):
    for _ in range(2):
        w = w - 0.1 * grad(inner)(w, x, y)
    return inner(w, x, y)


tasks, answers = torch.randn(3, 6, 4), torch.randn(3, 6, 2)
show("maml", grad(lambda w: vmap(adapt, (None, 0, 0))(w, tasks, answers).mean())(torch.randn(4, 2)))
show("random", vmap(lambda x: torch.dropout(x, 0.5, True), randomness="same")(x))
