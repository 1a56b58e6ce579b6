"""Random operators, each by itself: its distribution beside the CPU's, its seeds, generators that are passed to it."""

import functools

import cresset

from .checks import NotApplicable, Wrong

__all__ = ["CASES", "check"]

# An odd number, past the blocks of kernels.
COUNT = 40_009
_SENTINEL = -77.0


def _in_place(name, *args, start=_SENTINEL):
    def draw(device, dtype, **generator):
        t = cresset.full((COUNT,), start, dtype=dtype, device=device)
        return getattr(t, name)(*args, **generator)

    return draw


def _of(make, *args, **kwargs):
    def draw(device, dtype, **generator):
        return make(*args, **kwargs, dtype=dtype, device=device, **generator)

    return draw


def _like(make, *args):
    def draw(device, dtype):
        return make(cresset.full((COUNT,), _SENTINEL, dtype=dtype, device=device), *args)

    return draw


def _full(value, device, dtype):
    return cresset.full((COUNT,), value, dtype=dtype, device=device)


def _dropped(make, *args):
    def draw(device, dtype):
        return make(_full(1.0, device, dtype), *args)

    return draw


_FLOAT, _INT = ("float32", "float64", "float16", "bfloat16"), ("int64", "int32")
_F = cresset.nn.functional

# operator -> (draw(device, dtype, generator=…), dtypes, takes a generator)
CASES = {
    "uniform_": (_in_place("uniform_", -1, 3), _FLOAT, True),
    "normal_": (_in_place("normal_", 2, 3), _FLOAT, True),
    "log_normal_": (_in_place("log_normal_", 0.5, 0.25), _FLOAT, True),
    "exponential_": (_in_place("exponential_", 1.5), _FLOAT, True),
    "geometric_": (_in_place("geometric_", 0.3), _FLOAT, True),
    "cauchy_": (_in_place("cauchy_", 1, 2), _FLOAT[:2], True),
    "random_": (_in_place("random_"), ("float32", "int64", "int32", "uint8"), True),
    "random_.from": (_in_place("random_", -5, 20), ("float32", "int64", "int32"), True),
    "random_.to": (_in_place("random_", 30), ("float32", "int64", "int32"), True),
    "bernoulli_.float": (_in_place("bernoulli_", 0.2), (*_FLOAT, "int64"), True),
    "bernoulli_.Tensor": (lambda device, dtype, **g: _full(_SENTINEL, device, dtype).bernoulli_(_full(0.2, device, cresset.float32), **g), _FLOAT[:2], True),
    "bernoulli": (lambda device, dtype, **g: cresset.bernoulli(_full(0.7, device, dtype), **g), _FLOAT, True),
    "bernoulli.p": (lambda device, dtype, **g: cresset.bernoulli(_full(_SENTINEL, device, dtype), 0.6, **g), _FLOAT, True),
    "poisson": (lambda device, dtype, **g: cresset.poisson(_full(3.5, device, dtype), **g), _FLOAT[:2], True),
    "binomial": (lambda device, dtype, **g: cresset.binomial(_full(9.0, device, dtype), _full(0.4, device, dtype), **g), _FLOAT[:2], True),
    "_standard_gamma": (lambda device, dtype, **g: cresset._standard_gamma(_full(1.7, device, dtype), **g), _FLOAT[:2], True),
    "_sample_dirichlet": (lambda device, dtype, **g: cresset._sample_dirichlet(cresset.full((COUNT, 3), 1.5, dtype=dtype, device=device), **g)[:, 0], _FLOAT[:2], True),
    "rand": (_of(cresset.rand, COUNT), _FLOAT, True),
    "randn": (_of(cresset.randn, COUNT), _FLOAT, True),
    "randint": (_of(cresset.randint, 17, (COUNT,)), (*_INT, "float32"), True),
    "randint.low": (_of(cresset.randint, -8, 9, (COUNT,)), (*_INT, "float32"), True),
    "randperm": (_of(cresset.randperm, COUNT), _INT, True),
    "rand_like": (_like(cresset.rand_like), _FLOAT, False),
    "randn_like": (_like(cresset.randn_like), _FLOAT, False),
    "randint_like": (_like(cresset.randint_like, 17), (*_INT, "float32"), False),
    "randint_like.low_dtype": (_like(cresset.randint_like, -8, 9), (*_INT, "float32"), False),
    "normal.Tensor_float": (lambda device, dtype, **g: cresset.normal(_full(2.0, device, dtype), 0.5, **g), _FLOAT[:2], True),
    "normal.float_Tensor": (lambda device, dtype, **g: cresset.normal(1.0, _full(2.5, device, dtype), **g), _FLOAT[:2], True),
    "normal.Tensor_Tensor": (lambda device, dtype, **g: cresset.normal(_full(1.0, device, dtype), _full(2.5, device, dtype), **g), _FLOAT[:2], True),
    "normal.float_float": (_of(cresset.normal, -1.0, 0.25, (COUNT,)), _FLOAT[:2], True),
    "multinomial": (lambda device, dtype, **g: cresset.multinomial(cresset.tensor([1.0, 2, 3, 4], dtype=dtype, device=device), COUNT, True, **g), _FLOAT[:2], True),
    "native_dropout": (lambda device, dtype: cresset.native_dropout(_full(1.0, device, dtype), 0.3, True)[0], _FLOAT, False),
    "dropout": (_dropped(_F.dropout, 0.3), _FLOAT[:2], False),
    "alpha_dropout": (_dropped(_F.alpha_dropout, 0.3, True), _FLOAT[:2], False),
    "rrelu_with_noise": (lambda device, dtype: _F.rrelu(_full(-1.0, device, dtype), 0.1, 0.4, training=True), _FLOAT[:2], False),
}  # fmt: skip


