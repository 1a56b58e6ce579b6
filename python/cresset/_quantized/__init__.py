"""Quantized tensors: whole numbers that stand for real ones by a scale and a zero point, of the whole tensor or of each row.

They are tensors that see operators below autograd (`__torch_dispatch__`; the rules are in _rules.py). _functions.py makes them.
"""

from ._rules import apply
from ._tensor import QuantizedTensor

QuantizedTensor._apply = staticmethod(apply)

__all__ = ["QuantizedTensor"]
