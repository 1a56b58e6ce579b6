"""NAdam."""

import cresset

from ._lists import ListOptimizer, columns, counts, real, zero_step, zeros_of
from .adam import check_betas
from .optimizer import as_float, check_lr, check_not_negative

__all__ = ["NAdam"]


class NAdam(ListOptimizer):
    """Adam with Nesterov momentum, whose weight grows with the steps."""

    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3, decoupled_weight_decay=False, *,
        foreach=None, maximize=False, capturable=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative(epsilon=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        check_betas(betas)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach, "capturable": capturable,
                "differentiable": differentiable,
            },
        )  # fmt: skip

    def _new_state(self, p, group):
        return {
            "step": zero_step(), "mu_product": cresset.ones((), dtype=cresset.float32), "exp_avg": zeros_of(p), "exp_avg_sq": zeros_of(p),
        }  # fmt: skip

    def _update(self, group, params, grads, states):
        (beta1, beta2), eps, lr = group["betas"], group["eps"], as_float(group["lr"])
        averages, squares = map(real, columns(states, "exp_avg", "exp_avg_sq"))
        if group["decoupled_weight_decay"] and group["weight_decay"] != 0:
            cresset._foreach_mul_(params, 1 - lr * group["weight_decay"])
        params, grads = real(params), real(grads)

        def weight(count):
            return beta1 * (1.0 - 0.5 * 0.96 ** (count * group["momentum_decay"]))

        steps = counts(states)
        now, following = [weight(c) for c in steps], [weight(c + 1) for c in steps]
        products = []
        for state, mu in zip(states, now):
            state["mu_product"] *= mu
            products.append(state["mu_product"] if group["differentiable"] else state["mu_product"].item())
        cresset._foreach_lerp_(averages, grads, 1 - beta1)
        cresset._foreach_mul_(squares, beta2)
        cresset._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        root = cresset._foreach_sqrt(cresset._foreach_div(squares, [1 - beta2**c for c in steps]))
        root = cresset._foreach_add(root, eps)
        of_gradient = [-lr * (1 - mu) / (1 - product) for mu, product in zip(now, products)]
        of_average = [-lr * mu / (1 - product * mu) for mu, product in zip(following, products)]
        if group["differentiable"]:  # the factors are tensors with a history
            for p, g, average, divisor, a, b in zip(params, grads, averages, root, of_gradient, of_average):
                p.addcdiv_(g * a, divisor).addcdiv_(average * b, divisor)
            return
        cresset._foreach_addcdiv_(params, grads, root, of_gradient)
        cresset._foreach_addcdiv_(params, averages, root, of_average)
