"""The older name of `ao.nn.intrinsic`."""

from cresset.ao._old_names import place

place("nn.intrinsic")
