"""Parts of data loading that have a name of their own."""

from . import collate  # noqa: F401
