"""gradcheck and gradgradcheck tell right derivatives from wrong ones."""

import pytest

import cresset as torch
from cresset.autograd import Function, gradcheck, gradgradcheck
from cresset.autograd.gradcheck import GradcheckError


def double(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0]


def test_right_ones_pass():
    torch.manual_seed(0)
    assert gradcheck(lambda a, b: (a @ b).tanh(), (double(2, 3), double(3, 2)))
    assert gradcheck(lambda a: (a.exp(), a.sum()), (double(3),), check_forward_ad=True)
    assert gradcheck(lambda a: a * a.conj() + a * 2, (double(2, dtype=torch.complex128),))
    assert gradcheck(lambda a: a.t().sum(0), (double(2, 3),))
    assert gradgradcheck(lambda a, b: (a * b).sin().sum(0), (double(2, 2), double(2, 2)))


def test_wrong_ones_are_found():
    torch.manual_seed(0)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, (double(3),))
    assert gradcheck(Wrong.apply, (double(3),), raise_exception=False) is False


def test_a_function_that_hides_its_dependence():
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda a: a.detach() * 2, (double(2),))


def test_random_gradients_are_found():
    class Noisy(Wrong):
        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0] * (1 + 1e-5 * torch.rand(1, dtype=torch.float64).item())

    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(Noisy.apply, (double(2),))
    assert gradcheck(Noisy.apply, (double(2),), nondet_tol=1e-3)


def test_arguments():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda a: a, (torch.ones(2, dtype=torch.float64),))
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda a: a * 2, (torch.ones(1, requires_grad=True),), atol=1, eps=1e-2)
    with pytest.raises(AssertionError, match="requires check_forward_ad to be True"):
        gradcheck(lambda a: a, (double(1),), check_batched_forward_grad=True)


@pytest.mark.parametrize("masked", [True, False])
def test_masked_means_nothing_for_dense_tensors(masked):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x * 2, (x,), masked=masked)


def test_outputs_on_a_device_without_data_are_refused():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        torch.autograd.gradcheck(lambda x: (x * 2).to("meta"), (x,))


@pytest.mark.parametrize("forward", [False, True])
def test_functions_that_put_the_generator_back(forward):
    """They draw the same numbers each time, also in fast mode."""

    def noisy(x):
        state = torch.get_rng_state()
        try:
            return x * torch.rand_like(x)
        finally:
            torch.set_rng_state(state)

    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert gradcheck(noisy, (x,), fast_mode=True, check_forward_ad=forward)


@pytest.mark.parametrize("others, expected", [(True, 12), (False, 5)])
def test_forward_mode_is_asked_as_often_as_in_pytorch(others, expected):
    calls = []

    class Counts(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x.clone(), y.clone()

        @staticmethod
        def jvp(ctx, gx, gy):
            calls.append(1)
            return gx, gy

    x, y = (torch.rand(1, dtype=torch.double, requires_grad=needed) for needed in (True, others))
    options = dict(check_forward_ad=True, check_backward_ad=False, check_batched_grad=False, check_batched_forward_grad=True)
    gradcheck(Counts.apply, (x, y), **options)
    assert len(calls) == expected


def drawn(call):
    """How many random numbers of float32 a call takes from the generator."""
    torch.manual_seed(0)
    numbers = torch.rand(40).tolist()
    torch.manual_seed(0)
    call()
    return numbers.index(torch.rand(1).item())


def test_random_numbers_that_are_drawn():  # PyTorch 2.13's counts
    x = torch.randn(3, dtype=torch.double, requires_grad=True)
    assert drawn(lambda: gradcheck(torch.sin, (x,))) == 0
    assert drawn(lambda: gradgradcheck(torch.sin, (x,))) == 6
    assert drawn(lambda: gradgradcheck(torch.sin, (x,), gen_non_contig_grad_outputs=True)) == 12
    assert drawn(lambda: gradcheck(torch.sin, (x,), check_batched_grad=True)) == 12


@pytest.mark.parametrize("fast", [False, True])
def test_tensors_of_onednn(fast):
    """As PyTorch 2.13 answers."""
    x = torch.ones(2, 3).to_mkldnn().requires_grad_()
    y = torch.rand(3, 2, requires_grad=True)
    near = {"fast_mode": fast, "atol": 1e-1, "rtol": 1e-1, "raise_exception": False}
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert torch.autograd.gradcheck(lambda x: x.to_dense(), (x,), **near)
        assert torch.autograd.gradcheck(lambda x, y: x.to_dense() @ y, (x, y), **near)
        with pytest.raises(ValueError, match="MKLDNN inputs are not support for forward AD gradcheck."):
            torch.autograd.gradcheck(lambda x: x.to_dense(), (x,), check_forward_ad=True, **near)
        with pytest.raises(ValueError, match=r"MKLDNN output is not supported at gradcheck yet. Please call to_dense\(masked_grad=...\) on the output"):
            torch.autograd.gradcheck(lambda y: y.to_mkldnn(), (y,), **near)
