"""Helpers that functions of arrays share."""

import operator

import numpy

from ._ndarray import array, asarray, ndarray, plain

__all__ = ["AxisError", "UFuncTypeError", "array", "asarray", "is_sequence", "ndarray", "normalize_axis_index", "normalize_axis_tuple", "plain"]

AxisError = numpy.exceptions.AxisError


class UFuncTypeError(TypeError, RuntimeError):
    """A function of elements is not for these dtypes."""


def is_sequence(seq):
    """Is it no text and has a length?"""
    if isinstance(seq, str):
        return False
    try:
        len(seq)
    except Exception:
        return False
    return True


def normalize_axis_index(ax, ndim, argname=None):
    """The dimension's number from the front. AxisError outside of the array."""
    if not -ndim <= ax < ndim:
        raise AxisError(f"axis {ax} is out of bounds for array of dimension {ndim}")
    return ax % ndim if ndim else 0


def normalize_axis_tuple(axis, ndim, argname=None, allow_duplicate=False):
    """Dimensions' numbers from the front. AxisError outside of the array; ValueError where one comes twice."""
    try:
        axes = (operator.index(axis),)
    except TypeError:
        axes = tuple(axis)
    axes = tuple(normalize_axis_index(ax, ndim, argname) for ax in axes)
    if not allow_duplicate and len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis in `{argname}` argument" if argname else "repeated axis")
    return axes
