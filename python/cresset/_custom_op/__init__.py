"""The oldest interface of custom operators; `cresset.library.custom_op` is the one for new code."""

from . import impl  # noqa: F401
