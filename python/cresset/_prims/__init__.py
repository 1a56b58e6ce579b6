"""PyTorch's name of a package whose `utils` tests and libraries ask; there are no primitive operators of its kind here."""

from cresset import _prims_common as utils  # noqa: F401
