"""Means over ranks, in the gradients' dtype or in 16 bits: hook(state, gradients, part of this rank), or hook(state, gradients) in place.

The division by the number of ranks happens in two steps, about its root before and the rest after the sum, so that neither small nor large numbers are lost.
"""

import cresset

from ... import _collectives

__all__ = ["DefaultState", "LowPrecisionState", "allreduce_hook", "bf16_compress_hook", "fp16_compress_hook", "reduce_scatter_hook"]


class DefaultState:
    """A group, and the two divisors, whose product is its size. ValueError without a group."""

    def __init__(self, process_group):
        if process_group is None:
            raise ValueError(f"Expected to pass in an explicit ProcessGroup to {self}.")
        self.process_group, self.world_size = process_group, process_group.size()
        self.gradient_predivide_factor = self._get_gradient_predivide_factor(self.world_size)
        self.gradient_postdivide_factor = self.world_size / self.gradient_predivide_factor

    @staticmethod
    def _get_gradient_predivide_factor(world_size):
        """The smallest power of two, of those that divide the size, that is not below its root."""
        factor = 1
        while world_size % factor == 0 and world_size / factor > factor:
            factor *= 2
        return float(factor)


class LowPrecisionState(DefaultState):
    """Also the dtype that gradients have after the hook."""

    def __init__(self, process_group, parameter_type=cresset.float32):
        super().__init__(process_group)
        self.parameter_type = parameter_type


def allreduce_hook(state, grad):
    """Give `grad` the mean over all ranks."""
    if state.gradient_predivide_factor > 1:
        grad.div_(state.gradient_predivide_factor)
    _collectives.all_reduce(grad, group=state.process_group)
    if state.gradient_postdivide_factor > 1:
        grad.div_(state.gradient_postdivide_factor)


def reduce_scatter_hook(state, grad, output):
    """Give `output` this rank's part of the mean over all ranks; `grad` has as many parts as there are ranks."""
    if state.gradient_predivide_factor > 1:
        grad.div_(state.gradient_predivide_factor)
    _collectives.reduce_scatter_tensor(output, grad, group=state.process_group)
    if state.gradient_postdivide_factor > 1:
        output.div_(state.gradient_postdivide_factor)


def _low_precision_hook(dtype, state, grad, output):
    low = grad.to(dtype)
    if output is None:
        allreduce_hook(state, low)
        grad.copy_(low)
        return
    part = output.to(dtype)
    reduce_scatter_hook(state, low, part)
    output.copy_(part)


def fp16_compress_hook(state, grad, output=None):
    """The mean with messages in float16."""
    _low_precision_hook(cresset.float16, state, grad, output)


def bf16_compress_hook(state, grad, output=None):
    """The mean with messages in bfloat16."""
    _low_precision_hook(cresset.bfloat16, state, grad, output)
