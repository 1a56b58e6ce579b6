"""Adadelta."""

import cresset

from ._lists import ListOptimizer, columns, real, zero_step, zeros_of
from .optimizer import as_float, check_lr, check_not_negative

__all__ = ["Adadelta"]


class Adadelta(ListOptimizer):
    """Steps whose size is the ratio of running averages of squared updates and squared gradients."""

    def __init__(
        self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable,
                "foreach": foreach, "differentiable": differentiable,
            },
        )  # fmt: skip

    def _new_state(self, p, group):
        return {"step": zero_step(), "square_avg": zeros_of(p), "acc_delta": zeros_of(p)}

    def _update(self, group, params, grads, states):
        rho, eps, lr = group["rho"], group["eps"], as_float(group["lr"])
        squares, deltas = map(real, columns(states, "square_avg", "acc_delta"))
        params, grads = real(params), real(grads)
        cresset._foreach_mul_(squares, rho)
        cresset._foreach_addcmul_(squares, grads, grads, 1 - rho)
        root = cresset._foreach_sqrt(cresset._foreach_add(squares, eps))
        update = cresset._foreach_div(cresset._foreach_sqrt(cresset._foreach_add(deltas, eps)), root)
        update = cresset._foreach_mul(update, grads)
        cresset._foreach_mul_(deltas, rho)
        cresset._foreach_addcmul_(deltas, update, update, 1 - rho)
        cresset._foreach_add_(params, update, alpha=-lr)
