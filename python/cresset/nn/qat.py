"""The older name of `ao.nn.qat`."""

from cresset.ao._old_names import place

place("nn.qat")
