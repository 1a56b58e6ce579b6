"""The layers by kind."""

from .linear import Linear
from .rnn import GRU, LSTM, GRUCell, LSTMCell, RNNCell

__all__ = ["Linear", "GRU", "LSTM", "LSTMCell", "RNNCell", "GRUCell"]
