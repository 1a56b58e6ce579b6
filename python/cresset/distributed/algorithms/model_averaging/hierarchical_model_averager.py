"""Averages over small groups often, over larger ones seldom."""

import warnings

from cresset import distributed as dist

from . import averagers, utils

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages over groups of size n every p steps, for {p: n} in the order of rising periods and sizes; the largest group is `process_group`.

    A step that several periods divide averages over the largest of their groups. ValueError for an empty dictionary, and for periods or
    sizes that do not rise, or do not divide each other.
    """

    def __init__(self, period_group_size_dict=None, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if self._periods[-1] == 1:
            warnings.warn("When the maximum period in arg ``period_group_size_dict`` is 1, no need to use model averaging; only DistributedDataParallel should be used for this case.", stacklevel=2)
        sizes, whole = list(period_group_size_dict.values()), dist.get_world_size(self.process_group)
        if sizes[-1] != whole:
            raise ValueError(f"The last value in arg ``period_process_group_dict`` {sizes[-1]} must be equal to the size of arg ``process_group`` {whole}.")
        for what, numbers in (("periods", self._periods), ("group sizes", sizes)):
            if any(b <= a or b % a for a, b in zip(numbers, numbers[1:])):
                raise ValueError(f"HierarchicalModelAverager: rising {what} that divide each other were required; {numbers} were given.")
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps
        self.period_process_group_dict = {
            period: self.process_group if size == whole else dist.new_subgroups(group_size=size, group=self.process_group)[0]
            for period, size in period_group_size_dict.items()
        }

    def _find_process_group(self):
        """The largest group whose turn it is, or None."""
        for period in reversed(self._periods):
            if self.step % period == 0:
                return self.period_process_group_dict[period]
        return None

    def average_parameters(self, params):
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
