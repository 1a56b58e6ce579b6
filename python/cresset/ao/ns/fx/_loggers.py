"""Modules in graphs that keep what passes through them."""

import cresset
from cresset import nn

from .utils import compute_sqnr

RNNReturnType = tuple[cresset.Tensor, tuple[cresset.Tensor, cresset.Tensor]]


class OutputLogger(nn.Module):
    """Keeps what passes through it in `stats`, results of recurrent layers in `stats_rnn`, and gives it on.

    The other attributes say which value of which model it is. `enabled` and `save_activations` turn it off.
    """

    __module__ = "cresset.ao.ns._numeric_suite_fx"  # where PyTorch has it
    stats: list[cresset.Tensor]
    stats_rnn: list[RNNReturnType]
    _is_impure = True  # eliminate_dead_code leaves it

    def __init__(
        self, ref_node_name, prev_node_name, model_name, ref_name, prev_node_target_type, ref_node_target_type, results_type, index_within_arg, index_of_arg, fqn,
        qconfig_str="",
    ):  # fmt: skip
        super().__init__()
        self.stats, self.stats_rnn = [], []
        self.ref_node_name, self.prev_node_name, self.model_name, self.ref_name = ref_node_name, prev_node_name, model_name, ref_name
        self.prev_node_target_type, self.ref_node_target_type, self.results_type = prev_node_target_type, ref_node_target_type, results_type
        self.index_within_arg, self.index_of_arg, self.fqn, self.qconfig_str = index_within_arg, index_of_arg, fqn, qconfig_str
        self.enabled = self.save_activations = True

    def forward(self, x):  # as scripts take it, where x is a tensor
        """x, of which a tensor or (tensor, (tensor, tensor)) is kept; other values pass."""
        if self.enabled and self.save_activations:
            if isinstance(x, cresset.Tensor):
                self.stats.append(x.detach())
            elif isinstance(x, tuple) and len(x) == 2 and len(x[1]) == 2:
                outer, (hidden, cell) = x
                self.stats_rnn.append((outer.detach(), (hidden.detach(), cell.detach())))
        return x

    def __repr__(self):
        shown = {key: value for key, value in self.__dict__.items() if not key.startswith("_") and key != "training"}
        return f"{type(self).__name__}({shown})"


class OutputComparisonLogger(OutputLogger):
    """Keeps a result, and its distance from the one it should be, in `comparisons`."""

    __module__ = "cresset.ao.ns._numeric_suite_fx"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.comparison_fn, self.comparison_fn_name, self.comparisons = compute_sqnr, "sqnr", []

    def forward(self, x, x_ref):
        """x, the quantized value, with x_ref, the float one. AssertionError for values that are no tensors."""
        if not self.enabled:
            return x
        if not isinstance(x, cresset.Tensor) or not isinstance(x_ref, cresset.Tensor):
            raise AssertionError("OutputComparisonLogger: values of other types than Tensor are not compared.")
        if self.save_activations:
            self.stats.append(x.detach())
        self.comparisons.append(self.comparison_fn(x, x_ref))
        return x
