"""The parametrization that masks rows, and the hook that adds biases afterwards."""

from cresset import nn

from ...sparsifier.utils import module_contains_param

__all__ = ["BiasHook", "FakeStructuredSparsity", "module_contains_param"]


class FakeStructuredSparsity(nn.Module):
    """A parametrization: the rows of the tensor where `mask`, of an element for each row, is true; others are zero. State dicts have no mask."""

    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x):
        if self.mask.shape[0] != x.shape[0]:
            raise AssertionError(f"mask shape[0] ({self.mask.shape[0]}) must match x shape[0] ({x.shape[0]})")
        return self.mask.reshape(-1, *(1,) * (x.dim() - 1)) * x

    def state_dict(self, *args, **kwargs):
        return {}


class BiasHook:
    """A forward hook that adds `module._bias`; with prune_bias it becomes zero where the mask of the parametrization is false."""

    def __init__(self, parametrization, prune_bias):
        self.param = parametrization
        self.prune_bias = prune_bias

    def __call__(self, module, input, output):
        if getattr(module, "_bias", None) is not None:
            bias = module._bias.data  # which takes no gradient while rows are masked
            if self.prune_bias:
                bias[~self.param.mask] = 0
            output += bias.reshape(-1, 1, 1) if isinstance(module, nn.Conv2d) else bias
        return output
