"""Gradients averaged over all ranks at first, then within groups: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD" (2018)."""

from cresset import distributed as dist

from . import default_hooks
from .debugging_hooks import noop_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """Average over `process_group` until `start_localSGD_iter`, then over `subgroup` (None: the ranks of this machine), or, with
    `post_local_gradient_allreduce` false, not at all. PostLocalSGDOptimizer then averages parameters."""

    def __init__(self, process_group, subgroup, start_localSGD_iter, post_local_gradient_allreduce=True):
        self.process_group, self.subgroup, self.start_localSGD_iter = process_group, subgroup, start_localSGD_iter
        self.post_local_gradient_allreduce, self.iter = post_local_gradient_allreduce, 0

    def maybe_increase_iter(self, bucket):
        """Count a pass, at its last bucket."""
        if bucket.is_last():
            self.iter += 1


def _subgroup_of(state):
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups()
    return state.subgroup


def post_localSGD_hook(state, bucket):
    """The average over all ranks, or over the subgroup from `start_localSGD_iter` on."""
    whole = state.process_group if state.process_group is not None else dist.group.WORLD
    early = state.iter < state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if early:
        return default_hooks.allreduce_hook(whole, bucket)
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    return default_hooks.allreduce_hook(_subgroup_of(state), bucket)
