"""Parts of data loading that have a name of their own."""

from . import collate, fetch, pin_memory, worker  # noqa: F401

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds after which a waiting process looks whether the other one lives
