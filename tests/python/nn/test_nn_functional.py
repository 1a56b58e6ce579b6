"""nn.functional: errors and warnings by their words, forms that only the functions have, gradient clipping."""

import warnings

import cresset
import pytest
from cresset import nn
from cresset.nn import functional as F

t = cresset.ones


def idx(*values):
    return cresset.tensor(values)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda: F.linear(t(2, 3), t(2, 4)),
            RuntimeError,
            r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x2\)",
        ),
        (
            lambda: F.conv2d(t(1, 3, 4, 4), t(2, 4, 3, 3)),
            RuntimeError,
            r"expected input\[1, 3, 4, 4\] to have 4 channels, but got 3 channels",
        ),
        (
            lambda: F.conv2d(t(1, 3, 2, 2), t(2, 3, 3, 3)),
            RuntimeError,
            "Kernel size can't be greater than actual input size",
        ),
        (lambda: F.max_pool2d(t(1, 1, 2, 2), 3), RuntimeError, "Output size is too small"),
        (lambda: F.embedding(idx(5), t(2, 2)), IndexError, "index out of range in self"),
        (
            lambda: F.embedding(idx(1), t(2, 2), padding_idx=5),
            AssertionError,
            "Padding_idx must be within num_embeddings",
        ),
        (lambda: nn.Embedding(3, 2, padding_idx=4), AssertionError, "Padding_idx must be within num_embeddings"),
        (
            lambda: F.batch_norm(t(1, 2), None, None, training=True),
            ValueError,
            "Expected more than 1 value per channel when training",
        ),
        (lambda: nn.BatchNorm1d(2)(t(2)), ValueError, r"expected 2D or 3D input \(got 1D input\)"),
        (lambda: nn.BatchNorm2d(2)(t(2, 2)), ValueError, r"expected 4D input \(got 2D input\)"),
        (lambda: F.instance_norm(t(1, 2, 1)), ValueError, "Expected more than 1 spatial element when training"),
        (lambda: nn.InstanceNorm1d(2, affine=True)(t(2, 3, 4)), ValueError, r"to match num_features \(2\), but got: 3"),
        (
            lambda: F.group_norm(t(2, 3, 2), 2),
            RuntimeError,
            "number of channels in input to be divisible by num_groups",
        ),
        (lambda: nn.GroupNorm(2, 3), ValueError, r"num_channels \(3\) must be divisible by num_groups \(2\)"),
        (
            lambda: F.layer_norm(t(2, 2), [3]),
            RuntimeError,
            r"Given normalized_shape=\[3\], expected input with shape \[\*, 3\]",
        ),
        (lambda: F.nll_loss(t(2, 2), idx(5, 0)), IndexError, "Target 5 is out of bounds"),
        (lambda: F.cross_entropy(t(2, 2), idx(5, 0)), IndexError, "Target 5 is out of bounds"),
        (
            lambda: F.cross_entropy(t(2, 2), idx(0)),
            ValueError,
            r"Expected input batch_size \(2\) to match target batch_size \(1\)",
        ),
        (lambda: F.binary_cross_entropy(t(2), t(3)), ValueError, "Please ensure they have the same size"),
        (
            lambda: F.binary_cross_entropy_with_logits(t(2), t(3)),
            ValueError,
            r"Target size .* must be the same as input size",
        ),
        (lambda: F.dropout(t(2), 1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
        (lambda: F.dropout(t(2), -0.1), ValueError, "dropout probability has to be between 0 and 1, but got -0.1"),
        (lambda: nn.Dropout(2), ValueError, "dropout probability has to be between 0 and 1, but got 2"),
        (
            lambda: F.dropout1d(t(2, 3, 4, 5)),
            RuntimeError,
            "dropout1d: Expected 2D or 3D input, but received a 4D input",
        ),
        (lambda: F.mse_loss(t(2), t(2), reduction="x"), ValueError, "x is not a valid value for reduction"),
        (lambda: F.smooth_l1_loss(t(2), t(2), beta=-1), RuntimeError, "does not support negative values for beta"),
        (lambda: F.huber_loss(t(2), t(2), delta=0), RuntimeError, "does not support non-positive values for delta"),
        (lambda: F.gelu(t(2), approximate="x"), RuntimeError, "approximate argument must be either none or tanh"),
        (
            lambda: F.glu(cresset.tensor(1.0)),
            RuntimeError,
            "glu does not support scalars because halving size must be even",
        ),
        (lambda: F.glu(t(3)), RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
        (lambda: F.gaussian_nll_loss(t(2), t(2), -t(2)), ValueError, "var has negative entry/entries"),
        (
            lambda: F.margin_ranking_loss(t(2), t(2, 2), t(2)),
            RuntimeError,
            "All input tensors should have same dimension",
        ),
        (
            lambda: F.triplet_margin_loss(t(2, 2), t(2, 2), t(2, 2), margin=-1),
            ValueError,
            "margin must be greater than 0, got -1",
        ),
        (lambda: F.multi_margin_loss(t(2, 2), idx(0, 1), p=3), ValueError, "only p == 1 and p == 2 supported"),
        (lambda: F.local_response_norm(t(2), 2), ValueError, "Expected 3D or higher dimensionality"),
        (
            lambda: F.pad(t(2), (1, 1, 1, 1)),
            RuntimeError,
            "Padding length should be less than or equal to two times the input dimension",
        ),
        (lambda: F.pad(t(2, 2), (1, 1), "x"), NotImplementedError, "Unrecognised padding mode x"),
        (lambda: F.relu(3), TypeError, r"relu\(\): argument 'input' \(position 1\) must be Tensor, not int"),
        (lambda: F.linear(3, 3), TypeError, r"linear\(\): argument 'input' \(position 1\) must be Tensor, not int"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(3, 4, 3, groups=0), ValueError, "groups must be a positive integer"),
        (lambda: nn.Conv2d(3, 4, 3, padding="foo"), ValueError, "Invalid padding string 'foo'"),
        (
            lambda: nn.Conv2d(3, 4, 3, padding="same", stride=2),
            ValueError,
            "padding='same' is not supported for strided convolutions",
        ),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="x"), ValueError, "but got padding_mode='x'"),
        (
            lambda: nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"),
            ValueError,
            'Only "zeros" padding mode is supported',
        ),
        (lambda: nn.MultiheadAttention(5, 2), AssertionError, "embed_dim must be divisible by num_heads"),
        (lambda: nn.Hardtanh(2, 1), AssertionError, r"max_val \(1\) must be greater than min_val \(2\)"),
        (lambda: nn.Softmax2d()(t(2)), ValueError, "expected input to be 3D or 4D, got 1D instead"),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, activation="x"),
            RuntimeError,
            "activation should be relu/gelu, not x",
        ),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: F.mse_loss(t(2), t(2, 2)), r"Using a target size .* that is different to the input size"),
        (lambda: F.l1_loss(t(2), t(2, 2)), r"Using a target size .* that is different to the input size"),
        (lambda: F.mse_loss(t(2), t(2), reduction="elementwise_mean"), "reduction='elementwise_mean' is deprecated"),
        (lambda: F.mse_loss(t(2), t(2), size_average=False), "please use reduction='sum' instead"),
        (lambda: nn.MSELoss(reduce=False), "please use reduction='none' instead"),
        (lambda: F.kl_div(t(2), t(2)), "'batchmean' divides only by the batch size"),
        (lambda: F.softmax(t(2)), "Implicit dimension choice for softmax has been deprecated"),
        (lambda: nn.LogSoftmax()(t(2)), "Implicit dimension choice for log_softmax has been deprecated"),
        (lambda: F.dropout2d(t(2, 3, 4)), "Received a 3D input to dropout2d"),
        (lambda: nn.InstanceNorm1d(2)(t(2, 3, 4)), "input's size at dim=1 does not match num_features"),
    ],
)
def test_warnings(call, words):
    with pytest.warns(UserWarning, match=words):
        call()


