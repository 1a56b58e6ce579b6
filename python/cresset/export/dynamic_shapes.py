"""Names for sizes: what dynamic_shapes of export says about dimensions."""

__all__ = ["Dim", "dims"]


class _DimHint:
    """A wish for a dimension without a name."""

    def __init__(self, kind):
        self.kind = kind

    def __repr__(self):
        return f"_DimHint({self.kind})"


class Dim:
    """Dim(name, *, min=None, max=None): a size with a name and bounds. Dim.STATIC is the size of the example."""

    AUTO, DYNAMIC, STATIC = _DimHint("AUTO"), _DimHint("DYNAMIC"), _DimHint("STATIC")

    def __init__(self, name, *, min=None, max=None):
        low, high = 0 if min is None else min, max
        if high is not None and high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, high

    def __repr__(self):
        return f"Dim('{self.__name__}', min={self.min}, max={self.max})"


def dims(*names, min=None, max=None):
    """A Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def _is_dynamic(value):
    return isinstance(value, Dim) or isinstance(value, _DimHint) and value is not Dim.STATIC
