"""Small questions about dimensions and specs."""

__all__ = ["is_tensor_partial", "normalize_dim", "normalize_dims"]


def normalize_dim(dim, ndim):
    """A dimension counted from the front."""
    return dim if dim >= 0 else dim + ndim


def normalize_dims(dims, ndim):
    """Dimensions counted from the front."""
    return (normalize_dim(dims, ndim),) if isinstance(dims, int) else tuple(normalize_dim(d, ndim) for d in dims)


def is_tensor_partial(spec):
    """Has the spec terms of a reduction?"""
    return any(p.is_partial() for p in spec.placements)