def test_implicit_softmax_dimension():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert F.softmax(t(2, 4)).sum(1).tolist() == [1.0, 1.0]
        assert F.softmax(t(2, 4, 3))[:, 0, 0].tolist() == [0.5, 0.5]


def test_in_place_forms_change_their_input():
    for name in (
        "relu",
        "relu6",
        "elu",
        "leaky_relu",
        "hardtanh",
        "silu",
        "hardswish",
        "hardsigmoid",
        "selu",
        "celu",
        "mish",
    ):
        x = cresset.tensor([-4.0, -0.5, 0.5, 7.0])
        want = getattr(F, name)(x.clone())
        assert getattr(F, name)(x, inplace=True) is x and cresset.equal(x, want)


def test_dropout():
    cresset.manual_seed(0)
    x = t(1000)
    y = F.dropout(x, 0.25)
    kept = (y != 0).sum().item()
    assert 700 < kept < 800 and y.max().item() == pytest.approx(1 / 0.75)
    assert cresset.equal(F.dropout(x, 0.25, training=False), x) and F.dropout(x, 1.0).sum().item() == 0
    z = F.dropout1d(t(4, 5, 6), 0.5)
    assert all(len(set(channel)) == 1 for sample in z.tolist() for channel in sample)
    a = nn.Dropout(0.5)
    cresset.manual_seed(3)
    first = a(x)
    cresset.manual_seed(3)
    assert cresset.equal(a(x), first) and cresset.equal(a.eval()(x), x)


