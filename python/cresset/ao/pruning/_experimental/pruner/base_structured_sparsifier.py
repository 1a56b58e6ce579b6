"""What every pruner of rows does: masks rows, and removes them from the traced model."""

from operator import getitem

import cresset
from cresset import fx, nn
from cresset.nn import functional as F
from cresset.nn.utils import parametrize

from ...sparsifier.base_sparsifier import BaseSparsifier
from . import prune_functions as prune
from .match_utils import apply_match
from .parametrization import BiasHook, FakeStructuredSparsity, module_contains_param

__all__ = ["BaseStructuredSparsifier"]


def _get_supported_structured_pruning_modules():
    return {nn.Linear, nn.Conv2d, nn.LSTM}


def _get_supported_activation_functions():
    return {
        F.relu, F.rrelu, F.hardtanh, F.relu6, F.sigmoid, F.hardsigmoid, F.tanh, F.silu, F.mish, F.hardswish, F.elu, F.celu, F.selu, F.hardshrink, F.leaky_relu,
        F.logsigmoid, F.softplus, F.prelu, F.softsign, F.tanhshrink, F.gelu,
    }  # fmt: skip


def _get_supported_activation_modules():
    return {
        nn.ReLU, nn.RReLU, nn.Hardtanh, nn.ReLU6, nn.Sigmoid, nn.Hardsigmoid, nn.Tanh, nn.SiLU, nn.Mish, nn.Hardswish, nn.ELU, nn.CELU, nn.SELU, nn.Hardshrink,
        nn.LeakyReLU, nn.LogSigmoid, nn.Softplus, nn.PReLU, nn.Softsign, nn.Tanhshrink, nn.GELU,
    }  # fmt: skip


def _get_default_structured_pruning_patterns():
    """{pattern: the function that prunes its first layer}, with every activation where one may be."""
    patterns = {
        (nn.Linear, "output"): prune.prune_linear,
        (nn.Linear, nn.Linear): prune.prune_linear_linear,
        (nn.Conv2d, "output"): prune.prune_conv2d,
        (nn.Conv2d, nn.Conv2d): prune.prune_conv2d_conv2d,
        (nn.LSTM, getitem, nn.Linear): prune.prune_lstm_output_linear,
        (nn.LSTM, getitem, nn.LayerNorm, nn.Linear): prune.prune_lstm_output_layernorm_linear,
    }
    for activation in (*_get_supported_activation_functions(), *_get_supported_activation_modules()):
        patterns[nn.Linear, activation, nn.Linear] = prune.prune_linear_activation_linear
        patterns[nn.Conv2d, activation, nn.Conv2d] = prune.prune_conv2d_activation_conv2d
        for pool in (nn.AvgPool2d, F.avg_pool2d, nn.MaxPool2d, F.max_pool2d):
            patterns[nn.Conv2d, activation, pool, nn.Conv2d] = prune.prune_conv2d_activation_pool_conv2d
            patterns[nn.Conv2d, pool, activation, nn.Conv2d] = prune.prune_conv2d_pool_activation_conv2d
    for pool in (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d):
        for flatten in (nn.Flatten, cresset.flatten):
            patterns[nn.Conv2d, pool, flatten, nn.Linear] = prune.prune_conv2d_pool_flatten_linear
    return patterns


class BaseStructuredSparsifier(BaseSparsifier):
    """Masks of rows of Linear, Conv2d and LSTM weights. A derived class says in `update_mask` which rows are masked.

    After training, `prune()` traces the model and removes these rows, and from the layers after them what computes with them: where one of `patterns` {chain of
    classes and functions, or "output": function} begins. "prune_bias" in the configuration says whether masked rows lose their biases, too (they do by default);
    where not, constant outputs are moved into the next layer's bias.
    """

    def __init__(self, defaults, patterns=None):
        super().__init__(defaults)
        self.patterns = _get_default_structured_pruning_patterns() if patterns is None else patterns

    def make_config_from_model(self, model, SUPPORTED_MODULES=None):
        super().make_config_from_model(model, SUPPORTED_MODULES=_get_supported_structured_pruning_modules() if SUPPORTED_MODULES is None else SUPPORTED_MODULES)

    def _prepare(self, *args, **kwargs):
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask")
            if mask is None:
                weight = getattr(module, name)
                mask = cresset.ones(weight.shape[0], dtype=cresset.bool, device=weight.device)
            self.state[group["tensor_fqn"]]["mask"] = mask
            parametrization = group.get("parametrization", FakeStructuredSparsity)(mask)
            parametrize.register_parametrization(module, name, parametrization)
            if isinstance(module, (nn.Linear, nn.Conv2d)):  # the bias is added after the rows are masked
                prune_bias = group.get("prune_bias", True)
                if module.bias is not None:
                    module.register_parameter("_bias", nn.Parameter(module.bias.detach()))
                    module.bias = None
                    module.prune_bias = prune_bias
                module.register_forward_hook(BiasHook(parametrization, prune_bias))

    def prune(self):
        """The traced model without the masked rows; it shares its modules with the model, whose rows go, too."""
        self.traced = fx.symbolic_trace(self.model)
        modules = dict(self.traced.named_modules())
        for node in self.traced.graph.nodes:
            for pattern, convert in self.patterns.items():
                matched = apply_match(modules, pattern, node, [])
                first = modules.get(node.target) if isinstance(node.target, str) else None
                if matched is None or first is None or not module_contains_param(first, FakeStructuredSparsity):
                    continue
                block = [modules.get(m.target) if m.op == "call_module" else m.target for m in matched if m.op in ("call_module", "call_function")]
                convert(*block)
        for module in self.traced.modules():
            if module_contains_param(module, FakeStructuredSparsity):
                raise Exception(f"Error: {module} still contains FakeStructuredSparsity parametrizations!")
        self.traced.graph.lint()
        self.traced.recompile()
        return self.traced
