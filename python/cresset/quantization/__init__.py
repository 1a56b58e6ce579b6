"""The older name of `ao.quantization`."""

from cresset.ao._old_names import place

place("quantization")