def test_normalize_and_one_hot():
    x = cresset.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert F.normalize(x).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]
    assert F.one_hot(idx(0, 2)).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(idx(0), 3).tolist() == [[1, 0, 0]]


def test_gumbel_softmax_hard_is_one_hot_and_differentiable():
    cresset.manual_seed(0)
    logits = cresset.zeros(5, 3, requires_grad=True)
    y = F.gumbel_softmax(logits, hard=True)
    assert y.sum(1).tolist() == pytest.approx([1.0] * 5) and y.max(1)[0].tolist() == pytest.approx([1.0] * 5)
    (y * cresset.arange(3.0)).sum().backward()
    assert logits.grad.abs().sum().item() > 0


def test_cross_entropy_weights_and_ignored_targets():
    x, target = cresset.tensor([[1.0, 2.0], [3.0, 0.0], [0.0, 0.0]]), idx(0, 1, -100)
    per_sample = F.cross_entropy(x, target, reduction="none")
    assert per_sample[2].item() == 0.0
    assert F.cross_entropy(x, target).item() == pytest.approx((per_sample[0] + per_sample[1]).item() / 2)
    w = cresset.tensor([1.0, 3.0])
    assert F.cross_entropy(x, target, w).item() == pytest.approx((per_sample[0].item() + 3 * per_sample[1].item()) / 4)


def test_scaled_dot_product_attention_is_softmax_of_products():
    q, k, v = (cresset.linspace(s, s + 1, 24).reshape(2, 3, 4) for s in (0.0, 0.3, -1.0))
    want = (q @ k.transpose(1, 2) / 2.0).softmax(-1) @ v
    assert cresset.allclose(F.scaled_dot_product_attention(q, k, v), want, atol=1e-6)
    mask = t(3, 3).tril().bool()
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert cresset.allclose(causal, F.scaled_dot_product_attention(q, k, v, attn_mask=mask), atol=1e-6)


def test_attention_masks_agree():
    cresset.manual_seed(0)
    layer = nn.MultiheadAttention(4, 2)
    x = cresset.randn(3, 2, 4)
    banned = t(3, 3).triu(1).bool()
    added = cresset.zeros(3, 3).masked_fill(banned, float("-inf"))
    a, weights = layer(x, x, x, attn_mask=banned)
    assert cresset.allclose(a, layer(x, x, x, attn_mask=added)[0], atol=1e-6)
    assert cresset.allclose(a, layer(x, x, x, attn_mask=banned, need_weights=False)[0], atol=1e-6)
    assert cresset.allclose(a, layer(x, x, x, attn_mask=added, need_weights=False, is_causal=True)[0], atol=1e-6)
    assert weights[:, 0].tolist() == [[1.0, 0.0, 0.0]] * 2
    _, every_head = layer(x, x, x, average_attn_weights=False)
    assert every_head.shape == (2, 2, 3, 3)
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        layer(x, x, x, is_causal=True)
    with pytest.raises(AssertionError, match="was expecting embedding dimension of 4, but got 3"):
        layer(*[cresset.randn(3, 2, 3)] * 3)


def test_conv_transpose_output_size():
    layer = nn.ConvTranspose1d(1, 1, 3, stride=2)
    x = t(1, 1, 4)
    assert layer(x).shape == (1, 1, 9) and layer(x, output_size=[10]).shape == (1, 1, 10)
    with pytest.raises(ValueError, match="requested an output size of"):
        layer(x, output_size=[12])


def test_batch_norm_running_statistics():
    layer = nn.BatchNorm1d(1)
    x = cresset.tensor([[1.0], [3.0]])
    layer(x)
    assert layer.running_mean.item() == pytest.approx(0.2) and layer.running_var.item() == pytest.approx(1.1)
    assert layer.num_batches_tracked.item() == 1
    layer.eval()(x)
    assert layer.num_batches_tracked.item() == 1
    cumulative = nn.BatchNorm1d(1, momentum=None)
    cumulative(x)
    cumulative(x + 2)
    assert cumulative.running_mean.item() == pytest.approx(3.0)
    layer.reset_running_stats()
    assert layer.running_mean.item() == 0.0 and layer.num_batches_tracked.item() == 0


