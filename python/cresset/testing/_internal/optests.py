"""Checks of custom operators under the name that PyTorch's extensions import them by."""

from ..._library.opcheck import OpCheckError, opcheck

__all__ = ["OpCheckError", "opcheck"]
