"""Scaling of losses where each rank has other gradients."""

import cresset
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

    def _found_infinite(self, gradients):
        local = [g.to_local() if isinstance(g, dist.tensor.DTensor) else g for g in gradients]
        found = super()._found_infinite(local)
        # No gradient here (-1) may be one elsewhere.
        everywhere = cresset.tensor(-1.0 if found is None else float(found))
        dist.all_reduce(everywhere, dist.ReduceOp.MAX, group=self.process_group)
        return None if everywhere < 0 else bool(everywhere)