def test_clip_grad_norm():
    p, q, unused = (nn.Parameter(cresset.zeros(2)) for _ in range(3))
    p.grad, q.grad = cresset.tensor([3.0, 0.0]), cresset.tensor([0.0, 4.0])
    total = nn.utils.clip_grad_norm_([p, q, unused], 1.0)
    assert (
        total.item() == 5.0
        and p.grad.tolist() == pytest.approx([0.6, 0.0])
        and q.grad.tolist() == pytest.approx([0.0, 0.8])
    )
    assert nn.utils.clip_grad_norm_(p, 10.0).item() == pytest.approx(0.6) and p.grad[0].item() == pytest.approx(0.6)
    assert nn.utils.clip_grad_norm_([p, q], 100.0, norm_type=float("inf")).item() == pytest.approx(0.8)
    assert nn.utils.clip_grad_norm_([unused], 1.0).item() == 0.0
    p.grad[0] = float("nan")
    assert nn.utils.clip_grad_norm_([p], 1.0).isnan().item()
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    p = nn.Parameter(cresset.zeros(3))
    p.grad = cresset.tensor([-5.0, 0.5, 5.0])
    nn.utils.clip_grad_value_([p], 1)
    assert p.grad.tolist() == [-1.0, 0.5, 1.0]


def test_parameters_to_vector_and_back():
    net = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (6,) and vector[:4].tolist() == net.weight.flatten().tolist()
    nn.utils.vector_to_parameters(cresset.arange(6.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3]] and net.bias.tolist() == [4, 5]
    with pytest.raises(TypeError, match="expected torch.Tensor, but got: list"):
        nn.utils.vector_to_parameters([1.0], net.parameters())


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: nn.RNN(4, 3, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'"),
        (lambda: nn.LSTM(4, 3, proj_size=3), ValueError, "proj_size has to be smaller than hidden_size"),
        (lambda: nn.GRU(4, 3, proj_size=2), ValueError, "proj_size argument is only supported for LSTM"),
        (lambda: nn.GRU(4, 0), ValueError, "hidden_size must be greater than zero"),
        (lambda: nn.RNN(4, 3, dropout=2), ValueError, r"dropout should be a number in range \[0, 1\]"),
        (lambda: nn.LSTM(4, 3)(t(2, 2, 5)), RuntimeError, "Expected 4, got 5"),
        (lambda: nn.RNN(4, 3)(t(2)), ValueError, "RNN: Expected input to be 2D or 3D, got 1D tensor instead"),
        (lambda: nn.LSTM(4, 3)(t(2)), ValueError, "LSTM: Expected input to be 2D or 3D, got 1D instead"),
        (
            lambda: nn.GRU(4, 3)(t(2, 2, 4), t(1, 1, 3)),
            RuntimeError,
            r"Expected hidden size \(1, 2, 3\), got \[1, 1, 3\]",
        ),
        (lambda: nn.LSTMCell(4, 3)(t(5)), RuntimeError, "input has inconsistent input_size: got 5 expected 4"),
        (lambda: nn.utils.rnn.pad_sequence([]), RuntimeError, "received an empty list of sequences"),
        (lambda: nn.utils.rnn.pad_sequence([t(1, 2), t(1, 3)]), RuntimeError, "The size of tensor a \\(2\\) must match the size of tensor b \\(3\\)"),
    ],
)
def test_recurrent_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_recurrent_weights_by_name():
    layer = nn.LSTM(2, 3, 2, bidirectional=True, proj_size=1)
    assert layer._flat_weights_names[:6] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0", "weight_ih_l0_reverse"]
    assert layer._all_weights[1] == [name + "_l0_reverse" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")]
    layer._flat_weights = [nn.Parameter(cresset.full_like(w, 0.5)) for w in layer._flat_weights]
    assert layer.weight_hh_l1.unique().tolist() == [0.5] and len(layer._flat_weights) == 20
    layer, double, x = nn.GRU(2, 3), nn.GRU(2, 3), cresset.ones(4, 1, 2)
    double.load_state_dict({name: 2 * p for name, p in layer.state_dict().items()})
    layer._flat_weights = [2 * w for w in layer._flat_weights]  # as weights of which some are dropped: gradients go through them to the parameters
    found, expected = layer(x)[0], double(x)[0]
    assert found.equal(expected) and len(list(layer.parameters())) == 4
    found.sum().backward()
    expected.sum().backward()
    for p, q in zip(layer.parameters(), double.parameters(), strict=True):
        assert cresset.allclose(p.grad, 2 * q.grad)


def test_recurrent_states_continue_a_sequence():
    cresset.manual_seed(0)
    x = cresset.randn(6, 2, 3)
    for layer in (nn.RNN(3, 4), nn.GRU(3, 4, num_layers=2), nn.LSTM(3, 4)):
        whole, last = layer(x)
        first, state = layer(x[:4])
        second, end = layer(x[4:], state)
        assert cresset.allclose(cresset.cat([first, second]), whole, atol=1e-6)
        a, b = (last, end) if isinstance(last, cresset.Tensor) else (last[1], end[1])
        assert cresset.allclose(a, b, atol=1e-6)
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.GRU(3, 4, dropout=0.5)


def test_pad_sequence():
    rows = [t(3, 2), t(1, 2) * 2]
    padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)
    assert padded.shape == (2, 3, 2) and padded[1].tolist() == [[2, 2], [-1, -1], [-1, -1]]
    assert nn.utils.rnn.pad_sequence(rows).shape == (3, 2, 2)
    assert nn.utils.rnn.pad_sequence(rows, padding_side="left")[:2, 1].tolist() == [[0, 0], [0, 0]]
    assert [r.shape[0] for r in nn.utils.rnn.unpad_sequence(padded, [3, 1], batch_first=True)] == [3, 1]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: F.interpolate(t(1, 1, 2)), ValueError, "either size or scale_factor should be defined"),
        (lambda: F.interpolate(t(1, 1, 2), 3, 2), ValueError, "only one of size or scale_factor should be defined"),
        (lambda: F.interpolate(t(1, 1, 2), (3, 4)), ValueError, "must have the same number of spatial dimensions"),
        (lambda: F.interpolate(t(1, 1, 2), 3, mode="bilinear"), NotImplementedError, "Got 3D input, but bilinear mode needs 4D input"),
        (lambda: F.interpolate(t(1, 1, 2), 3, align_corners=True), ValueError, "align_corners option can only be set"),
        (lambda: F.interpolate(t(1, 1, 2), 0), RuntimeError, "Input and output sizes should be greater than 0"),
        (lambda: F.pixel_shuffle(t(1, 3, 2, 2), 2), RuntimeError, "divisible by the square of upscale_factor"),
        (
            lambda: F.pixel_unshuffle(t(1, 3, 3, 2), 2),
            RuntimeError,
            "expects height to be divisible by downscale_factor",
        ),
        (lambda: F.channel_shuffle(t(1, 3, 2, 2), 2), RuntimeError, "Number of channels must be divisible by groups"),
        (lambda: F.unfold(t(1, 1, 2, 2), 3), RuntimeError, "its components must be at least one"),
        (lambda: F.fold(t(1, 3, 4), (2, 2), 2), RuntimeError, "divisible by the product of kernel_size"),
        (lambda: F.fold(t(1, 4, 4), (2, 2), 2), RuntimeError, "number of sliding blocks 1 \\* 1 = 1, but got"),
    ],
)
def test_layout_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_random_activations_of_a_seed():
    # recorded with PyTorch 2.13
    x = cresset.tensor([[-1.0, 2.0, -3.0], [0.5, -0.5, 0.0]])
    cresset.manual_seed(0)
    y = F.rrelu(x, training=True)
    assert y[0, 1].item() == 2.0 and y[1, 0].item() == 0.5 and y[1, 2].item() == 0.0
    assert [-v for v in (y[0, 0].item(), y[0, 2].item() / 3, y[1, 1].item() * 2)] == pytest.approx(
        [0.3270944, 0.2724625, 0.2207048], abs=1e-6
    )
    cresset.manual_seed(0)
    z = F.feature_alpha_dropout(t(2, 3, 2), 0.5, training=True)
    assert all(len(set(channel)) == 1 for sample in z.tolist() for channel in sample)
    assert sorted(set(z.flatten().tolist())) == pytest.approx([-0.7791939, 1.6655989], abs=1e-5)


