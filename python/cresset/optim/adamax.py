"""Adamax."""

import cresset

from ._lists import ListOptimizer, columns, counts, real, zero_step, zeros_of
from .adam import check_betas
from .optimizer import as_float, check_lr, check_not_negative

__all__ = ["Adamax"]


class Adamax(ListOptimizer):
    """Adam with the running maximum of gradients in the place of the average of their squares."""

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False, differentiable=False,
        capturable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        check_betas(betas)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
                "differentiable": differentiable, "capturable": capturable,
            },
        )  # fmt: skip

    def _new_state(self, p, group):
        return {"step": zero_step(), "exp_avg": zeros_of(p), "exp_inf": zeros_of(p)}

    def _update(self, group, params, grads, states):
        (beta1, beta2), eps, lr = group["betas"], group["eps"], as_float(group["lr"])
        averages, largest = map(real, columns(states, "exp_avg", "exp_inf"))
        params, grads = real(params), real(grads)
        cresset._foreach_lerp_(averages, grads, 1 - beta1)
        sizes = cresset._foreach_add(cresset._foreach_abs(grads), eps)
        new = cresset._foreach_maximum(cresset._foreach_mul(largest, beta2), sizes)
        cresset._foreach_copy_(largest, new)
        cresset._foreach_addcdiv_(params, averages, new, [-lr / (1 - beta1**count) for count in counts(states)])
