"""What the word `reduction` and its old spelling mean, as other libraries import it."""

from cresset.nn._functional._common import legacy_reduction as legacy_get_string
from cresset.nn._functional._common import reduction_code


def get_enum(reduction: str) -> int:
    """0, 1 or 2 for "none", "mean" or "sum"; ValueError for anything else."""
    return reduction_code(reduction)


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that `size_average` and `reduce` mean."""
    return reduction_code(legacy_get_string(size_average, reduce, emit_warning))


__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]
