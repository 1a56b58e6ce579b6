"""Distances between results of a model and of its quantized form; of lists of results, one number each."""

import functools

import cresset

__all__ = ["compute_cosine_similarity", "compute_normalized_l2_error", "compute_sqnr"]


def _each(measure):
    """Also of two lists, tuples or dicts of tensors with the same places; None where their kinds or numbers differ."""

    @functools.wraps(measure)
    def measured(x, y):
        if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            return [measured(a, b) for a, b in zip(x, y)] if len(x) == len(y) else None
        return measure(x, y)

    return measured


@_each
def compute_sqnr(x, y):
    """Signal to noise in decibels: 20 log10(|x| / |x - y|)."""
    return 20 * cresset.log10(cresset.norm(x) / cresset.norm(x - y))


@_each
def compute_normalized_l2_error(x, y):
    """|x - y| / |x|, each as a root of sums of squares."""
    return cresset.sqrt(((x - y) ** 2).sum() / (x**2).sum())


@_each
def compute_cosine_similarity(x, y):
    """Of both as rows, one number in a tensor of one element."""
    return cresset.nn.functional.cosine_similarity(x.reshape(1, -1), y.reshape(1, -1))
