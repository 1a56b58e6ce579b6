"""RMSprop."""

import cresset

from .optimizer import Optimizer, as_float, check_lr, check_not_negative, run_closure

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Steps divided by the root of a running average of squared gradients; `centered` subtracts the squared average."""

    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False, foreach=None,
        maximize=False, differentiable=False,
    ):  # fmt: skip
        check_lr(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
                "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            },
        )  # fmt: skip

    def step(self, closure=None):
        loss = run_closure(closure)
        differentiable = self.defaults["differentiable"]
        with cresset.set_grad_enabled(differentiable):
            for group in self.param_groups:
                lr, alpha, eps = as_float(group["lr"]), group["alpha"], group["eps"]
                momentum, centered, weight_decay = group["momentum"], group["centered"], group["weight_decay"]
                for p in group["params"]:
                    grad = p.grad
                    if grad is None:
                        continue
                    state = self.state[p]
                    if not state:
                        state["step"] = cresset.zeros((), dtype=cresset.float32)
                        state["square_avg"] = cresset.zeros_like(p, memory_format=cresset.preserve_format)
                        if momentum > 0:
                            state["momentum_buffer"] = cresset.zeros_like(p, memory_format=cresset.preserve_format)
                        if centered:
                            state["grad_avg"] = cresset.zeros_like(p, memory_format=cresset.preserve_format)
                    state["step"] += 1
                    if group["maximize"]:
                        grad = -grad
                    if weight_decay != 0:
                        grad = grad.add(p, alpha=weight_decay)
                    is_complex = p.is_complex()

                    def real(t):
                        return cresset.view_as_real(t) if is_complex else t

                    p, grad, square_avg = real(p), real(grad), real(state["square_avg"])
                    square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
                    if centered:
                        grad_avg = real(state["grad_avg"])
                        grad_avg.lerp_(grad, 1 - alpha)
                        avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
                    else:
                        avg = square_avg.sqrt()
                    avg = avg.add(eps) if differentiable else avg.add_(eps)
                    if momentum > 0:
                        buf = real(state["momentum_buffer"])
                        buf.mul_(momentum).addcdiv_(grad, avg)
                        p.add_(buf, alpha=-lr)
                    else:
                        p.addcdiv_(grad, avg, value=-lr)
        return loss
