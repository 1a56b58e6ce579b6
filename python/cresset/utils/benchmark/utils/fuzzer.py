"""Random sizes, layouts and values for measurements, the same for a seed."""

import itertools
import math
import random

import cresset

__all__ = ["Fuzzer", "FuzzedParameter", "ParameterAlias", "FuzzedTensor", "FuzzedSparseTensor"]

_DISTRIBUTIONS = ("loguniform", "uniform")


class ParameterAlias:
    """A value of a parameter's distribution that stands for another parameter: it has that one's value."""

    def __init__(self, alias_to):
        self.alias_to = alias_to

    def __repr__(self):
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A parameter `name`: an integer or number from "uniform" or "loguniform" `minval` to `maxval`, or a key of the dictionary `distribution` by its weight.

    `strict`: the values of the dictionary sum to 1 (ValueError otherwise).
    """

    def __init__(self, name, minval=None, maxval=None, distribution=None, strict=False):
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        if distribution is None or (not isinstance(distribution, dict) and distribution not in _DISTRIBUTIONS):
            raise AssertionError(f"Unknown distribution: {distribution}")
        if isinstance(distribution, dict):
            if minval is not None or maxval is not None:
                raise AssertionError("a dictionary of values takes neither minval nor maxval")
            total = sum(distribution.values())
            if strict and abs(total - 1) > 1e-6:
                raise ValueError(f"Distribution does not sum to 1: {total}")
            distribution = {value: weight / total for value, weight in distribution.items()}
        elif minval is None or maxval is None:
            raise AssertionError("minval and maxval were required")
        self._distribution = distribution

    @property
    def name(self):
        """The parameter's name."""
        return self._name

    def sample(self, state):
        """A value, by a random.Random."""
        if isinstance(self._distribution, dict):
            return state.choices(list(self._distribution), list(self._distribution.values()))[0]
        if self._distribution == "loguniform":
            value = math.exp(state.uniform(math.log(self._minval), math.log(self._maxval)))
            return round(value) if isinstance(self._minval, int) and isinstance(self._maxval, int) else value
        if isinstance(self._minval, int) and isinstance(self._maxval, int):
            return state.randint(self._minval, self._maxval)
        return state.uniform(self._minval, self._maxval)