def check(name, device, dtype):
    """All of it for one operator in one dtype. NotApplicable in dtypes that it does not have."""
    draw, dtypes, takes_generator = CASES[name]
    if str(dtype).rpartition(".")[2] not in dtypes:
        raise NotApplicable
    if cresset.device(device).type == "meta":
        raise NotApplicable("meta tensors have no values")
    at = functools.partial(draw, device, dtype)
    first, second = _seeded(5, at, 2)
    again = _seeded(5, at, 1)[0]
    if first.dtype != (reference := _seeded(6, functools.partial(draw, "cpu", dtype), 1)[0]).dtype or first.shape != reference.shape:
        raise Wrong(f"result is {first.dtype} {list(first.shape)}, the CPU gives {reference.dtype} {list(reference.shape)}")
    if not cresset.equal(first, again):
        raise Wrong("the same seed gives other numbers")
    for what, other in (("two draws give", second), ("another seed gives", _seeded(11, at, 1)[0])):
        if cresset.equal(first, other):
            raise Wrong(f"{what} the same numbers")
    _same_distribution(first, reference)
    _same_distribution(second, reference)
    _independent(first, reference)
    _reaches_the_end(first, second, reference)
    if takes_generator:
        _passed_generator(device, at, first)


def _seeded(seed, draw, count):
    cresset.manual_seed(seed)
    return [draw().cpu() for _ in range(count)]


