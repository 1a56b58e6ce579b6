"""Sets that parameters and values belong to. `constraint.check(value)` says for each event of a value whether it does."""

import cresset
from cresset import _C

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq", "independent",
    "integer_interval", "interval", "half_open_interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
    "MixtureSameFamilyConstraint", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_semidefinite",
    "positive_definite", "positive_integer", "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


def _everywhere(result):
    """Whether a bool tensor is true in all elements, inside of vmap in those of all examples."""
    while isinstance(result, cresset.Tensor) and _C._is_batched(result):
        result = _C._batch_parts(result)[0]
    return bool(result.all())


class Constraint:
    """A set of values. `event_dim` rightmost dimensions of a tensor are one member; `is_discrete` says whether it is a set of separate points."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """A bool tensor of `value`'s shape without its event dimensions: whether each event belongs to the set."""
        raise NotImplementedError

    def __repr__(self):
        return self.__class__.__name__[1:] + "()"


class _Bounds(Constraint):
    """A set that bounds describe; they show when it is printed."""

    def __init__(self, **bounds):
        self.__dict__.update(bounds)

    def __repr__(self):
        return f"{self.__class__.__name__[1:]}({', '.join(f'{k}={v}' for k, v in self.__dict__.items())})"


class _Dependent(Constraint):
    """A set that depends on other parameters; what is not told about it raises NotImplementedError."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self):
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """Another one about which more is told."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint):
    """Whether it is a set that depends on parameters (`dependent`, `dependent_property`)."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a distribution that returns a set: on the class it is a dependent set itself."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        """Decorates `fn`, as `@dependent_property(is_discrete=..., event_dim=...)` does."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """The set of events all of whose elements along the last `reinterpreted_batch_ndims` dimensions belong to another set."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        assert isinstance(base_constraint, Constraint), (
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
        )
        assert isinstance(reinterpreted_batch_ndims, int), (
            f"reinterpreted_batch_ndims must be an int, got {type(reinterpreted_batch_ndims).__name__}"
        )
        assert reinterpreted_batch_ndims >= 0, (
            f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
        )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return result.reshape(result.shape[: result.dim() - self.reinterpreted_batch_ndims] + (-1,)).all(-1)

    def __repr__(self):
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The values that belong to the set of every component of a mixture; the set has the components as its last batch dimension."""

    def __init__(self, base_constraint):
        assert isinstance(base_constraint, Constraint), (
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
        )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        batch = value.dim() - self.event_dim
        if batch < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return result.reshape(result.shape[:batch] + (-1,)).all(-1)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _IntegerInterval(_Bounds):
    is_discrete = True

    def __init__(self, lower_bound, upper_bound):
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Bounds):
    is_discrete = True

    def __init__(self, upper_bound):
        super().__init__(upper_bound=upper_bound)

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Bounds):
    is_discrete = True

    def __init__(self, lower_bound):
        super().__init__(lower_bound=lower_bound)

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value):
        return value == value  # not NaN


class _GreaterThan(_Bounds):
    def __init__(self, lower_bound):
        super().__init__(lower_bound=lower_bound)

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_Bounds):
    def __init__(self, lower_bound):
        super().__init__(lower_bound=lower_bound)

    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Bounds):
    def __init__(self, upper_bound):
        super().__init__(upper_bound=upper_bound)

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Bounds):
    def __init__(self, lower_bound, upper_bound):
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Counts along the last dimension that are not negative and at most `upper_bound` together."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Cholesky factors with rows of length one."""

    event_dim = 2

    def check(self, value):
        tolerance = cresset.finfo(value.dtype).eps * value.size(-1) * 10
        lengths = cresset.linalg.norm(value.detach(), dim=-1)
        return _LowerCholesky().check(value) & ((lengths - 1).abs() < tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        return cresset.full(
            value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=cresset.bool, device=value.device
        )


class _Symmetric(_Square):
    def check(self, value):
        square = super().check(value)
        return square & cresset.isclose(value, value.mT, atol=1e-6).all(-2).all(-1) if _everywhere(square) else square


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return symmetric & cresset.linalg.eigvalsh(value).ge(0).all(-1) if _everywhere(symmetric) else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return symmetric & cresset.linalg.cholesky_ex(value).info.eq(0) if _everywhere(symmetric) else symmetric


class _Cat(Constraint):
    """Different sets for parts of a dimension, `lengths[i]` elements long each."""

    def __init__(self, cseq, dim=0, lengths=None):
        assert all(isinstance(c, Constraint) for c in cseq), "All elements of cseq must be Constraint instances"
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.cseq), f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
        self.dim = dim

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        return max(c.event_dim for c in self.cseq)

    def check(self, value):
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for tensor with {value.dim()} dimensions"
        )
        parts = value.split([*self.lengths, value.size(self.dim) - sum(self.lengths)], self.dim)
        return cresset.cat([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


class _Stack(Constraint):
    """Different sets for the places of a dimension."""

    def __init__(self, cseq, dim=0):
        assert all(isinstance(c, Constraint) for c in cseq), "All elements of cseq must be Constraint instances"
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value):
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for tensor with {value.dim()} dimensions"
        )
        return cresset.stack([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim))], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