def test_dropouts_in_place():
    for name, x in (
        ("dropout", t(4, 5)),
        ("alpha_dropout", t(4, 5)),
        ("dropout1d", t(2, 3, 4)),
        ("feature_alpha_dropout", t(2, 3, 4)),
    ):
        cresset.manual_seed(0)
        want = getattr(F, name)(x, 0.5, training=True)
        cresset.manual_seed(0)
        y = x.clone()
        assert getattr(F, name)(y, 0.5, training=True, inplace=True) is y and cresset.equal(y, want)


def test_margin_losses_of_scores_without_dimensions():
    score, label = cresset.tensor(0.3), cresset.tensor(0)
    assert F.multi_margin_loss(score, label).item() == 0 and F.multilabel_margin_loss(score, label).item() == 0
    assert F.multi_margin_loss(cresset.zeros(3), cresset.tensor([1]), reduction="none").shape == (1,)
    assert F.multi_margin_loss(cresset.zeros(0, 3), cresset.zeros(0, dtype=cresset.int64), reduction="none").shape == (0,)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda long: F.multilabel_margin_loss(cresset.zeros(5, 0), long(5, 4)), "Expected non-empty vector or matrix"),
        (lambda long: F.multilabel_margin_loss(cresset.zeros(5, 4), long(4)), "inconsistent target size"),
        (lambda long: F.multi_margin_loss(cresset.zeros(2, 3), long(3)), "target tensor should be 1-D"),
        (lambda long: F.multi_margin_loss(cresset.zeros(2, 3), long(2) + 5), "target out of range"),
        (lambda long: F.multi_margin_loss(cresset.zeros(2, 3), long(2), weight=cresset.ones(2)), "inconsistent weight size"),
        (lambda long: F.batch_norm(cresset.zeros(3), cresset.zeros(3), cresset.zeros(3)), "running_mean should contain 0 elements"),
    ],
)
def test_sizes_that_losses_and_norms_refuse(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(lambda *shape: cresset.zeros(*shape, dtype=cresset.int64))


def test_batch_norm_of_nothing():
    nothing = cresset.zeros(0)
    assert F.batch_norm(nothing, nothing, nothing).shape == (0,)
    with pytest.raises(IndexError):
        F.batch_norm(cresset.zeros(3), None, None, training=True)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("shape", [(1, 3, 4), (1, 3, 4, 4), (1, 3, 4, 4, 4)], ids=len)
@pytest.mark.parametrize("width", [0, -1])
def test_pad_never_gives_its_input(mode, shape, width):
    """A result that is written to leaves the input alone, also where nothing is added."""
    x = cresset.rand(shape)
    kept = x.clone()
    for pad in ([width] * (2 * (len(shape) - 2)), [0] * (2 * (len(shape) - 2) - 1) + [width]):
        out = F.pad(x, pad, mode=mode)
        assert out.untyped_storage().data_ptr() != x.untyped_storage().data_ptr() and out.is_contiguous()
        out.fill_(4)
        assert cresset.equal(x, kept)


def test_shuffles_are_the_operators():
    assert F.channel_shuffle is cresset.channel_shuffle and F.pixel_shuffle is cresset.pixel_shuffle and F.pixel_unshuffle is cresset.pixel_unshuffle
    with pytest.raises(RuntimeError, match=r"pixel_unshuffle expects width to be divisible by downscale_factor, but input.size\(-1\)=3 is not divisible by 2"):
        cresset.pixel_unshuffle(cresset.zeros(1, 2, 3), 2)


def test_pad_sequence_copies_into_a_filled_tensor():
    rows = [cresset.ones(3, 2, requires_grad=True), cresset.full((2, 1), 5.0)]
    padded = nn.utils.rnn.pad_sequence(rows)  # the second is expanded, as copy_ does
    assert padded[:, 1].tolist() == [[5, 5], [5, 5], [0, 0]] and type(padded.grad_fn).__name__ == "CopySlices"
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got int"):
        nn.utils.rnn.pad_sequence([cresset.ones(2), 3])
    with pytest.raises(RuntimeError, match="'lengths' argument should be a 1D CPU int64 tensor, but got 2D cpu Long tensor"):
        nn.utils.rnn.pack_padded_sequence(cresset.ones(2, 3), cresset.ones(1, 3).long(), batch_first=True)
    with pytest.raises(RuntimeError, match=r"`len\(lengths\)` to be equal to batch_size, but got 0 \(batch_size=3\)"):
        nn.utils.rnn.pack_padded_sequence(cresset.ones(2, 3), [])
