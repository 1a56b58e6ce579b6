"""Changes an argument of a data sparsifier from epoch to epoch."""

import warnings

from ...scheduler.base_scheduler import count_steps, warn_about_order
from ..data_sparsifier.base_data_sparsifier import BaseDataSparsifier

__all__ = ["BaseDataScheduler"]


class BaseDataScheduler:
    """Sets `schedule_param` in the sparsifier's `data_groups` to what `get_schedule_param` of a derived class gives, {name: value}, at each `step()`.

    `base_param` has the values at the beginning; `last_epoch` the number of steps. With verbose each value is printed.
    """

    def __init__(self, data_sparsifier, schedule_param, last_epoch=-1, verbose=False):
        if not isinstance(data_sparsifier, BaseDataSparsifier):
            raise TypeError(f"{type(data_sparsifier).__name__} is not an instance of torch.ao.pruning.BaseDataSparsifier")
        self.data_sparsifier = data_sparsifier
        self.schedule_param = schedule_param
        self.base_param = {name: group.get(schedule_param) for name, group in data_sparsifier.data_groups.items()}
        self.last_epoch = last_epoch
        count_steps(data_sparsifier)
        data_sparsifier._step_count = 0
        self._step_count = 0
        self.verbose = verbose
        self._get_sp_called_within_step = False
        self.step()

    def get_schedule_param(self):
        """{name: value} at this step: for derived classes to say."""
        if not self._get_sp_called_within_step:
            warnings.warn("To get the last sparsity level computed by the scheduler, please use `get_last_param()`.", stacklevel=2)
        raise NotImplementedError

    def __repr__(self):
        return f"{type(self).__name__} (\nData Sparsifier {self.data_sparsifier}\n    {self.schedule_param}: {self.base_param}\n)"

    def state_dict(self):
        """All attributes but the sparsifier."""
        return {key: value for key, value in self.__dict__.items() if key != "data_sparsifier"}

    def load_state_dict(self, state_dict):
        """Take the attributes that state_dict gave."""
        self.__dict__.update(state_dict)

    def get_last_param(self):
        """The values that the last step set."""
        return self._last_param

    def step(self):
        """Set the values of the next epoch."""
        if self._step_count == 1:
            warn_about_order(self.data_sparsifier, "data_sparsifier")
        self._step_count += 1
        self._get_sp_called_within_step = True
        try:
            self.last_epoch += 1
            updated = self.get_schedule_param()
        finally:
            self._get_sp_called_within_step = False
        for name, value in updated.items():
            self.data_sparsifier.data_groups[name][self.schedule_param] = value
            if self.verbose:
                print(f"Adjusting {self.schedule_param} for group {name} to {value}")
        self._last_param = {name: group.get(self.schedule_param) for name, group in self.data_sparsifier.data_groups.items()}
        self.data_sparsifier.enable_mask_update = True
