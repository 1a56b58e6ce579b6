"""Functions recorded ahead of time, by the module that offers them in PyTorch."""

from cresset._functorch import config
from cresset._functorch.aot_autograd import aot_function, aot_module, make_boxed_func, nop
from cresset._functorch.fx_minifier import minifier
from cresset._functorch.partitioners import default_partition
from cresset.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "aot_function", "aot_module", "compiled_function", "compiled_module", "config", "default_partition", "make_boxed_func", "make_fx",
    "min_cut_rematerialization_partition", "minifier", "nop",
]  # fmt: skip

compiled_function, compiled_module = aot_function, aot_module


def min_cut_rematerialization_partition(joint_module, _joint_inputs, compiler="inductor", *, num_fwd_outputs):
    """default_partition: what backward uses is kept, and nothing is computed twice."""
    return default_partition(joint_module, _joint_inputs, num_fwd_outputs=num_fwd_outputs)
