"""The older name of `ao.nn.quantized`."""

from cresset.ao._old_names import place

place("nn.quantized")
