"""Pruning of whole rows: masks of rows, and the removal of the rows and of what computes with them."""

from .base_structured_sparsifier import BaseStructuredSparsifier  # noqa: F401
from .FPGM_pruner import FPGMPruner  # noqa: F401
from .lstm_saliency_pruner import LSTMSaliencyPruner  # noqa: F401
from .parametrization import BiasHook, FakeStructuredSparsity  # noqa: F401
from .saliency_pruner import SaliencyPruner  # noqa: F401
