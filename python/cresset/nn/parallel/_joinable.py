"""The classes of distributed.algorithms.join that modules derive from, where importing them needs no communication."""

from abc import ABC, abstractmethod
from typing import NamedTuple

__all__ = ["JoinHook", "Joinable"]


class JoinHook:
    """What a rank that is out of inputs does while others go on."""

    def main_hook(self):
        """The collectives of one iteration of the others; called once for each."""

    def post_hook(self, is_last_joiner):
        """When all ranks are out of inputs; `is_last_joiner` on those that were last."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config():
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """What takes part in Join. An iteration begins with Join.notify_join_context(self), before its first collective."""

    @abstractmethod
    def __init__(self):
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs):
        """The JoinHook; `kwargs` are those of Join."""

    @property
    @abstractmethod
    def join_device(self):
        """The device of the collectives that Join adds."""

    @property
    @abstractmethod
    def join_process_group(self):
        """The group of the collectives that Join adds."""


for _kind in (JoinHook, Joinable, _JoinConfig):
    _kind.__module__ = "cresset.distributed.algorithms.join"
del _kind
