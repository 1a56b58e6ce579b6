"""When models are averaged."""

import warnings
from abc import ABC, abstractmethod

from cresset import distributed as dist
from cresset._hints import with_hint

from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages over a group (the default one without; TypeError where there is none); `step` counts the calls."""

    def __init__(self, process_group=None):
        self.process_group = process_group if process_group is not None else dist.group.WORLD
        if self.process_group is None:
            raise with_hint(TypeError("Invariant encountered: value was None when it should not be"), "Call init_process_group first, or give a process_group.")
        self.step = 0

    @abstractmethod
    def average_parameters(self, params):
        """Called after each step of the optimizer."""


class PeriodicModelAverager(ModelAverager):
    """Averages every `period` steps, from step `warmup_steps` on."""

    def __init__(self, period, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging because the communication cost of all-reducing parameters will be no less than the "
                "cost of all-reducing gradients by DistributedDataParallel in the backward pass. Therefore, only DistributedDataParallel should be used "
                "for this case.",
                stacklevel=2,
            )
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params):
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
