"""The tracer of quantization, which remembers for each node the module that it is from."""

from cresset import nn
from cresset.ao.nn.intrinsic import _FusedModule
from cresset.fx import proxy
from cresset.fx._symbolic_trace import Tracer
from cresset.fx.proxy import Scope

__all__ = ["QuantizationTracer"]


class ScopeContextManager(proxy.ScopeContextManager):
    """Another scope for a block: that of a module and its path."""

    def __init__(self, scope, current_module, current_module_path):
        super().__init__(scope, Scope(current_module_path, type(current_module)))


class QuantizationTracer(Tracer):
    """Modules of nn, fused ones, and those that a user names or whose classes a user names are single nodes."""

    def __init__(self, skipped_module_names, skipped_module_classes):
        super().__init__()
        self.skipped_module_names, self.skipped_module_classes = skipped_module_names, skipped_module_classes
        self.record_stack_traces = True

    def is_leaf_module(self, m, module_qualified_name):
        """Is this module one node?"""
        of_nn = m.__module__.startswith(("torch.nn", "cresset.nn", "torch.ao.nn", "cresset.ao.nn")) and not isinstance(m, nn.Sequential)
        skipped = module_qualified_name in self.skipped_module_names or type(m) in self.skipped_module_classes
        return of_nn or skipped or isinstance(m, _FusedModule)
