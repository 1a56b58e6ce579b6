"""What pooling says of windows that cannot be, with PyTorch 2.13's words."""

import cresset
import pytest

F = cresset.nn.functional

# dimensions, arguments of max_pool: stride, padding, dilation; kernel 2 where none is named; words of max_pool, words of avg_pool (None: as max_pool's).
CASES = [
    (1, {"stride": 0}, "max_pool1d() stride must be greater than zero, but got 0", "stride should not be zero"),
    (1, {"stride": -1}, "max_pool1d() stride must be greater than zero, but got -1", "stride should be greater than zero, but got dH: 1 dW: -1"),
    (1, {"kernel_size": 0}, "max_pool1d() kernel_size must be greater than zero, but got 0", "kernel size should be greater than zero, but got kH: 1 kW: 0"),
    (1, {"padding": -1}, "max_pool1d() padding must be non-negative, but got -1", "pad must be non-negative, but got pad: -1"),
    (1, {"padding": 2}, "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=2", None),
    (1, {"dilation": 0}, "max_pool1d() dilation must be greater than zero, but got 0", None),
    (2, {"stride": (1, 0)}, "stride should not be zero", None),
    (2, {"stride": -1}, "stride should be greater than zero, but got dH: -1 dW: -1", None),
    (2, {"kernel_size": 0}, "kernel size should be greater than zero, but got kH: 0 kW: 0", None),
    (2, {"padding": -1}, "pad must be non-negative, but got pad: -1", None),
    (2, {"dilation": 0}, "dilation should be greater than zero, but got dilationH: 0 dilationW: 0", None),
    (3, {"stride": (1, 1, 0)}, "stride should not be zero", None),
    (3, {"stride": -1}, "stride should be greater than zero, but got dT: -1 dH: -1 dW: -1", None),
    (3, {"kernel_size": 0}, "kernel size should be greater than zero, but got kT: 0 kH: 0 kW: 0", None),
    (3, {"dilation": 0}, "dilation should be greater than zero, but got dilationT: 0 dilationH: 0 dilationW: 0", None),
]


def refused(function, n, arguments):
    x = cresset.ones(1, 2, *[8] * n)
    with pytest.raises(RuntimeError) as error:
        getattr(F, f"{function}{n}d")(x, **{"kernel_size": 2, "stride": 1} | arguments)
    return str(error.value)


@pytest.mark.parametrize("n, arguments, of_max, of_avg", CASES)
def test_words(n, arguments, of_max, of_avg):
    assert refused("max_pool", n, arguments) == of_max
    if "dilation" not in arguments and arguments.get("padding") != 2:
        assert refused("avg_pool", n, arguments) == (of_avg or of_max)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_powers_are_averages(n):
    with pytest.raises(RuntimeError, match="^stride should not be zero$"):
        getattr(F, f"lp_pool{n}d")(cresset.ones(1, 2, *[8] * n), 2, 2, 0)
