"""Scaling of losses where each rank has other gradients."""

from cresset import distributed as dist
from cresset.amp import GradScaler

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A GradScaler whose ranks leave out a step together: a gradient that is not finite in one rank of `process_group` counts in all of them.

    All ranks of the group call `step` (or `unscale_`) alike.
    """

    def __init__(
        self, device="cuda", init_scale=2.0**16, backoff_factor=0.5, growth_factor=2.0, growth_interval=2000, enabled=True, process_group=None
    ):  # fmt: skip
        super().__init__(device, init_scale=init_scale, backoff_factor=backoff_factor, growth_factor=growth_factor, growth_interval=growth_interval, enabled=enabled)
        self.process_group = process_group

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16=True):
        # A rank without gradients waits for the others, too.
        return super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16) or {found_inf.device: found_inf}

    def unscale_(self, optimizer):
        super().unscale_(optimizer)
        if self.is_enabled():
            for found in self._found_inf_per_device(optimizer).values():
                dist.all_reduce(found, dist.ReduceOp.MAX, group=self.process_group)
