"""Stochastic gradient descent with momentum."""

import cresset

from .optimizer import Optimizer, as_float, check_lr, check_not_negative, run_closure

__all__ = ["SGD"]


class SGD(Optimizer):
    """p -= lr (g + weight_decay p), with momentum, dampening and Nesterov's variant.

    `foreach` and `fused` choose an implementation elsewhere; here they change nothing.
    """

    def __init__(
        self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
        differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
                "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
            },
        )  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (
                ("nesterov", False),
                ("maximize", False),
                ("foreach", None),
                ("differentiable", False),
                ("fused", None),
            ):
                group.setdefault(name, value)

    def step(self, closure=None):
        loss = run_closure(closure)
        state = self.state
        with cresset.set_grad_enabled(self.defaults["differentiable"]):
            for group in self.param_groups:
                momentum, dampening, nesterov = group["momentum"], group["dampening"], group["nesterov"]
                weight_decay, maximize, step_size = group["weight_decay"], group["maximize"], -as_float(group["lr"])
                for p in group["params"]:
                    grad = p.grad
                    if grad is None:
                        continue
                    if maximize:
                        grad = -grad
                    if weight_decay != 0:
                        grad = grad.add(p, alpha=weight_decay)
                    if momentum != 0:
                        own = state[p]
                        buf = own.get("momentum_buffer")
                        if buf is None:
                            buf = own["momentum_buffer"] = grad.detach().clone()
                        else:
                            buf.mul_(momentum).add_(grad, alpha=1 - dampening)
                        grad = grad.add(buf, alpha=momentum) if nesterov else buf
                    p.add_(grad, alpha=step_size)
        return loss
