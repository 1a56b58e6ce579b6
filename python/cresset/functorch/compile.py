"""Functions recorded ahead of time, by the module that offers them in PyTorch."""

import cresset
from cresset._decomp import get_decompositions
from cresset._functorch import config
from cresset._functorch.aot_autograd import aot_function, aot_module, aot_module_simplified, make_boxed_compiler, make_boxed_func, nop
from cresset._functorch.fx_minifier import minifier
from cresset._functorch.partitioners import default_partition
from cresset.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module", "config", "default_decompositions", "default_partition",
    "make_boxed_compiler", "make_boxed_func", "make_fx",
    "min_cut_rematerialization_partition", "minifier", "nop",
]  # fmt: skip

_NAMES = """
    detach gelu_backward leaky_relu_backward sigmoid_backward threshold_backward hardtanh_backward hardsigmoid_backward hardswish_backward tanh_backward
    silu_backward elu_backward masked_fill elu leaky_relu hardtanh hardswish hardsigmoid
""".split()
default_decompositions = get_decompositions([getattr(cresset.ops.aten, name) for name in _NAMES])
compiled_function, compiled_module = aot_function, aot_module


def min_cut_rematerialization_partition(joint_module, _joint_inputs, compiler="inductor", *, num_fwd_outputs):
    """default_partition: what backward uses is kept, and nothing is computed twice."""
    return default_partition(joint_module, _joint_inputs, num_fwd_outputs=num_fwd_outputs)
