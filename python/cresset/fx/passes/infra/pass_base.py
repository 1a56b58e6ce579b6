"""The base class of passes."""

import abc
from typing import NamedTuple

from ....nn import Module

__all__ = ["PassResult", "PassBase"]


class PassResult(NamedTuple):
    """What a pass gives: the module, and whether it changed."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass: override call(graph_module) → PassResult, and requires and ensures, which check before and after it."""

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module):
        """Change the module."""

    def requires(self, graph_module):  # noqa: B027
        """Check the module before the pass."""

    def ensures(self, graph_module):  # noqa: B027
        """Check the module after the pass."""
