"""SparseAdam."""

import math

import cresset

from .adam import check_betas
from .optimizer import Optimizer, check_lr, run_closure

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients, "lazy": elements that a gradient does not keep, and their moments, stay as they are. RuntimeError for
    strided gradients, ValueError for sparse parameters."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_lr(lr)
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse_at = [[g, i] for g, group in enumerate(self.param_groups) for i, p in enumerate(group["params"]) if p.is_sparse]
        if sparse_at:
            raise ValueError(f"Sparse params at indices {sparse_at}: SparseAdam requires dense parameter tensors")
        complex_at = [[g, i] for g, group in enumerate(self.param_groups) for i, p in enumerate(group["params"]) if p.is_complex()]
        if complex_at:
            raise ValueError(f"Complex params at indices {complex_at}: SparseAdam does not support complex parameters")

    def step(self, closure=None):
        """One step: only the elements that a gradient keeps, and their moments, change."""
        loss = run_closure(closure)
        with cresset.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self._step_one(group, p)
        return loss

    def _step_one(self, group, p):
        if not p.grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = cresset.zeros_like(p), cresset.zeros_like(p)
        state["step"] += 1
        grad = p.grad.coalesce()
        if not grad._nnz():
            return
        place, values = tuple(grad.indices()), -grad.values() if group["maximize"] else grad.values()
        beta1, beta2 = group["betas"]
        change = (values - state["exp_avg"][place]) * (1 - beta1)
        first = state["exp_avg"][place] + change
        second = state["exp_avg_sq"][place] + (values.square() - state["exp_avg_sq"][place]) * (1 - beta2)
        state["exp_avg"][place], state["exp_avg_sq"][place] = first, second
        rate = group["lr"] * math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
        p.index_put_(place, -rate * first / (second.sqrt() + group["eps"]), accumulate=True)
