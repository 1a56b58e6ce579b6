"""Helpers of data pipes: streams, functions of columns, decoders, snapshots."""

from . import common, decoder, snapshot  # noqa: F401
