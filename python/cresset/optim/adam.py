"""Adam and AdamW."""

import cresset

from ._lists import (
    batches, check_capturable, check_choice, check_dense, check_foreach, check_fused, columns, counts, fused_step, real, tensor_steps, zero_step, zeros_of,
)  # fmt: skip
from .optimizer import Optimizer, as_float, check_lr, check_not_negative, run_closure

__all__ = ["Adam"]


def check_betas(betas):
    """ValueError when one of the two is outside [0, 1), IndexError when there is only one."""
    for i in range(2):
        beta = betas[i]
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


class Adam(Optimizer):
    """Steps scaled by running averages of gradients and of their squares; `amsgrad` keeps the largest average of squares.

    `foreach` updates all parameters of a group with operators on lists, `fused` in one pass over memory. `capturable` is for devices that record
    graphs and refused for others.
    """

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
        capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False,
    ):  # fmt: skip
        check_lr(lr)
        if isinstance(lr, cresset.Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_choice(foreach=foreach, fused=fused, differentiable=differentiable)
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        check_betas(betas)
        if isinstance(betas[0], cresset.Tensor) != isinstance(betas[1], cresset.Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, cresset.Tensor) and foreach and not capturable:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        if fused:
            self._step_supports_amp_scaling = True  # the fused step takes a gradient scaler's tensors
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
                "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )  # fmt: skip

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (
                ("amsgrad", False), ("maximize", False), ("foreach", None), ("capturable", False), ("differentiable", False),
                ("decoupled_weight_decay", False), ("fused", None),
            ):  # fmt: skip
                group.setdefault(name, value)
        tensor_steps(self)

    def _new_state(self, p, amsgrad):
        state = {"step": zero_step(), "exp_avg": zeros_of(p), "exp_avg_sq": zeros_of(p)}
        if amsgrad:
            state["max_exp_avg_sq"] = zeros_of(p)
        return state

    def _step_lists(self, group, params, states):
        """One step of a group with operators on lists."""
        beta1, beta2 = map(as_float, group["betas"])
        lr, weight_decay = as_float(group["lr"]), group["weight_decay"]
        grads = [p.grad for p in params]
        averages, squares = map(real, columns(states, "exp_avg", "exp_avg_sq"))
        if group["maximize"]:
            grads = cresset._foreach_neg(grads)
        cresset._foreach_add_([s["step"] for s in states], 1)
        if weight_decay != 0:
            if group["decoupled_weight_decay"]:
                cresset._foreach_mul_(params, 1 - lr * weight_decay)
            else:
                grads = cresset._foreach_add(grads, params, alpha=weight_decay)
        params, grads = real(params), real(grads)
        cresset._foreach_lerp_(averages, grads, 1 - beta1)
        cresset._foreach_mul_(squares, beta2)
        cresset._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        if group["amsgrad"]:
            (largest,) = map(real, columns(states, "max_exp_avg_sq"))
            squares = cresset._foreach_maximum_(largest, squares)
        steps = counts(states)
        root = cresset._foreach_sqrt(squares)
        cresset._foreach_div_(root, [(1 - beta2**step) ** 0.5 for step in steps])
        cresset._foreach_add_(root, group["eps"])
        cresset._foreach_addcdiv_(params, averages, root, [-lr / (1 - beta1**step) for step in steps])

    def _step_fused(self, group, params, states):
        """One step of a group in one pass over memory."""
        beta1, beta2 = map(as_float, group["betas"])
        averages, squares, steps = columns(states, "exp_avg", "exp_avg_sq", "step")
        largest = columns(states, "max_exp_avg_sq")[0] if group["amsgrad"] else []
        fused = cresset._fused_adamw_ if group["decoupled_weight_decay"] else cresset._fused_adam_
        with fused_step(self, steps) as scaling:
            fused(
                params, [p.grad for p in params], averages, squares, largest, steps, lr=as_float(group["lr"]), beta1=beta1, beta2=beta2,
                weight_decay=group["weight_decay"], eps=group["eps"], amsgrad=group["amsgrad"], maximize=group["maximize"], **scaling,
            )  # fmt: skip

    def _step_together(self, group):
        params = [p for p in group["params"] if p.grad is not None]
        if not params:
            return
        check_fused(params) if group["fused"] else check_foreach(group)
        for p in params:
            if not self.state[p]:
                self.state[p].update(self._new_state(p, group["amsgrad"]))
        for some in [params] if group["fused"] else batches(params):
            (self._step_fused if group["fused"] else self._step_lists)(group, some, [self.state[p] for p in some])

    def step(self, closure=None):
        loss = run_closure(closure)
        differentiable = self.defaults["differentiable"]
        states = self.state
        view_as_real = cresset.view_as_real
        with cresset.set_grad_enabled(differentiable):
            for group in self.param_groups:
                beta1, beta2 = map(as_float, group["betas"])
                lr, eps, weight_decay = group["lr"], group["eps"], group["weight_decay"]
                amsgrad, maximize, decoupled = group["amsgrad"], group["maximize"], group["decoupled_weight_decay"]
                one_beta1, one_beta2 = 1 - beta1, 1 - beta2
                check_dense("Adam", group["params"], ", please consider SparseAdam instead")
                if group["capturable"]:
                    check_capturable(group, [p for p in group["params"] if p.grad is not None])
                if group["foreach"] or group["fused"]:
                    self._step_together(group)
                    continue
                for p in group["params"]:
                    grad = p.grad
                    if grad is None:
                        continue
                    state = states[p]
                    if not state:
                        state.update(self._new_state(p, amsgrad))
                    exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                    largest = state["max_exp_avg_sq"] if amsgrad else None
                    if maximize:
                        grad = -grad
                    state["step"] += 1
                    if weight_decay != 0:
                        if decoupled:
                            p.mul_(1 - lr * weight_decay)
                        else:
                            grad = grad.add(p, alpha=weight_decay)
                    if p.is_complex():
                        p, grad, exp_avg, exp_avg_sq = map(view_as_real, (p, grad, exp_avg, exp_avg_sq))
                        largest = None if largest is None else view_as_real(largest)
                    exp_avg.lerp_(grad, one_beta1)
                    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=one_beta2)
                    step = state["step"].item()
                    step_size = as_float(lr / (1 - beta1**step))
                    correction = (1 - beta2**step) ** 0.5
                    if largest is not None:
                        if differentiable:
                            largest.copy_(cresset.maximum(largest.clone(), exp_avg_sq))
                        else:
                            cresset.maximum(largest, exp_avg_sq, out=largest)
                        exp_avg_sq = largest
                    if differentiable:
                        denominator = exp_avg_sq.sqrt() / correction + eps
                    else:
                        denominator = exp_avg_sq.sqrt().div_(correction).add_(eps)
                    p.addcdiv_(exp_avg, denominator, value=-step_size)
        return loss
