"""What passes are built of."""

from . import pass_base, pass_manager  # noqa: F401
