"""Layers and functions with unusual options: what they accept, draw, print and refuse. Expected values are PyTorch 2.13's."""

import warnings

import pytest

import cresset
from cresset import nn
from cresset.nn import functional as F


def test_a_kernel_of_other_rank_is_kept_and_drawn():
    layer = nn.Conv2d(2, 4, (1, 2, 3))
    assert layer.weight.shape == (4, 2, 1, 2, 3) and repr(layer) == "Conv2d(2, 4, kernel_size=(1, 2, 3), stride=(1, 1))"
    assert repr(nn.Conv2d(2, 4, (3, 3, 3), padding=1)) == "Conv2d(2, 4, kernel_size=(3, 3, 3), stride=(1, 1), padding=(1, 1))"
    assert repr(nn.Conv2d(2, 4, 3, padding="same", dilation=(1,))) == "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=same)"


def test_one_amount_of_padding_stands_for_all_dimensions():
    assert nn.Conv2d(2, 4, 3, padding=(1,))(cresset.ones(1, 2, 5, 5)).shape == (1, 4, 5, 5)


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Hardswish(True), "Hardswish()"), (nn.Hardsigmoid(True), "Hardsigmoid()"), (nn.SiLU(True), "SiLU(inplace=True)"),
        (nn.Mish(True), "Mish(inplace=True)"),
    ],
)  # fmt: skip
def test_what_activations_print(layer, text):
    assert repr(layer) == text


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: nn.CircularPad1d(1)(cresset.ones(2)), ValueError, "expected 2D or 3D input (got 1D input)"),
        (lambda: nn.CircularPad3d(1)(cresset.ones(2, 2, 2)), ValueError, "expected 4D or 5D input (got 3D input)"),
        (lambda: F.interpolate(cresset.ones(4), 2), NotImplementedError, "Input Error: Only 3D, 4D and 5D input Tensors supported (got 1D) for"),
        (lambda: F.interpolate(cresset.ones(1, 1, 4), (2, 2)), ValueError, "Input and output must have the same number of spatial dimensions, but "
         "got input with spatial dimensions of [4] and output size of (2, 2). Please provide"),
        (lambda: F.affine_grid(cresset.ones(1, 2, 3), (1, 1, 0, 2), False), ValueError, "Expected non-zero, positive output size. Got (1, 1, 0, 2)"),
        (lambda: F.group_norm(cresset.ones(1, 2), 2), ValueError, "Expected more than 1 value per channel when training, got input size [1, 2]"),
        (lambda: nn.Embedding(4, 2, padding_idx=4), AssertionError, "Padding_idx must be within num_embeddings"),
        (lambda: nn.MaxUnpool1d(2)(cresset.ones(1, 1, 2), cresset.tensor([[[0, 2]]]), (1, 1, 9)), ValueError, 'invalid output_size "(9,)" (dim 0 must be'),
        (lambda: nn.ConvTranspose2d(2, 4, 3, stride=2)(cresset.ones(1, 2, 4, 4), output_size=(12, 10)), ValueError, "requested an output size of (12, 10), "),
        (lambda: F.l1_loss(cresset.ones(1), cresset.ones(1), reduction="x"), ValueError, "x is not a valid value for reduction"),
        (lambda: nn.Bilinear(0, 2, 3), ValueError, "in1_features must be > 0, but got (in1_features=0)"),
    ],
)  # fmt: skip
def test_refusals(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_statistics_for_a_layer_without_them():
    layer = nn.InstanceNorm1d(3)
    with pytest.raises(RuntimeError, match='Unexpected running stats buffer\\(s\\) "running_mean" and "running_var" for InstanceNorm1d with track'):
        layer.load_state_dict({"running_mean": cresset.ones(3), "running_var": cresset.ones(3)})
    kept = nn.InstanceNorm1d(3, track_running_stats=True).state_dict()  # with a version: plain unexpected keys
    with pytest.raises(RuntimeError, match='Unexpected key\\(s\\) in state_dict: "running_mean", "running_var", "num_batches_tracked"'):
        layer.load_state_dict(kept)


def test_arguments_of_embedding_bag_in_the_old_order():
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
        result = F.embedding_bag(cresset.ones(4, 2), cresset.tensor([0, 1]), cresset.tensor([0]), mode="sum")
    assert result.tolist() == [[2.0, 2.0]]


def test_the_sum_of_a_cluster_is_added_to_its_head():
    cresset.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4])
    x, target = cresset.ones(3, 4), cresset.tensor([0, 5, 3])
    output = layer(x, target).output
    assert output.grad_fn.name() == "AddBackward0"
    assert cresset.allclose(output, layer.log_prob(x).gather(1, target[:, None])[:, 0])


def test_dropout_of_few_dimensions_warns_in_full():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        F.dropout2d(cresset.ones(2, 2, 2))
    assert str(seen[0].message).endswith("To maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead.")
