"""Averaged stochastic gradient descent."""

import cresset

from ._lists import ListOptimizer, columns, counts, real, zero_step, zeros_of
from .optimizer import as_float, check_lr, check_not_negative

__all__ = ["ASGD"]


class ASGD(ListOptimizer):
    """Gradient descent with a falling rate; `ax` in the state is the average of the parameters from step t0 on."""

    def __init__(
        self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False, differentiable=False,
        capturable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
                "differentiable": differentiable, "capturable": capturable,
            },
        )  # fmt: skip

    def _new_state(self, p, group):
        return {
            "step": zero_step(), "eta": cresset.tensor(as_float(group["lr"]), dtype=cresset.float32),
            "mu": cresset.ones((), dtype=cresset.float32), "ax": zeros_of(p),
        }  # fmt: skip

    def _update(self, group, params, grads, states):
        lambd, lr = group["lambd"], as_float(group["lr"])
        (averages,) = map(real, columns(states, "ax"))
        params, grads = real(params), real(grads)
        rates = [state["eta"].item() for state in states]
        cresset._foreach_mul_(params, [1 - lambd * rate for rate in rates])
        cresset._foreach_add_(params, cresset._foreach_mul(grads, [-rate for rate in rates]))
        for state, average, p, step in zip(states, averages, params, counts(states)):
            if state["mu"].item() == 1:
                average.copy_(p)
            else:
                average.add_((p - average) * state["mu"].item())
            state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
            state["mu"].fill_(1 / max(1, step - group["t0"]))
