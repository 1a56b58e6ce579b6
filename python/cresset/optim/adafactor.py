"""Adafactor."""

import cresset

from ._lists import ListOptimizer, zero_step
from .optimizer import as_float

__all__ = ["Adafactor"]


class Adafactor(ListOptimizer):
    """Adaptive steps whose second moments of matrices are kept as one row and one column (Shazeer and Stern 2018)."""

    def __init__(
        self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None, maximize=False,
    ):  # fmt: skip
        if isinstance(lr, cresset.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
                "maximize": maximize,
            },
        )  # fmt: skip

    def _decays_gradients(self, group):
        return False

    def _new_state(self, p, group):
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if p.dim() < 2:
            return {"step": zero_step(), "variance": cresset.zeros_like(p, memory_format=cresset.preserve_format)}
        rows, columns = list(p.grad.shape), list(p.grad.shape)
        rows[-1], columns[-2] = 1, 1
        return {"step": zero_step(), "row_var": p.grad.new_zeros(rows), "col_var": p.grad.new_zeros(columns)}

    def _update(self, group, params, grads, states):
        lr, (eps1, eps2), decay = as_float(group["lr"]), group["eps"], group["weight_decay"]
        for p, grad, state in zip(params, grads, states):
            step = state["step"].item()
            floor = cresset.finfo(p.dtype).eps if eps1 is None else eps1
            taken = step ** group["beta2_decay"]
            size = max(eps2, p.norm(2).item() / p.numel() ** 0.5) * min(lr, 1 / step**0.5)
            if decay != 0:
                p.mul_(1 - lr * decay)
            if p.dim() > 1:
                row, column = state["row_var"], state["col_var"]
                row.lerp_(grad.norm(dim=-1, keepdim=True).square_().div_(grad.size(-1)), taken)
                column.lerp_(grad.norm(dim=-2, keepdim=True).square_().div_(grad.size(-2)), taken)
                variance = (row @ column).div_(row.mean(dim=-2, keepdim=True).clamp_(min=floor))
            else:
                state["variance"].lerp_(grad.square(), taken)
                variance = state["variance"].clone()
            update = variance.clamp_(min=floor * floor).rsqrt_().mul_(grad)
            clipped = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
            p.add_(update, alpha=-size / clipped)
