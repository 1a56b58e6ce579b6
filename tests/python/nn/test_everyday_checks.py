"""What modules and losses are given wrong, and inputs without a batch: PyTorch 2.13's answers."""

import cresset as torch
import cresset.nn.functional as F
import pytest
from cresset import nn

ONES = torch.ones(2, 3)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_recurrent_layers_name_both_types(kind, dtype):
    x = torch.ones(2, 1, 2, dtype=getattr(torch, dtype))
    layer = kind(2, 3)
    words = f"RNN input dtype \\(torch.{dtype}\\) does not match weight dtype \\(torch.float32\\). Convert input: input.to\\(torch.float32\\), or convert model: "
    for given in (x, nn.utils.rnn.pack_sequence([x[:, 0]])):
        with pytest.raises(ValueError, match=words.replace("torch.", "(torch|cresset).")):
            layer(given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(torch.ones(2, 1, 2))[0].shape == (2, 1, 3)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: F.triplet_margin_loss(ONES, ONES, ONES[0]), RuntimeError, "anchor 2D, positive 2D, and negative 1D inputs"),
        (lambda: F.triplet_margin_loss(ONES[0], ONES, ONES), RuntimeError, "anchor 1D, positive 2D, and negative 2D inputs"),
        (lambda: nn.Parameter(ONES, 1), TypeError, r"_make_subclass\(\): argument 'require_grad' \(position 3\) must be bool, not int"),
        (lambda: nn.Parameter(ONES, "no"), TypeError, "must be bool, not str"),
        (lambda: nn.Parameter(ONES, None), TypeError, "must be bool, not NoneType"),
    ],
)
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


# After manual_seed(0): the mask of dropout3d(ones(sizes), p=0.2), flat.
@pytest.mark.parametrize(
    "sizes, mask",
    [((4,), [0, 1, 1, 0]), ((2, 3), [0, 0, 0, 1, 1, 1]), ((1, 3), [0, 0, 0]), ((2, 2, 2), [0, 0, 0, 0, 1, 1, 1, 1])],
)
@pytest.mark.filterwarnings("ignore")
def test_dropout3d_of_what_has_no_batch(sizes, mask):
    """Whatever has not five dimensions has no batch: whole channels go, the first dimension's."""
    torch.manual_seed(0)
    assert F.dropout3d(torch.ones(sizes), p=0.2).flatten().tolist() == [1.25 * m for m in mask]


WHOLE = torch.ones(2, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: F.mse_loss(WHOLE, WHOLE), NotImplementedError, '"mse_cpu" not implemented for \'Long\''),
        (lambda: F.mse_loss(WHOLE.bool(), WHOLE.bool(), reduction="sum"), NotImplementedError, '"mse_cpu" not implemented for \'Bool\''),
        (lambda: F.kl_div(WHOLE, WHOLE, reduction="sum"), RuntimeError, "kl_div: Integral inputs not supported."),
        (lambda: F.kl_div(ONES, ONES.bool(), reduction="sum"), RuntimeError, "kl_div: Integral inputs not supported."),
        (lambda: WHOLE.softmax(-1), NotImplementedError, '"softmax_lastdim_kernel_impl" not implemented for \'Long\''),
        (lambda: WHOLE.softmax(0), NotImplementedError, '"softmax_kernel_impl" not implemented for \'Long\''),
        (lambda: WHOLE.log_softmax(1), NotImplementedError, '"log_softmax_lastdim_kernel_impl" not implemented for \'Long\''),
        (lambda: WHOLE.log_softmax(0), NotImplementedError, '"log_softmax_kernel_impl" not implemented for \'Long\''),
        (lambda: F.interpolate(torch.ones(1, 1, 2), scale_factor="2"), TypeError, "element of type str"),
        (lambda: F.interpolate(torch.ones(1, 1, 2), scale_factor=[torch.tensor(2.0)]), TypeError, "element of type Tensor"),
    ],
)
def test_refused_by_type(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_losses_of_mixed_types():
    assert F.mse_loss(WHOLE.float() * 3, WHOLE).item() == 4
    assert F.interpolate(torch.ones(1, 1, 2), scale_factor=torch.tensor([2.0]).tolist()).shape == (1, 1, 4)
    assert F.interpolate(torch.ones(1, 1, 2), scale_factor=torch.tensor(2.0), recompute_scale_factor=True).shape == (1, 1, 4)


def test_rows_are_bags_whatever_is_said_of_the_last_offset():
    weight, rows = torch.arange(8.0).view(4, 2), torch.tensor([[0, 1], [2, 3]])
    assert F.embedding_bag(rows, weight, mode="sum", include_last_offset=True).tolist() == [[2, 4], [10, 12]]
    assert F.embedding_bag(rows[:0], weight, include_last_offset=True).shape == (0, 2)
