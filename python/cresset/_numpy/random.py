"""Random numbers: of Cresset's generator, or of NumPy's within `use_numpy_random`'s setting."""

import math

import numpy

import cresset

from ._ndarray import array, asarray, ndarray, plain, wrap

__all__ = ["choice", "normal", "rand", "randint", "randn", "random", "random_sample", "sample", "seed", "shuffle", "uniform", "use_numpy_random"]


def use_numpy_random():
    """Whether numbers come from NumPy's generator: never."""
    return False


def seed(seed=None):
    """Start the generator of the CPU, at a number or anywhere."""
    if seed is not None:
        cresset.random.manual_seed(seed)


def _shape(size):
    return () if size is None else (size,) if isinstance(size, int) else tuple(size)


def _result(tensor, size):
    return float(tensor) if size is None else ndarray(tensor)


def random_sample(size=None):
    """Numbers of [0, 1), float64; a Python number without a size."""
    return _result(cresset.rand(_shape(size), dtype=cresset.float64), size)


random = sample = random_sample


def rand(*size):
    """random_sample with sizes one by one."""
    return random_sample(size or None)


def uniform(low=0.0, high=1.0, size=None):
    """Numbers of [low, high), float64."""
    return _result(low + (high - low) * cresset.rand(_shape(size), dtype=cresset.float64), size)


def randn(*size):
    """Standard normal numbers with sizes one by one, float64."""
    return _result(cresset.randn(size, dtype=cresset.float64), size or None)


def normal(loc=0.0, scale=1.0, size=None):
    """Normal numbers around loc, float64."""
    return _result(loc + scale * cresset.randn(_shape(size), dtype=cresset.float64), size)


def randint(low, high=None, size=None):
    """Whole numbers of [low, high), or of [0, low); int64, a Python number without a size."""
    low, high = (0, low) if high is None else (low, high)
    made = cresset.randint(low, high, _shape(size))
    return int(made) if size is None else ndarray(made)


def shuffle(x):
    """Put the rows of an array, or of a tensor, into another order, in place."""
    tensor = x.tensor if isinstance(x, ndarray) else x
    tensor.copy_(tensor[cresset.randperm(len(tensor))].clone())


def choice(a, size=None, replace=True, p=None):
    """Elements of a one-dimensional array, or of range(a), drawn with probabilities p."""
    values = numpy.arange(a) if isinstance(a, int) else plain(asarray(a))
    count = math.prod(_shape(size))
    weights = cresset.ones(len(values), dtype=cresset.float64) if p is None else asarray(p).tensor.double()
    drawn = cresset.multinomial(weights, count, replacement=replace).numpy()
    return wrap(values[drawn.reshape(_shape(size))]) if size is not None else array(values[drawn[0]])
