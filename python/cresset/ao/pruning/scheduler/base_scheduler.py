"""Changes the level of sparsity from epoch to epoch."""

import functools
import warnings
import weakref

from ..sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


def count_steps(sparsifier):
    """Let `sparsifier.step` count its calls in `_step_count`, once."""
    if getattr(sparsifier.step, "_with_counter", False):
        return
    held, plain = weakref.ref(sparsifier), sparsifier.step.__func__

    @functools.wraps(plain)
    def step(*args, **kwargs):
        sparsifier = held()
        sparsifier._step_count += 1
        return plain.__get__(sparsifier, type(sparsifier))(*args, **kwargs)

    step._with_counter = True
    sparsifier.step = step


def warn_about_order(sparsifier, what):
    """Warn when `sparsifier.step` was not called before the first step of its scheduler."""
    if not getattr(sparsifier.step, "_with_counter", False):
        warnings.warn(
            f"Seems like `{what}.step()` has been overridden after sparsity scheduler initialization. Please, make sure to call `{what}.step()` before `scheduler.step()`.",
            UserWarning,
            stacklevel=3,
        )
    elif sparsifier._step_count < 1:
        warnings.warn(
            f"Detected call of `scheduler.step()` before `{what}.step()`. You have to make sure you run the {what}.step() BEFORE any calls to the scheduler.step().",
            UserWarning,
            stacklevel=3,
        )


class BaseScheduler:
    """Sets "sparsity_level" of the sparsifier's groups to what `get_sl` of a derived class gives, at each `step()`.

    `base_sl` has the levels at the beginning; `last_epoch` the number of steps. With verbose each level is printed.
    """

    def __init__(self, sparsifier, last_epoch=-1, verbose=False):
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier")
        self.sparsifier = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch = last_epoch
        count_steps(sparsifier)
        sparsifier._step_count = 0
        self._step_count = 0
        self.verbose = verbose
        self._get_sl_called_within_step = False
        self.step()

    def state_dict(self):
        """All attributes but the sparsifier."""
        return {key: value for key, value in self.__dict__.items() if key != "sparsifier"}

    def load_state_dict(self, state_dict):
        """Take the attributes that state_dict gave."""
        self.__dict__.update(state_dict)

    def get_last_sl(self):
        """The levels that the last step set."""
        return self._last_sl

    def get_sl(self):
        """The levels of all groups at this step: for derived classes to say."""
        if not self._get_sl_called_within_step:
            warnings.warn("To get the last sparsity level computed by the scheduler, please use `get_last_sl()`.", stacklevel=2)
        raise NotImplementedError

    def _warn_outside_of_step(self):
        if not self._get_sl_called_within_step:
            warnings.warn("To get the last sparsity level computed by the scheduler, please use `get_last_sl()`.", stacklevel=3)

    def print_sl(self, is_verbose, group, sl, epoch=None):
        """Print the level of a group."""
        if is_verbose:
            where = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{where} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self):
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch=None):
        """Set the levels of the next epoch. `epoch` is for what is printed only."""
        if self._step_count == 1:
            warn_about_order(self.sparsifier, "sparsifier")
        self._step_count += 1
        self._get_sl_called_within_step = True
        try:
            self.last_epoch += 1
            values = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for i, (group, sl) in enumerate(zip(self.sparsifier.groups, values)):
            group["sparsity_level"] = sl
            self.print_sl(self.verbose, i, sl, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var):
        """`var`, or so many of it, as a list with an element for each group."""
        count = len(self.sparsifier.groups)
        if not isinstance(var, (list, tuple)):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)
