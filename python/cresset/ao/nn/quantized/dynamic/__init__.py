"""Layers whose weights are int8, or float16, and whose inputs are quantized while they run."""

from .modules import GRU, LSTM, GRUCell, Linear, LSTMCell, RNNCell

__all__ = ["Linear", "LSTM", "GRU", "LSTMCell", "RNNCell", "GRUCell"]
