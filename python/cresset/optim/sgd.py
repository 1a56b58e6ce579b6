"""Stochastic gradient descent with momentum."""

import cresset

from ._lists import batches, check_choice, check_dense, check_fused, fused_step
from .optimizer import Optimizer, as_float, check_lr, check_not_negative, run_closure

__all__ = ["SGD"]


class SGD(Optimizer):
    """p -= lr (g + weight_decay p), with momentum, dampening and Nesterov's variant.

    `foreach` updates all parameters of a group with operators on lists, `fused` in one pass over memory.
    """

    def __init__(
        self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
        differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        check_choice(foreach=foreach, fused=fused, differentiable=differentiable)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        if fused:
            self._step_supports_amp_scaling = True  # the fused step takes a gradient scaler's tensors
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

    def _step_lists(self, group, params):
        """One step of a group with operators on lists."""
        lr, momentum, weight_decay = as_float(group["lr"]), group["momentum"], group["weight_decay"]
        grads = [p.grad for p in params]
        if group["maximize"]:
            grads = cresset._foreach_neg(grads)
        if weight_decay != 0:
            grads = cresset._foreach_add(grads, params, alpha=weight_decay)
        if momentum != 0:
            buffers, kept, added = [], [], []
            for p, grad in zip(params, grads):
                buffer = self.state[p].get("momentum_buffer")
                if buffer is None:
                    buffer = self.state[p]["momentum_buffer"] = grad.detach().clone()
                else:
                    kept.append(buffer)
                    added.append(grad)
                buffers.append(buffer)
            if kept:
                cresset._foreach_mul_(kept, momentum)
                cresset._foreach_add_(kept, added, alpha=1 - group["dampening"])
            grads = cresset._foreach_add(grads, buffers, alpha=momentum) if group["nesterov"] else buffers
        cresset._foreach_add_(params, grads, alpha=-lr)

    def _step_fused(self, group, params):
        """One step of a group in one pass over memory."""
        check_fused(params)
        momentum = group["momentum"]
        new = [momentum != 0 and self.state[p].get("momentum_buffer") is None for p in params]
        for first in (True, False):
            some = [p for p, is_new in zip(params, new) if is_new == first]
            if not some:
                continue
            buffers = []
            if momentum != 0:
                if first:
                    for p in some:
                        self.state[p]["momentum_buffer"] = cresset.zeros_like(p.grad)
                buffers = [self.state[p]["momentum_buffer"] for p in some]
            with fused_step(self, []) as scaling:
                cresset._fused_sgd_(
                    some, [p.grad for p in some], buffers, weight_decay=group["weight_decay"], momentum=momentum, lr=as_float(group["lr"]),
                    dampening=group["dampening"], nesterov=group["nesterov"], maximize=group["maximize"], is_first_step=first, **scaling,
                )  # fmt: skip

    def step(self, closure=None):
        loss = run_closure(closure)
        state = self.state
        with cresset.set_grad_enabled(self.defaults["differentiable"]):
            for group in self.param_groups:
                momentum, dampening, nesterov = group["momentum"], group["dampening"], group["nesterov"]
                weight_decay, maximize, step_size = group["weight_decay"], group["maximize"], -as_float(group["lr"])
                if group["fused"]:
                    check_dense("`_fused_sgd`", group["params"])
                if group["fused"] or (group["foreach"] and not any(p.grad is not None and p.grad.is_sparse for p in group["params"])):
                    params = [p for p in group["params"] if p.grad is not None]
                    for some in [params] * bool(params) if group["fused"] else batches(params):
                        (self._step_fused if group["fused"] else self._step_lists)(group, some)
                    continue
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
