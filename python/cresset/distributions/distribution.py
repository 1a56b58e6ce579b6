"""The base of all distributions."""

import warnings

import cresset

from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A distribution of `batch_shape` independent members, each of which has values of `event_shape`.

    A sample has the shape `sample_shape + batch_shape + event_shape`; `log_prob` takes what broadcasts with `batch_shape + event_shape` and
    returns the shape without the event's dimensions. `validate_args` (on unless Python runs with `-O`) checks parameters and values and raises
    ValueError for those outside of `arg_constraints` and `support`.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether distributions made from now on check their arguments; ValueError for what is not a bool."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=cresset.Size(), event_shape=cresset.Size(), validate_args=None):
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            expected = self.arg_constraints
        except NotImplementedError:
            expected = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in expected.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # computed from another parameter that is checked
            value = getattr(self, name)
            if not constraints._everywhere(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} "
                    f"to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape, _instance=None):
        """The distribution with `batch_shape`, to which the present one must broadcast; no memory is taken for it."""
        raise NotImplementedError

    @property
    def batch_shape(self):
        """The shape of the members."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one value of one member."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """Name of each parameter to the set that it belongs to."""
        raise NotImplementedError

    @property
    def support(self):
        """The set of the values that have density or probability."""
        raise NotImplementedError

    @property
    def mean(self):
        """Of shape `batch_shape + event_shape`."""
        raise NotImplementedError

    @property
    def mode(self):
        """A likeliest value, of shape `batch_shape + event_shape`."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """Of shape `batch_shape + event_shape`."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape=cresset.Size()):
        """Random values of shape `sample_shape + batch_shape + event_shape`, without gradients."""
        with cresset.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=cresset.Size()):
        """Random values through which gradients reach the parameters; NotImplementedError unless `has_rsample`."""
        raise NotImplementedError

    def sample_n(self, n):
        """The older form of `sample((n,))`."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(cresset.Size((n,)))

    def log_prob(self, value):
        """The logarithm of density or probability of each event of `value`."""
        raise NotImplementedError

    def cdf(self, value):
        """The probability of at most `value`."""
        raise NotImplementedError

    def icdf(self, value):
        """The inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution along a new first dimension; the batch's dimensions have size one unless `expand`."""
        raise NotImplementedError

    def entropy(self):
        """In nats, of shape `batch_shape`."""
        raise NotImplementedError

    def perplexity(self):
        """The exponential of the entropy."""
        return cresset.exp(self.entropy())

    def _extended_shape(self, sample_shape=cresset.Size()):
        return cresset.Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value):
        if not isinstance(value, cresset.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape = value.size()
        if shape[value.dim() - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(shape), reversed(expected))):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not constraints._everywhere(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support ({support!r}) of the "
                f"distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom "
                ".expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _expanded(self, cls, batch_shape, _instance, *names):
        """A new instance of `cls` (or `_instance`) whose attributes `names` are expanded; one that is not computed yet stays so."""
        new = self._get_checked_instance(cls, _instance)
        batch_shape = cresset.Size(batch_shape)
        batch = len(self._batch_shape)
        for name in names:
            value = self.__dict__.get(name)
            if isinstance(value, Distribution):
                value = value.expand(batch_shape + value.batch_shape[batch:])
            elif isinstance(value, cresset.Tensor):
                value = value.expand(batch_shape + value.shape[batch:])
            if name in self.__dict__:
                new.__dict__[name] = value
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self):
        shown = ((name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__)
        return f"{self.__class__.__name__}({', '.join(f'{k}: {v if v.numel() == 1 else v.size()}' for k, v in shown)})"
