"""Rprop."""

import cresset

from ._lists import ListOptimizer, columns, real, zero_step, zeros_of
from .optimizer import as_float, check_lr

__all__ = ["Rprop"]


class Rprop(ListOptimizer):
    """Steps of each element's own size, which grows while its gradient keeps its sign and shrinks when it turns."""

    def __init__(
        self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None, maximize=False,
        differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
                "differentiable": differentiable, "capturable": capturable,
            },
        )  # fmt: skip

    def _new_state(self, p, group):
        lr = as_float(group["lr"])
        size = complex(lr, lr) if p.is_complex() else lr
        return {"step": zero_step(), "prev": zeros_of(p), "step_size": cresset.full_like(p.grad, size)}

    def _update(self, group, params, grads, states):
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        previous, sizes = map(real, columns(states, "prev", "step_size"))
        params, grads = real(params), real(grads)
        signs = cresset._foreach_mul(grads, previous)
        for i, product in enumerate(signs):
            turned = product < 0
            factor = cresset.ones_like(sizes[i]).masked_fill_(product > 0, grow).masked_fill_(turned, shrink)
            sizes[i].copy_((sizes[i] * factor).clamp(smallest, largest))
            grads[i] = grads[i].masked_fill(turned, 0)
        cresset._foreach_addcmul_(params, cresset._foreach_sign(grads), [s.clone() for s in sizes] if group["differentiable"] else sizes, -1)
        cresset._foreach_copy_(previous, grads)
