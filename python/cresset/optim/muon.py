"""Muon."""

import cresset

from ._lists import check_dense
from .optimizer import Optimizer, as_float, run_closure

__all__ = ["Muon"]


def orthogonalized(update, coefficients, steps, eps):
    """A matrix near the orthogonal factor of `update`, by Newton-Schulz iterations in bfloat16 (Jordan et al. 2024)."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if update.dim() != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = update.size(0) > update.size(1)
    x = update.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = cresset.addmm(x, cresset.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(Optimizer):
    """Momentum whose updates of matrices are made orthogonal. Parameters with another number of dimensions are refused."""

    def __init__(
        self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.7750, 2.0315), eps=1e-7,
        ns_steps=5, adjust_lr_fn=None,
    ):  # fmt: skip
        if isinstance(lr, cresset.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov, "ns_coefficients": ns_coefficients,
                "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
            },
        )  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    @cresset.no_grad()
    def step(self, closure=None):
        loss = run_closure(closure)
        for group in self.param_groups:
            check_dense("Muon", group["params"])
            lr, momentum = as_float(group["lr"]), group["momentum"]
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if p.is_complex():
                    raise RuntimeError("Muon does not support complex parameters")
                state = self.state[p]
                if not state:
                    state["momentum_buffer"] = cresset.zeros_like(grad, memory_format=cresset.preserve_format)
                buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
                update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
                update = orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
                rows, columns = p.shape
                ratio = 0.2 * max(rows, columns) ** 0.5 if group["adjust_lr_fn"] == "match_rms_adamw" else max(1, rows / columns) ** 0.5
                p.mul_(1 - lr * group["weight_decay"])
                p.add_(update, alpha=-lr * ratio)
        return loss
