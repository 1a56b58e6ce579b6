"""Data pipes: streams (`iter`) and indexed collections (`map`) of samples that are chained by methods, `source.map(f).shuffle().batch(4)`."""

from . import iter, map, utils  # noqa: F401