class FuzzedTensor:
    """A tensor `name` of sizes that are numbers or parameters' names, with `steps` between elements.

    With probability 1 - `probability_contiguous` its dimensions lie in another order in memory. Sizes are drawn again until the number of elements is
    within `min_elements`, `max_elements`, and the bytes within `max_allocation_bytes`. `dim_parameter` names the number of dimensions, `roll_parameter`
    how far the dimensions are rolled.
    """

    def __init__(
        self, name, size, steps=None, probability_contiguous=0.5, min_elements=None, max_elements=None, max_allocation_bytes=None, dim_parameter=None,
        roll_parameter=None, dtype=None, cuda=False, tensor_constructor=None,
    ):  # fmt: skip
        self._name, self._size, self._steps, self._contiguous = name, size, steps, probability_contiguous
        self._min, self._max, self._most_bytes = min_elements, max_elements, max_allocation_bytes
        self._dim, self._roll, self._dtype, self._cuda, self._make = dim_parameter, roll_parameter, dtype or cresset.float32, cuda, tensor_constructor

    @property
    def name(self):
        """The tensor's name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size, dtype, **kwargs):
        """Normal numbers; for integers up to 127."""
        if dtype.is_floating_point or dtype.is_complex:
            return cresset.randn(size=size, dtype=dtype, device="cpu")
        return cresset.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def _sizes(self, params):
        resolve = lambda values, default: [params.get(v, v) if isinstance(v, str) else v for v in values or default]  # noqa: E731
        size = resolve(self._size, ())
        steps = resolve(self._steps, [1] * len(size))
        if self._dim is not None:
            size, steps = (v[: params[self._dim]] for v in (size, steps))
        return tuple(size), tuple(steps)

    def satisfies_constraints(self, params):
        """Do the sizes fit?"""
        size, steps = self._sizes(params)
        n = math.prod(size)
        allocated = math.prod(a * b for a, b in zip(size, steps)) * self._dtype.itemsize
        return ((self._min is None or n >= self._min) and (self._max is None or n <= self._max)
                and (self._most_bytes is None or allocated <= self._most_bytes))  # fmt: skip

    def _make_tensor(self, params, state):
        """(tensor, facts about it)."""
        size, steps = self._sizes(params)
        allocated = tuple(a * b for a, b in zip(size, steps))
        tensor = (self._make or self.default_tensor_constructor)(size=allocated, dtype=self._dtype, **params)
        if self._cuda:
            tensor = tensor.cuda()
        order = list(range(tensor.dim()))
        if tensor.dim() > 1 and state.random() > self._contiguous:
            state.shuffle(order)
            inverse = sorted(range(len(order)), key=order.__getitem__)
            tensor = tensor.permute(order).contiguous().permute(inverse)
        tensor = tensor[tuple(slice(0, a * b, b) for a, b in zip(size, steps))]
        return tensor, {"numel": tensor.numel(), "order": order, "steps": steps, "is_contiguous": tensor.is_contiguous(), "dtype": str(self._dtype)}


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse tensor in coordinates: NotImplementedError when it is made where sparse tensors are not part of the build."""

    def __init__(
        self, name, size, min_elements=None, max_elements=None, dim_parameter=None, sparse_dim=None, nnz=None, density=None, coalesced=None, dtype=None,
        cuda=False,
    ):  # fmt: skip
        super().__init__(name, size, min_elements=min_elements, max_elements=max_elements, dim_parameter=dim_parameter, dtype=dtype, cuda=cuda)
        self._sparse_dim, self._nnz, self._density, self._coalesced = sparse_dim, nnz, density, coalesced

    def _make_tensor(self, params, state):
        size, _ = self._sizes(params)
        value = lambda v, default: params.get(v, v) if v is not None else default  # noqa: E731
        sparse_dim = min(value(self._sparse_dim, len(size)), len(size))
        nnz = value(self._nnz, None)
        if nnz is None:
            nnz = math.ceil(math.prod(size[:sparse_dim]) * value(self._density, 0.1))
        indices = cresset.stack([cresset.randint(0, max(n, 1), (nnz,)) for n in size[:sparse_dim]])
        tensor = cresset.sparse_coo_tensor(indices, self.default_tensor_constructor((nnz, *size[sparse_dim:]), self._dtype), size)
        tensor = tensor.coalesce() if value(self._coalesced, True) else tensor
        return tensor, {"numel": math.prod(size), "shape": size, "sparse_dim": sparse_dim, "nnz": nnz, "dtype": str(self._dtype)}


class Fuzzer:
    """Draws parameters that fulfil `constraints` (functions of them by name) and makes tensors of them; `take(n)` gives n of
    (tensors by name, facts by name, parameters)."""

    def __init__(self, parameters, tensors, constraints=None, seed=None):
        self._seed = random.SystemRandom().randrange(2**31) if seed is None else seed
        flat = lambda values: list(itertools.chain.from_iterable(v if isinstance(v, (list, tuple)) else [v] for v in values))  # noqa: E731
        self._parameters, self._tensors, self._constraints = flat(parameters), flat(tensors), constraints or ()
        names = [p.name for p in self._parameters] + [t.name for t in self._tensors]
        if len(set(names)) < len(names):
            raise ValueError("Fuzzer: names of parameters and tensors have to be different")
        self._rejections = self._total = 0

    @property
    def rejection_rate(self):
        """The share of draws that did not fulfil the constraints; None before the first."""
        return self._rejections / self._total if self._total else None

    def _draw(self, state):
        for _ in range(1000):
            self._total += 1
            params = {p.name: p.sample(state) for p in self._parameters}
            params = {k: params[v.alias_to] if isinstance(v, ParameterAlias) else v for k, v in params.items()}
            if all(c(**params) for c in self._constraints) and all(t.satisfies_constraints(params) for t in self._tensors):
                return params
            self._rejections += 1
        raise ValueError("Fuzzer: no parameters fulfil the constraints within 1000 draws.")

    def take(self, n):
        """n draws, a generator."""
        state = random.Random(self._seed)
        for _ in range(n):
            params = self._draw(state)
            with cresset.random.fork_rng(devices=[]):
                cresset.manual_seed(state.randrange(2**31))
                made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield {k: v[0] for k, v in made.items()}, {k: v[1] for k, v in made.items()}, params
