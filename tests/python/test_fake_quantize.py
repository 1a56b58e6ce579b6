"""Fake quantisation beside the formula, its gradient and refusals; numbers from PyTorch 2.13."""

import pytest

import cresset as torch


def test_numbers_and_gradients():
    x = torch.tensor([-1.0, 0.04, 0.26, 10.0, float("nan")], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 2, 0, 15)
    y.sum().backward()
    assert torch.allclose(y, torch.tensor([-0.2, 0.0, 0.3, 1.3, -0.2])) and x.grad.tolist() == [0, 1, 1, 0, 0]
    halves = torch.tensor([0.05, 0.15])
    assert torch.allclose(torch.fake_quantize_per_tensor_affine(halves, 0.1, 1, 0, 15), torch.tensor([0.0, 0.2]))
    assert torch.allclose(torch.fake_quantize_per_tensor_affine(halves.double(), 0.1, 0, -8, 7), torch.tensor([0.1, 0.2]).double())
    assert torch.fake_quantize_per_tensor_affine(halves.half(), torch.tensor([0.1]), torch.tensor([0]).int(), -8, 7).dtype is torch.float16
    w = torch.tensor([[0.11, 0.26, -3], [0.3, 0.5, 0.7]])
    made = torch.fake_quantize_per_channel_affine(w, torch.tensor([0.1, 0.2]), torch.tensor([0, 1]).int(), 0, 0, 255)
    assert torch.allclose(made, torch.tensor([[0.1, 0.3, 0.0], [0.4, 0.4, 0.8]]))
    floats = torch.fake_quantize_per_channel_affine(halves[None], torch.tensor([0.1]), torch.tensor([0.6]), 0, 0, 15)
    assert torch.allclose(floats, torch.tensor([[0.04, 0.14]]))


def test_numbers_between_two_steps():
    # PyTorch 2.13: float64 is rounded in float64, after the addition of a floating zero point in float32; one zero point has no fraction.
    x, scale = torch.tensor([[2.3, 2.3], [-1.0, 0.5]]).double(), torch.tensor([0.2, 0.2])
    channels = torch.fake_quantize_per_channel_affine(x, scale, torch.tensor([2, 2]).int(), 1, 0, 255)
    assert channels.tolist() == [[2.2000000327825546, 2.2000000327825546], [-0.4000000059604645, 0.4000000059604645]]
    channels = torch.fake_quantize_per_channel_affine(x, scale, torch.tensor([2.0, 2.5]), 1, 0, 255)
    assert channels.tolist() == [[2.400000035762787, 2.3000000342726707], [-0.4000000059604645, 0.5000000074505806]]
    for zero_point in (torch.tensor([2]).int(), torch.tensor([2.5])):
        made = torch.fake_quantize_per_tensor_affine(x, scale[:1], zero_point, 0, 255)
        assert made.tolist() == [[2.200000047683716, 2.200000047683716], [-0.4000000059604645, 0.4000000059604645]]


def test_learnt_scales():
    # Numbers and gradients of PyTorch 2.13.
    x, weights = torch.tensor([[-1.0, 0.3, 0.8], [2.2, 5.0, 0.1]], requires_grad=True), torch.arange(1.0, 7.0).reshape(2, 3)
    scale, zero_point = torch.tensor([0.5], requires_grad=True), torch.tensor([1.4], requires_grad=True)
    made = torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero_point, 0, 7, 0.5)
    assert made.tolist() == [[-0.5, 0.5, 1.0], [2.0, 3.0, 0.0]]
    of_x, of_scale, of_zero = torch.autograd.grad((made * weights).sum(), (x, scale, zero_point))
    assert of_x.tolist() == [[0, 2, 3], [4, 0, 6]] and torch.allclose(of_scale, torch.tensor([14.1])) and of_zero.tolist() == [-1.5]
    scale, zero_point = torch.tensor([0.5, 0.25, 1.0], requires_grad=True), torch.tensor([0.0, 1.0, -2.6], requires_grad=True)
    made = torch._fake_quantize_learnable_per_channel_affine(x, scale, zero_point, 1, -4, 3)
    assert made.tolist() == [[-1.0, 0.25, 1.0], [1.5, 0.5, 0.0]]
    of_x, of_scale, of_zero = torch.autograd.grad((made * weights).sum(), (x, scale, zero_point))
    assert of_x.tolist() == [[1, 2, 3], [0, 0, 6]] and torch.allclose(of_scale, torch.tensor([12, 9.6, 0]), atol=1e-6) and of_zero.tolist() == [-2, -1.25, 0]
    with pytest.raises(RuntimeError, match="dimensions of scale and zero-point are not consistent with input tensor"):
        torch._fake_quantize_learnable_per_channel_affine(x, scale, zero_point, 0, -4, 3)
    with pytest.raises(RuntimeError, match="`quant_min` should be less than or"):
        torch._fake_quantize_learnable_per_tensor_affine(x, scale[:1], zero_point[:1], 7, 0)


ONE = torch.ones(2, 3)
INT = torch.zeros(2, dtype=torch.int32)


@pytest.mark.parametrize(
    ("run", "error", "words"),
    [
        (lambda: torch.fake_quantize_per_tensor_affine(ONE, 0.1, 20, 0, 15), RuntimeError, "`zero_point` must be between `quant_min` and `quant_max`."),
        (lambda: torch.fake_quantize_per_tensor_affine(ONE, 0.1, 2, 15, 0), RuntimeError, "`quant_min` should be less than or"),
        (lambda: torch.fake_quantize_per_tensor_affine(ONE.int(), 0.1, 2, 0, 15), NotImplementedError, "not implemented for 'Int"),
        (lambda: torch.fake_quantize_per_channel_affine(ONE, torch.ones(3), torch.zeros(3).int(), 0, 0, 9), RuntimeError, "not consistent with input tensor"),
        (lambda: torch.fake_quantize_per_channel_affine(ONE, torch.ones(2), INT.long(), 0, 0, 9), RuntimeError, "Zero-point must be Int32, Float or Half, found Long"),
        (lambda: torch.fake_quantize_per_channel_affine(ONE, torch.ones(2).double(), INT, 0, 0, 9), RuntimeError, "Scale must be Float or BFloat16, found Double"),
    ],
)
def test_refusals(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_scale_follows_where_numbers_are_rounded():
    # PyTorch 2.13: running ends change where the observer is on, scale and zero point where rounding is.
    x = torch.tensor([[1.0, -2.0, 3.5], [0.2, 0.7, -9.0]])
    for observer, rounding, ends, scale, zero_point in (
        (1, 1, [-9.0, 3.5], 0.04901960864663124, 184), (1, 0, [-9.0, 3.5], 1.0, 0), (0, 1, [-1.0, 2.0], 0.0117647061124444, 85), (0, 0, [-1.0, 2.0], 1.0, 0),
    ):  # fmt: skip
        state = [torch.tensor([v]) for v in ((float("inf"), float("-inf")) if observer else (-1.0, 2.0))]
        step, zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
        made = torch.fused_moving_avg_obs_fake_quant(x, torch.tensor([observer]), torch.tensor([rounding]), *state, step, zero, 0.1, 0, 255, 0)
        assert ([s.item() for s in state], step.item(), zero.item()) == (ends, scale, zero_point)
        assert torch.equal(made, torch.fake_quantize_per_tensor_affine(x, scale, zero_point, 0, 255) if rounding else x)
