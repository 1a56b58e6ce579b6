"""Random fills in extensions: distributions and kernels over generators of their own."""

import math
from pathlib import Path

import pytest
from compiling import needs_pybind11

import cresset
from cresset.utils import cpp_extension

SOURCES = Path(__file__).parent / "sources"
pytestmark = [needs_pybind11]
FIRST = 1000 / 2**21  # random64() of the generator of the source begins with 1000 << 32, of which 53 bits count


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    source = SOURCES / "random_module.cpp"
    return cpp_extension.load(
        "random_module", source, extra_cflags=["-O0"], build_directory=tmp_path_factory.mktemp("random")
    )


def test_kernels_take_the_iterator(module):
    generator = cresset.Generator().manual_seed(3)
    x = module.half_range(cresset.empty(100, dtype=cresset.float64), 2.0, 4.0, generator)
    assert x.min() >= 2 and x.max() < 3 and x.unique().numel() == 100


def test_generators_with_a_key_of_their_own(module):
    generator = module.reversing_generator()
    assert cresset.randperm(4, generator=generator).tolist() == [3, 2, 1, 0]
    assert cresset.randperm(3, generator=generator, out=cresset.empty(3, dtype=cresset.int32)).tolist() == [2, 1, 0]
    with pytest.raises(NotImplementedError, match="Register one with .*CustomRNGKeyId"):
        cresset.rand(3, generator=generator)
    # Called below the generator's key, a kernel of the CPU's generator does not take it for one of those.
    with pytest.raises(NotImplementedError, match="^generator: this operator draws from the CPU's own generator only; one of an ext"):
        keys = cresset._C.DispatchKeySet(cresset._C.DispatchKey.CPU)
        cresset.ops.aten.uniform_.default.redispatch(keys, cresset.empty(3), 0.0, 1.0, generator=generator)


@pytest.mark.parametrize(
    ("how", "dtype", "value"),
    [
        ("uniform_int", cresset.int32, 1000),
        ("uniform_int", cresset.int8, 1000 % 128),
        ("uniform_int", cresset.int64, 1000 << 32),
        ("uniform_int", cresset.float32, 1000),
        ("from_to", cresset.int16, 1000 % 7 - 3),
        ("full_range", cresset.int64, 1000 << 32),
        ("geometric", cresset.int64, math.ceil(math.log(FIRST) / math.log(0.5))),
        ("geometric", cresset.float32, math.ceil(math.log(1000 / 2**24) / math.log(0.5))),
        ("exponential", cresset.float64, -math.log1p(-FIRST) / 2),
        ("cauchy", cresset.float64, 1 + 2 * math.tan(math.pi * (FIRST - 0.5))),
        (
            "lognormal",
            cresset.float64,
            math.exp(math.sqrt(-2 * math.log1p(-1001 / 2**21)) * math.cos(2 * math.pi * FIRST)),
        ),
        ("bernoulli", cresset.float64, 1),
    ],
)
def test_distributions(module, how, dtype, value):
    assert module.draw(how, dtype) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("how", "dtype", "values"),
    [
        ("random", cresset.int32, [1000, 1001]),
        ("random", cresset.bool, [False, True]),
        ("from_to", cresset.int64, [5, 6]),
        ("geometric", cresset.int64, [math.ceil(math.log(n / 2**21) / math.log(0.5)) for n in (1000, 1001)]),
        ("exponential", cresset.float64, [-math.log1p(-n / 2**21) / 2 for n in (1000, 1001)]),
        ("cauchy", cresset.float64, [1 + 2 * math.tan(math.pi * (n / 2**21 - 0.5)) for n in (1000, 1001)]),
        ("bernoulli", cresset.float32, [1, 1]),
    ],
)
def test_fills(module, how, dtype, values):
    assert module.fill(how, cresset.empty(2, dtype=dtype)).tolist() == pytest.approx(values, rel=1e-12)


def test_fills_follow_the_memory(module):
    """As PyTorch's loops do: a transposed tensor gets the numbers of its memory's order, one with gaps likewise."""
    memory = cresset.empty(2, 3, dtype=cresset.int32)
    assert module.fill("random", memory.t()).t().tolist() == [[1000, 1001, 1002], [1003, 1004, 1005]]
    wide = cresset.zeros(2, 6, dtype=cresset.int32)
    module.fill("random", wide[:, ::2].t())
    assert wide.tolist() == [[1000, 0, 1001, 0, 1002, 0], [1003, 0, 1004, 0, 1005, 0]]


def test_log_normal_fills(module):
    x = module.fill("log_normal", cresset.empty(1, dtype=cresset.float64))
    assert x.item() == pytest.approx(module.draw("lognormal", cresset.float64))


def test_torch_h_has_python_in_an_extension(module):
    assert module.vector([1, 2]) == 2


def test_small_parts(module):
    assert module.small_parts() == [4, 3, 4, 1, -4, 3, 3]


def test_factories_by_using_declarations(module):
    assert module.made_with_options(cresset.ones(1, dtype=cresset.float64)).tolist() == [0, 1, 2, 3]


def test_states_of_generators_are_tensors(module):
    generator = cresset.Generator().manual_seed(3)
    expected = generator.get_state()
    first, again, state = module.drawn_again(generator)
    assert cresset.equal(first, again) and state.dtype is cresset.uint8 and cresset.equal(state, expected)
