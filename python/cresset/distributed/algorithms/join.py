"""Ranks with different numbers of inputs: those that are out of inputs take part in the collectives of the others."""

import warnings

import cresset
from cresset import distributed as dist
from cresset.nn.parallel._joinable import Joinable, JoinHook, _JoinConfig

__all__ = ["Join", "JoinHook", "Joinable"]

_WARN_AFTER = 1000  # iterations without inputs


class Join:
    """A context for loops over inputs whose number differs between ranks.

    Each iteration of a rank with inputs begins with a small all_reduce, by which those without know that there is one more, and call the
    main hooks of the `joinables`, in their order. When all are out of inputs the post hooks are called. With `throw_on_early_termination`
    all ranks raise RuntimeError as soon as one is out. The other keywords are passed to Joinable.join_hook.
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable, self._throw = joinables, enable, throw_on_early_termination
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        for n, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable=enable, throw_on_early_termination=throw_on_early_termination, is_first_joinable=n == 0)
        groups = {id(joinable.join_process_group): joinable.join_process_group for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._process_group, self._device = joinables[0].join_process_group, joinables[0].join_device
        self._rank = dist.get_rank(self._process_group)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        try:
            if self._enable and not kind:
                self._shadow()
        finally:
            for joinable in self._joinables:
                joinable._join_config = _JoinConfig.construct_disabled_join_config()

    def _shadow(self):
        """Until all ranks are out of inputs."""
        for joinable in self._joinables:  # main hooks may begin iterations, which are the others' and not announced again
            joinable._join_config = joinable._join_config._replace(is_first_joinable=False)
        is_last, rounds = True, 0
        while self._count_with_inputs():
            if self._throw:
                self._tell_to_stop()
            is_last = False
            if rounds == _WARN_AFTER:
                warnings.warn(
                    "Detected uneven input skew of greater than 1000. This means that rank "
                    f"{self._rank} has at least 1000 fewer inputs than other currently-active ranks. This level of skew could lead to performance "
                    "degradation during training.",
                    stacklevel=3,
                )
            rounds += 1
            for hook in self._join_hooks:
                hook.main_hook()
        for hook in self._join_hooks:
            hook.post_hook(is_last)

    def _count_with_inputs(self):
        count = cresset.zeros(1, device=self._device)
        dist.all_reduce(count, group=self._process_group)
        return int(count.item())

    def _tell_to_stop(self):
        dist.all_reduce(cresset.ones(1, device=self._device), group=self._process_group)
        raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable):
        """Say to the ranks without inputs that this one has another: a Work whose value is how many have, or None outside of Join.

        Only the first joinable of a context speaks. RuntimeError where `throw_on_early_termination` was asked for and a rank is out of inputs.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not (config.is_first_joinable and config.enable):
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = dist.all_reduce(cresset.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            stopped = cresset.zeros(1, device=device)
            dist.all_reduce(stopped, group=group)
            if stopped.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
