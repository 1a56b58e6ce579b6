"""Random numbers: of Cresset's generator, or of NumPy's where `_dynamo.config.use_numpy_random_stream` says so."""

import functools
import math

import numpy

import cresset

from ._ndarray import array, asarray, ndarray, plain, wrap

__all__ = ["choice", "normal", "rand", "randint", "randn", "random", "random_sample", "sample", "seed", "shuffle", "uniform", "use_numpy_random"]


def use_numpy_random():
    """Do numbers come from NumPy's generator?"""
    from cresset._dynamo import config

    return config.use_numpy_random_stream


def _either(function):
    """Decorator: NumPy's function of this name in place of it where numbers come from NumPy's generator."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not use_numpy_random():
            return function(*args, **kwargs)
        made = getattr(numpy.random, function.__name__)(*map(plain, args), **{key: plain(v) for key, v in kwargs.items()})
        return wrap(made) if isinstance(made, (numpy.ndarray, numpy.generic)) else made

    return call


def seed(seed=None):
    """Start the generator of the CPU, or NumPy's, at a number or anywhere."""
    if use_numpy_random():
        numpy.random.seed(seed)
    elif seed is not None:
        cresset.random.manual_seed(seed)


def _shape(size):
    return () if size is None else (size,) if isinstance(size, int) else tuple(size)


def _result(tensor, size):
    return float(tensor) if size is None else ndarray(tensor)


@_either
def random_sample(size=None):
    """Numbers of [0, 1), float64; a Python number without a size."""
    return _result(cresset.rand(_shape(size), dtype=cresset.float64), size)


random = sample = random_sample


@_either
def rand(*size):
    """random_sample with sizes one by one."""
    return random_sample(size or None)


@_either
def uniform(low=0.0, high=1.0, size=None):
    """Numbers of [low, high), float64."""
    return _result(low + (high - low) * cresset.rand(_shape(size), dtype=cresset.float64), size)


@_either
def randn(*size):
    """Standard normal numbers with sizes one by one, float64."""
    return _result(cresset.randn(size, dtype=cresset.float64), size or None)


@_either
def normal(loc=0.0, scale=1.0, size=None):
    """Normal numbers around loc, float64."""
    return _result(loc + scale * cresset.randn(_shape(size), dtype=cresset.float64), size)


@_either
def randint(low, high=None, size=None):
    """Whole numbers of [low, high), or of [0, low); int64, a Python number without a size."""
    low, high = (0, low) if high is None else (low, high)
    made = cresset.randint(low, high, _shape(size))
    return int(made) if size is None else ndarray(made)


def shuffle(x):
    """Put the rows of an array, or of a tensor, into another order, in place. NotImplementedError for anything else."""
    tensor = x.tensor if isinstance(x, ndarray) else x
    if not isinstance(tensor, cresset.Tensor):
        raise NotImplementedError("We do not random.shuffle lists in-place.")
    tensor.copy_(tensor[cresset.randperm(len(tensor))].clone())


@_either
def choice(a, size=None, replace=True, p=None):
    """Elements of a one-dimensional array, or of range(a), drawn with probabilities p."""
    values = numpy.arange(a) if isinstance(a, int) else plain(asarray(a))
    count = math.prod(_shape(size))
    weights = cresset.ones(len(values), dtype=cresset.float64) if p is None else asarray(p).tensor.double()
    drawn = cresset.multinomial(weights, count, replacement=replace).numpy()
    return wrap(values[drawn.reshape(_shape(size))]) if size is not None else array(values[drawn[0]])
