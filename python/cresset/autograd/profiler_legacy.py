"""The profiler by its older name: the same sessions without schedules and without settings that came later."""

from . import profiler as _session

__all__ = ["profile"]


class profile(_session.profile):
    """cresset.autograd.profiler.profile, of the CPU."""

    _kind = "LEGACY"

    def __init__(
        self, enabled=True, *, use_cuda=False, record_shapes=False, with_flops=False, profile_memory=False, with_stack=False, with_modules=False,
    ):  # fmt: skip
        super().__init__(
            enabled, use_cuda=use_cuda, record_shapes=record_shapes, with_flops=with_flops, profile_memory=profile_memory, with_stack=with_stack,
            with_modules=with_modules,
        )  # fmt: skip
