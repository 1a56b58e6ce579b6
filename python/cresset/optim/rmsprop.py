"""RMSprop."""

import cresset

from ._lists import batches, check_capturable, check_dense, check_foreach, columns, real, tensor_steps, zero_step, zeros_of
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

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (
                ("momentum", 0), ("centered", False), ("foreach", None), ("maximize", False), ("differentiable", False), ("capturable", False),
            ):  # fmt: skip
                group.setdefault(name, value)
        tensor_steps(self)

    def _new_state(self, p, group):
        state = {"step": zero_step(), "square_avg": zeros_of(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_of(p)
        if group["centered"]:
            state["grad_avg"] = zeros_of(p)
        return state

    def _step_lists(self, group, params):
        """One step of a group with operators on lists."""
        for p in params:
            if not self.state[p]:
                self.state[p].update(self._new_state(p, group))
        states = [self.state[p] for p in params]
        lr, alpha, grads = as_float(group["lr"]), group["alpha"], [p.grad for p in params]
        if group["maximize"]:
            grads = cresset._foreach_neg(grads)
        cresset._foreach_add_([s["step"] for s in states], 1)
        if group["weight_decay"] != 0:
            grads = cresset._foreach_add(grads, params, alpha=group["weight_decay"])
        (squares,) = map(real, columns(states, "square_avg"))
        params, grads = real(params), real(grads)
        cresset._foreach_mul_(squares, alpha)
        cresset._foreach_addcmul_(squares, grads, grads, 1 - alpha)
        if group["centered"]:
            (averages,) = map(real, columns(states, "grad_avg"))
            cresset._foreach_lerp_(averages, grads, 1 - alpha)
            squares = cresset._foreach_addcmul(squares, averages, averages, -1)
        root = cresset._foreach_add_(cresset._foreach_sqrt(squares), group["eps"])
        if group["momentum"] > 0:
            (buffers,) = map(real, columns(states, "momentum_buffer"))
            cresset._foreach_mul_(buffers, group["momentum"])
            cresset._foreach_addcdiv_(buffers, grads, root)
            cresset._foreach_add_(params, buffers, alpha=-lr)
        else:
            cresset._foreach_addcdiv_(params, grads, root, -lr)

    def step(self, closure=None):
        loss = run_closure(closure)
        differentiable = self.defaults["differentiable"]
        with cresset.set_grad_enabled(differentiable):
            for group in self.param_groups:
                check_dense("RMSprop", group["params"])
                if group["capturable"]:
                    check_capturable(group, [p for p in group["params"] if p.grad is not None])
                if group["foreach"]:
                    check_foreach(group)
                    for some in batches([p for p in group["params"] if p.grad is not None]):
                        self._step_lists(group, some)
                    continue
                lr, alpha, eps = as_float(group["lr"]), group["alpha"], group["eps"]
                momentum, centered, weight_decay = group["momentum"], group["centered"], group["weight_decay"]
                for p in group["params"]:
                    grad = p.grad
                    if grad is None:
                        continue
                    state = self.state[p]
                    if not state:
                        state.update(self._new_state(p, group))
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
