"""Averages of a model's parameters over training: stochastic weight averaging and exponential moving averages."""

import copy
import math

import cresset
from cresset.nn import Module

from ._schedule import LRScheduler, per_group

__all__ = [
    "AveragedModel", "SWALR", "update_bn", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn", "get_ema_avg_fn", "get_swa_avg_fn",
]  # fmt: skip


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay=0.999):
    """An exponential moving average of lists: the average keeps the part `decay`."""
    _check_decay(decay)

    @cresset.no_grad()
    def update(averages, currents, _):
        if averages[0].is_floating_point() or averages[0].is_complex():
            cresset._foreach_lerp_(averages, currents, 1 - decay)
        else:
            for average, current in zip(averages, currents):
                average.copy_(average * decay + current * (1 - decay))

    return update


def get_swa_multi_avg_fn():
    """The equal average of lists over all updates."""

    @cresset.no_grad()
    def update(averages, currents, num_averaged):
        if averages[0].is_floating_point() or averages[0].is_complex():
            cresset._foreach_lerp_(averages, currents, 1 / (float(num_averaged) + 1))
        else:
            for average, current in zip(averages, currents):
                average.copy_(average + (current - average) / (float(num_averaged) + 1))

    return update


def get_ema_avg_fn(decay=0.999):
    """An exponential moving average of one tensor."""
    _check_decay(decay)

    @cresset.no_grad()
    def update(average, current, _):
        return decay * average + (1 - decay) * current

    return update


def get_swa_avg_fn():
    """The equal average of one tensor over all updates."""

    @cresset.no_grad()
    def update(average, current, num_averaged):
        return average + (current - average) / (num_averaged + 1)

    return update


class AveragedModel(Module):
    """A copy of `model` (in `.module`) whose parameters `update_parameters(model)` averages; `n_averaged` counts the updates.

    `avg_fn(average, current, count)` gives the new average of one tensor, `multi_avg_fn(averages, currents, count)` changes lists in place; the
    default is the equal average. With `use_buffers` buffers are averaged too, otherwise copied.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", cresset.tensor(0, dtype=cresset.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _averaged(self, model):
        yield from model.parameters()
        if self.use_buffers:
            yield from model.buffers()

    def update_parameters(self, model):
        """Take the parameters of `model` into the average; the first time they are the average."""
        averages = [t.detach() for t in self._averaged(self.module)]
        currents = [t.detach().to(a.device) for t, a in zip(self._averaged(model), averages)]
        if self.n_averaged == 0:
            for average, current in zip(averages, currents):
                average.copy_(current)
        elif self.avg_fn is not None:
            for average, current in zip(averages, currents):
                average.copy_(self.avg_fn(average, current, self.n_averaged.to(average.device)))
        elif averages:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            groups = {}
            for average, current in zip(averages, currents):
                lists = groups.setdefault((average.device, average.dtype), ([], []))
                lists[0].append(average)
                lists[1].append(current)
            for old, new in groups.values():
                update(old, new, self.n_averaged.to(old[0].device))
        if not self.use_buffers:
            for average, current in zip(self.module.buffers(), model.buffers()):
                average.detach().copy_(current.detach().to(average.device))
        self.n_averaged += 1


@cresset.no_grad()
def update_bn(loader, model, device=None):
    """Compute the running statistics of the batch norms in `model` anew, in one pass over `loader`.

    A batch is a tensor, or a list or tuple whose first element is the input.
    """
    from cresset.nn.modules.batchnorm import _BatchNorm

    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None
    model.train()
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the rate of each group to `swa_lr` within `anneal_epochs` and keeps it there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, rate in zip(optimizer.param_groups, per_group(optimizer, "swa_lr", swa_lr)):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _fraction(self, step):
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self):
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._fraction(step - 1), self._fraction(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal, rate = group["swa_lr"], group["lr"]
            start = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
