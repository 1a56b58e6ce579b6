"""What every learning-rate schedule has: LRScheduler, and how rates are read and set."""

import warnings

from cresset import Tensor

from .optimizer import Optimizer

EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is used instead "
    "of the new chainable form, where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)


def set_value(group, key, value):
    """Set a hyperparameter, in place when it is a tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def copied(value):
    return value.clone() if isinstance(value, Tensor) else value


def per_group(optimizer, name, value):
    """`value` as a list with one entry for each parameter group."""
    groups = optimizer.param_groups
    if isinstance(value, (list, tuple)):
        if len(value) != len(groups):
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has {len(groups)}."
            )
        values = list(value)
    else:
        values = [value] * len(groups)
    return [v.clone() if isinstance(v, Tensor) else v for v in values]  # groups change theirs


class LRScheduler:
    """Base class: subclasses define `get_lr()`, the list of new rates for the epoch `self.last_epoch`."""

    __module__ = "cresset.optim.lr_scheduler"  # its public place

    # The rate follows from the epoch alone where a subclass also defines `_get_closed_form_lr()`.
    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", copied(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0. "
                        "Load the optimizer's state first, or use last_epoch=-1 for a fresh run."
                    )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        vars(optimizer).setdefault("_opt_called", False)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Everything but the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what state_dict returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates that were set last, one for each group."""
        return self._last_lr

    def get_lr(self):
        """The rates of the current epoch, from those of the epoch before."""
        raise NotImplementedError(f"{type(self).__name__}.get_lr: every schedule defines its own")

    def _warn_outside_step(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", stacklevel=3
            )

    def _current(self):
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, epoch=None):
        """Go to the next epoch (or to `epoch`) and set the rates."""
        if self._step_count == 1:
            if "step" in self.optimizer.__dict__:
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make "
                    "sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", True):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
                    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
                    "PyTorch skipping the first value of the learning rate schedule. See more details at "
                    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values):
            set_value(group, "lr", lr)
        self._last_lr = self._current()
