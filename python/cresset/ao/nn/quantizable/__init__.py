"""Layers that can be quantized: made of parts that can."""

from . import modules  # noqa: F401
from .modules import LSTM, LSTMCell, MultiheadAttention  # noqa: F401
