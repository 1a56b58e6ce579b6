"""The check of torch.jit.trace runs the program: random numbers that it draws are gone, and what is random is said only where results differ."""

import warnings

import cresset as torch
import pytest


def drawn(call):
    """How many random numbers a call takes from the generator."""
    torch.manual_seed(0)
    numbers = torch.rand(40).tolist()
    torch.manual_seed(0)
    call()
    return numbers.index(torch.rand(1).item())


def trace(function, **options):
    return torch.jit.trace(function, torch.ones(2), **options)


def test_numbers_of_the_check():  # PyTorch 2.13's counts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert drawn(lambda: trace(lambda x: x + torch.rand(1))) == 4  # traced twice, run, and the function itself
        assert drawn(lambda: trace(lambda x: x + torch.rand(1), check_trace=False)) == 1
        assert drawn(lambda: trace(lambda x: x * 2)) == 0


def test_random_operators_are_named_where_results_differ():
    with pytest.warns(torch.jit.TracerWarning, match="Trace had nondeterministic nodes"):
        trace(lambda x: x + torch.rand(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace(lambda x: x + torch.rand(1) * 0)
