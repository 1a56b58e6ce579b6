"""The older name of `ao.nn.quantizable`."""

from cresset.ao._old_names import place

place("nn.quantizable")
