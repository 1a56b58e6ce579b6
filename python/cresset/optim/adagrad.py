"""Adagrad."""

import cresset

from ._lists import batches, check_choice, check_foreach, check_fused, columns, counts, fused_step, real, tensor_steps
from .optimizer import Optimizer, as_float, check_lr, check_not_negative, run_closure

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients so far."""

    def __init__(
        self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *, maximize=False,
        differentiable=False, fused=None,
    ):  # fmt: skip
        check_lr(lr)
        check_choice(foreach=foreach, fused=fused, differentiable=differentiable)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        if fused:
            self._step_supports_amp_scaling = True  # the fused step takes a gradient scaler's tensors
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

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (("foreach", None), ("maximize", False), ("differentiable", False), ("fused", None)):
                group.setdefault(name, value)
        tensor_steps(self)

    def _step_lists(self, group, params):
        """One step of a group with operators on lists."""
        check_foreach(group)
        lr, weight_decay = as_float(group["lr"]), group["weight_decay"]
        states = [self.state[p] for p in params]
        grads = [p.grad for p in params]
        if group["maximize"]:
            grads = cresset._foreach_neg(grads)
        cresset._foreach_add_([s["step"] for s in states], 1)
        if weight_decay != 0:
            grads = cresset._foreach_add(grads, params, alpha=weight_decay)
        (sums,) = map(real, columns(states, "sum"))
        params, grads = real(params), real(grads)
        cresset._foreach_addcmul_(sums, grads, grads, 1)
        root = cresset._foreach_add_(cresset._foreach_sqrt(sums), group["eps"])
        cresset._foreach_addcdiv_(params, grads, root, [-lr / (1 + (step - 1) * group["lr_decay"]) for step in counts(states)])

    def _step_fused(self, group, params):
        """One step of a group in one pass over memory."""
        check_fused(params)
        sums, steps = columns([self.state[p] for p in params], "sum", "step")
        with fused_step(self, steps) as scaling:
            cresset._fused_adagrad_(
                params, [p.grad for p in params], sums, steps, lr=as_float(group["lr"]), lr_decay=group["lr_decay"],
                weight_decay=group["weight_decay"], eps=group["eps"], maximize=group["maximize"], **scaling,
            )  # fmt: skip

    def step(self, closure=None):
        loss = run_closure(closure)
        differentiable = self.defaults["differentiable"]
        with cresset.set_grad_enabled(differentiable):
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                sparse = any(p.grad.is_sparse for p in params)
                if group["fused"] and sparse:
                    raise RuntimeError("`fused` does not support sparse grad or complex param")
                if group["fused"] or (group["foreach"] and not sparse):
                    for some in [params] * bool(params) if group["fused"] else batches(params):
                        (self._step_fused if group["fused"] else self._step_lists)(group, some)
                    continue
                lr, lr_decay, eps, weight_decay = (
                    as_float(group["lr"]),
                    group["lr_decay"],
                    group["eps"],
                    group["weight_decay"],
                )
                for p in params:
                    grad = p.grad
                    state = self.state[p]
                    state["step"] += 1
                    if group["maximize"]:
                        grad = -grad
                    if weight_decay != 0:
                        if grad.is_sparse:
                            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
                        grad = grad.add(p, alpha=weight_decay)
                    step_size = lr / (1 + (state["step"].item() - 1) * lr_decay)
                    total = state["sum"]
                    if grad.is_sparse:
                        _step_rows(p, grad.coalesce(), total, step_size, eps)
                        continue
                    if p.is_complex():
                        p, grad, total = map(cresset.view_as_real, (p, grad, total))
                    total.addcmul_(grad, grad, value=1)
                    root = total.sqrt() + eps if differentiable else total.sqrt().add_(eps)
                    p.addcdiv_(grad, root, value=-step_size)
        return loss


def _step_rows(p, grad, total, step_size, eps):
    """One step of the elements that a coalesced sparse gradient has; the others keep their sums."""
    places, values = grad._indices(), grad._values()
    whole = lambda kept: cresset.sparse_coo_tensor(places, kept, p.shape, is_coalesced=True)
    total.add_(whole(values.square()))
    root = total.sparse_mask(grad)._values().sqrt_().add_(eps)
    p.add_(whole(values / root), alpha=-step_size)
