"""Adagrad."""

import cresset

from .optimizer import Optimizer, as_float, check_lr, check_not_negative, run_closure

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients so far."""

    def __init__(
        self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *, maximize=False,
        differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        super().__init__(
            params,
            {
                "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
                "differentiable": differentiable, "fused": fused,
            },
        )  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                start = initial_accumulator_value
                if p.is_complex():
                    start = complex(start, start)
                self.state[p] = {
                    "step": cresset.tensor(0.0, dtype=cresset.float32),
                    "sum": cresset.full_like(p, start, memory_format=cresset.preserve_format),
                }

    def step(self, closure=None):
        loss = run_closure(closure)
        differentiable = self.defaults["differentiable"]
        with cresset.set_grad_enabled(differentiable):
            for group in self.param_groups:
                lr, lr_decay, eps, weight_decay = (
                    as_float(group["lr"]),
                    group["lr_decay"],
                    group["eps"],
                    group["weight_decay"],
                )
                for p in group["params"]:
                    grad = p.grad
                    if grad is None:
                        continue
                    state = self.state[p]
                    state["step"] += 1
                    if group["maximize"]:
                        grad = -grad
                    if weight_decay != 0:
                        grad = grad.add(p, alpha=weight_decay)
                    step_size = lr / (1 + (state["step"].item() - 1) * lr_decay)
                    total = state["sum"]
                    if p.is_complex():
                        p, grad, total = map(cresset.view_as_real, (p, grad, total))
                    total.addcmul_(grad, grad, value=1)
                    root = total.sqrt() + eps if differentiable else total.sqrt().add_(eps)
                    p.addcdiv_(grad, root, value=-step_size)
        return loss