def _same_distribution(have, want):
    """The largest distance of the two distribution functions (Kolmogorov and Smirnov); a chance of 1e-5 that equal ones are told apart."""
    have, want = have.double().flatten(), want.double().flatten()
    values = cresset.cat([have, want]).unique()
    if have.isnan().any() != want.isnan().any():
        raise Wrong("NaN among the numbers")
    shares = [cresset.searchsorted(side.sort()[0], values, right=True).double() / side.numel() for side in (have, want)]
    distance, allowed = (shares[0] - shares[1]).abs().max().item(), 2.5 * (2 / have.numel()) ** 0.5
    if distance > allowed:
        raise Wrong(f"another distribution than on the CPU: mean {have.mean():.4g} and deviation {have.std():.4g}, there {want.mean():.4g} and {want.std():.4g}; "
                    f"their distribution functions are {distance:.3f} apart, {allowed:.3f} is allowed")
    # Numbers outside of a range are few. A value of a discrete distribution that never comes, or a forbidden one:
    kinds = want.unique()
    if kinds.numel() <= 64:
        frequent = cresset.tensor([k for k in kinds.tolist() if (want == k).sum() > 20], dtype=want.dtype)
        if not cresset.isin(frequent, have).all():
            raise Wrong(f"of the values {frequent.tolist()} only {have.unique().tolist()[:20]} come")
        if want.min() > have.min() and (have < want.min()).sum() > 20 or have.max() > want.max() and (have > want.max()).sum() > 20:
            raise Wrong("numbers outside of their range")
    ends = want.max() - want.min()
    if (have == have.round()).all() != (want == want.round()).all():
        raise Wrong("whole numbers on one of the devices, others on the other")
    if (want.abs() <= 4).all() and ((have < want.min() - 0.01 * ends) | (have > want.max() + 0.01 * ends)).any() and kinds.numel() > 64 and _has_ends(want):
        raise Wrong(f"numbers from {have.min():.6g} to {have.max():.6g}, on the CPU from {want.min():.6g} to {want.max():.6g}")


def _has_ends(want):
    """Does the distribution end where its sample ends (uniform), rather than thin out?"""
    ends = want.max() - want.min()
    return ((want > want.max() - 0.01 * ends).sum() > 0.004 * want.numel()).item() and ((want < want.min() + 0.01 * ends).sum() > 0.004 * want.numel()).item()


_LAGS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


def _independent(have, want):
    """No number follows from one a block before."""
    ranks = have.double().flatten().argsort().argsort().double() if have.unique().numel() > 1000 else have.double().flatten()
    ranks = ranks - ranks.mean()
    power = (ranks * ranks).mean()
    if power == 0:
        raise Wrong("all numbers are the same")
    for lag in _LAGS:
        correlation = ((ranks[lag:] * ranks[:-lag]).mean() / power).item()
        if abs(correlation) > 6 / ranks.numel() ** 0.5:
            raise Wrong(f"a number and the one {lag} places before are correlated: {correlation:.3f}")
    if want.unique().numel() > 0.9 * want.numel() and have.unique().numel() < 0.9 * want.unique().numel():
        raise Wrong(f"only {have.unique().numel()} different numbers of {have.numel()}, {want.unique().numel()} on the CPU")


def _reaches_the_end(first, second, reference):
    first, second = first.flatten(), second.flatten()
    if (first == _SENTINEL).any() and not (reference == _SENTINEL).any():
        raise Wrong("some elements are left as they were")
    if reference.unique().numel() > 1000 and (first[-9:] == second[-9:]).any():
        raise Wrong("the last numbers are the same in two draws")


def _passed_generator(device, at, of_seed_5):
    try:
        generator = cresset.Generator(device=device)
    except (RuntimeError, NotImplementedError) as error:
        raise NotApplicable("the device has no generators") from error

    def of(seed):
        return at(generator=generator.manual_seed(seed)).cpu()

    one, follows, other = of(21), at(generator=generator).cpu(), of(22)
    if cresset.equal(one, follows):
        raise Wrong("two draws from one generator give the same numbers")
    if not cresset.equal(one, of(21)):
        raise Wrong("a generator with the same seed gives other numbers")
    if cresset.equal(one, other):
        raise Wrong("a generator with another seed gives the same numbers")
    generator.manual_seed(21)
    at(generator=generator)
    state = generator.get_state()
    third = at(generator=generator).cpu()
    if not cresset.equal(third, follows):
        raise Wrong("the second draw of a generator depends on more than its seed")
    generator.set_state(state)
    if not cresset.equal(third, at(generator=generator).cpu()):
        raise Wrong("a generator whose state was put back gives other numbers")
    generator.manual_seed(33)
    cresset.manual_seed(5)
    at(generator=generator)
    if not cresset.equal(of_seed_5, at().cpu()):
        raise Wrong("a draw from a passed generator changes the default one")
    generator.manual_seed(21)
    at()
    if not cresset.equal(one, at(generator=generator).cpu()):
        raise Wrong("a draw from the default generator changes a passed one")
