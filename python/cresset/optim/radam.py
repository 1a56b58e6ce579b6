"""RAdam."""

import cresset

from ._lists import ListOptimizer, columns, counts, real, zero_step, zeros_of
from .adam import check_betas
from .optimizer import as_float, check_lr, check_not_negative

__all__ = ["RAdam"]


class RAdam(ListOptimizer):
    """Adam that leaves out the second moment while its estimate varies too much (Liu et al. 2020)."""

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *, foreach=None, maximize=False,
        capturable=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        check_betas(betas)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
                "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
            },
        )  # fmt: skip

    def _new_state(self, p, group):
        return {"step": zero_step(), "exp_avg": zeros_of(p), "exp_avg_sq": zeros_of(p)}

    def _update(self, group, params, grads, states):
        (beta1, beta2), eps, lr = group["betas"], group["eps"], as_float(group["lr"])
        averages, squares = map(real, columns(states, "exp_avg", "exp_avg_sq"))
        if group["decoupled_weight_decay"] and group["weight_decay"] != 0:
            cresset._foreach_mul_(params, 1 - lr * group["weight_decay"])
        params, grads = real(params), real(grads)
        cresset._foreach_lerp_(averages, grads, 1 - beta1)
        cresset._foreach_mul_(squares, beta2)
        cresset._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        longest = 2 / (1 - beta2) - 1  # length of the average after many steps
        plain, adaptive = [], []
        for i, step in enumerate(counts(states)):
            size, correction = lr / (1 - beta1**step), 1 - beta2**step
            length = longest - 2 * step * beta2**step / correction
            if length > 5.0:
                rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
                adaptive.append((i, -size * (rectified * correction) ** 0.5))
            else:
                plain.append((i, -size))
        if plain:
            cresset._foreach_add_([params[i] for i, _ in plain], cresset._foreach_mul([averages[i] for i, _ in plain], [s for _, s in plain]))
        if adaptive:
            root = cresset._foreach_add(cresset._foreach_sqrt([squares[i] for i, _ in adaptive]), eps)
            moved = [params[i] for i, _ in adaptive]
            cresset._foreach_addcdiv_(moved, [averages[i] for i, _ in adaptive], root, [s for _, s in adaptive])
