"""Lazy layers, packed sequences, parametrizations, pruning, fusion and the rarer layers."""

import copy

import cresset
import numpy as np
import pytest
from cresset import nn
from cresset.nn.utils import fusion, parametrizations, parametrize, prune, skip_init
from cresset.utils._pytree import tree_map_only
from cresset.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, unpack_sequence

RNG = np.random.default_rng(11)


def tensor(*shape):
    return cresset.from_numpy(RNG.standard_normal(shape))


@pytest.mark.parametrize(
    ("lazy", "eager", "shape"),
    [
        (lambda: nn.LazyLinear(3), lambda: nn.Linear(4, 3), (2, 4)),
        (lambda: nn.LazyConv2d(6, 3, groups=2), lambda: nn.Conv2d(4, 6, 3, groups=2), (1, 4, 5, 5)),
        (lambda: nn.LazyConvTranspose1d(2, 3), lambda: nn.ConvTranspose1d(4, 2, 3), (1, 4, 5)),
        (lambda: nn.LazyBatchNorm1d(), lambda: nn.BatchNorm1d(4), (3, 4, 2)),
        (lambda: nn.LazyInstanceNorm2d(), lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True), (2, 4, 3, 3)),
    ],
)
def test_lazy_layer_becomes_the_layer(lazy, eager, shape):
    layer = lazy()
    assert layer.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        _ = layer.weight.shape
    with pytest.raises(ValueError, match="uninitialized parameter"):
        _ = layer.weight + 1
    parameters = list(layer.parameters())
    layer(cresset.ones(*shape))
    model = eager()
    assert type(layer) is type(model) and repr(layer) == repr(model)
    assert {k: v.shape for k, v in layer.state_dict().items()} == {k: v.shape for k, v in model.state_dict().items()}
    # The objects an optimizer may already hold are the ones that got values.
    assert all(a is b for a, b in zip(parameters, layer.parameters()))


def test_lazy_layer_loads_and_copies():
    layer = copy.deepcopy(nn.LazyLinear(3))
    layer.load_state_dict(nn.Linear(4, 3).state_dict())
    assert not layer.has_uninitialized_params() and layer(cresset.ones(2, 4)).shape == (2, 3)
    assert nn.LazyLinear(3).double()(cresset.ones(1, 2).double()).dtype == cresset.float64


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_packed_batch_is_each_sequence_by_itself(kind):
    layer = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True).double()
    sequences = [tensor(n, 3) for n in (2, 5, 3)]
    output, state = layer(pack_sequence(sequences, enforce_sorted=False))
    for sequence, got in zip(sequences, unpack_sequence(output)):
        np.testing.assert_allclose(got.detach().numpy(), layer(sequence)[0].detach().numpy(), atol=1e-12)
    last = [layer(s)[1] for s in sequences]
    h = state[0] if kind == "LSTM" else state
    want = [s[0] if kind == "LSTM" else s for s in last]
    np.testing.assert_allclose(h.detach().numpy(), cresset.stack(want, 1).detach().numpy(), atol=1e-12)


def test_packing_and_its_errors():
    x = tensor(4, 2, 3)
    packed = pack_padded_sequence(x, [4, 2])
    assert packed.batch_sizes.tolist() == [2, 2, 1, 1] and packed.data.shape == (6, 3)
    back, lengths = pad_packed_sequence(packed, padding_value=-1.0, total_length=5)
    assert lengths.tolist() == [4, 2] and back.shape == (5, 2, 3) and bool((back[2:, 1] == -1).all())
    for given, words in (([2, 4], "sorted in decreasing order"), ([4, 0], "greater than 0"), ([5, 2], "lengths up to 4"), ([4], "batch_size=2")):
        with pytest.raises(RuntimeError, match=words):
            pack_padded_sequence(x, given)
    with pytest.raises(ValueError, match="total_length"):
        pad_packed_sequence(packed, total_length=3)
    padded = pad_packed_sequence(packed, batch_first=True)[0]
    assert padded.stride() == (3, 6, 1) and cresset.equal(padded.transpose(0, 1), cresset.where(back[:4] == -1, 0, back[:4]))


def test_sequences_of_each_example():
    # Values of PyTorch 2.13, which goes through the examples too.
    pad = lambda data, sizes: cresset.ops.aten._pad_packed_sequence(data, sizes, False, 0.5, 3)  # noqa: E731
    data = cresset.arange(8.0).view(2, 4)
    padded, lengths = cresset.vmap(pad)(data, cresset.tensor([[2, 2], [2, 2]]))
    assert padded.tolist() == [[[0, 1], [2, 3], [0.5, 0.5]], [[4, 5], [6, 7], [0.5, 0.5]]] and lengths.tolist() == [[2, 2]] * 2
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        cresset.vmap(pad)(data, cresset.tensor([[2, 2], [3, 1]]))
    with cresset.autocast("cpu", dtype=cresset.bfloat16):
        assert pad(data[0].half(), cresset.tensor([2, 2]))[0].dtype is cresset.float16


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, a):
        return a.triu()


def test_parametrization():
    layer = nn.Linear(3, 3)
    original = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert bool((layer.weight == layer.weight.T).all()) and layer.parametrizations.weight.original is original
    assert set(layer.state_dict()) == {"bias", "parametrizations.weight.original"}
    layer.weight = cresset.ones(3, 3)
    assert layer.parametrizations.weight.original.tolist() == cresset.ones(3, 3).triu().tolist()
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter) and layer.weight.tolist() == cresset.ones(3, 3).tolist()
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(layer, "weight", nn.Flatten(0))


def test_weight_and_spectral_norm():
    layer = nn.Linear(3, 4)
    weight = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight.numpy(), rtol=1e-6)
    with cresset.no_grad():
        layer.parametrizations.weight.original0.fill_(2.0)
    np.testing.assert_allclose(layer.weight.detach().norm(dim=1).numpy(), 2.0, rtol=1e-6)
    layer = parametrizations.spectral_norm(nn.Linear(3, 4).double(), n_power_iterations=50)
    np.testing.assert_allclose(np.linalg.norm(layer.weight.detach().numpy(), 2), 1.0, rtol=1e-6)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_norms_of_layers_without_shape(name):
    layer = nn.LazyLinear(7)
    hooks = len(layer._forward_pre_hooks)
    with pytest.raises(ValueError, match=f"^The module passed to `{name.title().replace('_', '')}` can't have uninitialized parameters. Make sure to run the dummy forward"):
        getattr(cresset.nn.utils, name)(layer)
    assert set(dict(layer.named_parameters())) == {"weight", "bias"} and len(layer._forward_pre_hooks) == hooks  # as it was
    assert layer(cresset.ones(2, 3)).shape == (2, 7)


class Pair(cresset.Tensor):
    """A wrapper of two equal tensors."""

    @staticmethod
    def __new__(cls, a, b):
        return cresset.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, requires_grad=a.requires_grad)

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        parts = [tree_map_only(Pair, lambda t, k=k: getattr(t, k), (args, kwargs or {})) for k in ("a", "b")]
        results = [func(*a, **k) for a, k in parts]
        return Pair(*results) if isinstance(results[0], cresset.Tensor) else results[0]


@pytest.mark.parametrize("swap", [False, True])
def test_parametrized_wrappers_keep_their_object(swap):
    class Wrap(nn.Module):
        def forward(self, x):
            return Pair(x, x)

    class WrapBefore(nn.Module):
        def forward(self, x):
            return x

        def right_inverse(self, x):
            return Pair(x, x)

    cresset.__future__.set_swap_module_params_on_conversion(swap)
    try:
        for kind, leave, original, after in ((Wrap, False, nn.Parameter, nn.Parameter), (Wrap, True, nn.Parameter, Pair), (WrapBefore, True, Pair, Pair)):
            layer = nn.Linear(2, 2)
            weight, values = layer.weight, layer.weight.tolist()
            parametrize.register_parametrization(layer, "weight", kind())
            assert layer.parametrizations.weight.original is weight and type(weight) is original and type(layer.weight) is Pair
            parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)
            assert layer.weight is weight and type(weight) is after and isinstance(weight, nn.Parameter) and weight.requires_grad
            assert (weight.a if after is Pair else weight).tolist() == values
    finally:
        cresset.__future__.set_swap_module_params_on_conversion(False)


def test_pruning():
    layer = nn.Linear(3, 4)
    values = layer.weight.detach().abs().flatten()
    prune.l1_unstructured(layer, "weight", 5)
    gone = layer.weight_mask.flatten() == 0
    assert int(gone.sum()) == 5 and values[gone].max() < values[~gone].min()
    prune.ln_structured(layer, "weight", 1, n=2, dim=0)
    assert bool((layer.weight == 0).all(1).any()) and prune.is_pruned(layer)
    prune.remove(layer, "weight")
    assert set(layer.state_dict()) == {"bias", "weight"} and not prune.is_pruned(layer)


def test_fusion():
    conv, norm, x = nn.Conv2d(2, 3, 3).double().eval(), nn.BatchNorm2d(3).double().eval(), tensor(2, 2, 5, 5)
    norm.running_mean.copy_(tensor(3))
    norm.running_var.copy_(tensor(3).abs() + 0.1)
    fused = fusion.fuse_conv_bn_eval(conv, norm)
    np.testing.assert_allclose(fused(x).detach().numpy(), norm(conv(x)).detach().numpy(), atol=1e-12)
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        fusion.fuse_conv_bn_eval(conv.train(), norm)


def test_adaptive_softmax_is_a_distribution():
    layer = nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10], div_value=2.0).double()
    x, target = tensor(6, 16), cresset.tensor([0, 4, 5, 9, 10, 19])
    log_probs = layer.log_prob(x)
    np.testing.assert_allclose(log_probs.exp().sum(1).detach().numpy(), 1.0)
    output, loss = layer(x, target)
    np.testing.assert_allclose(output.detach().numpy(), log_probs[cresset.arange(6), target].detach().numpy())
    np.testing.assert_allclose(loss.item(), -output.mean().item())
    assert layer.predict(x).tolist() == log_probs.argmax(1).tolist()


def test_sync_batch_norm_in_one_process():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model))
    assert type(synced[1]) is nn.SyncBatchNorm and synced.state_dict().keys() == model.state_dict().keys()
    x = cresset.randn(3, 1, 4, 4)
    np.testing.assert_array_equal(synced(x).detach().numpy(), model(x).detach().numpy())


def test_one_device_only():
    layer = nn.Linear(2, 2)
    assert nn.DataParallel(layer)(cresset.ones(1, 2)).tolist() == layer(cresset.ones(1, 2)).tolist()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        nn.parallel.DistributedDataParallel(layer)


def test_sizes_and_names_of_modules_of_others():
    from cresset.nn.modules import utils

    assert utils._pair(3) == (3, 3) and utils._pair([1, 2]) == (1, 2) and utils._triple.__name__ == "_triple"
    assert utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    state = nn.Sequential(nn.Sequential(nn.Linear(1, 1))).state_dict(prefix="module.")
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.0.weight", "0.0.bias"]
    assert list(state._metadata) == ["", "0", "0.0"]


def test_skip_init_and_convolution_gradients():
    assert skip_init(nn.Linear, 3, 4).weight.shape == (4, 3)
    x, w = tensor(2, 3, 6).requires_grad_(), tensor(4, 3, 3).requires_grad_()
    y = nn.functional.conv1d(x, w, padding=1)
    g = tensor(*y.shape)
    gx, gw = cresset.autograd.grad(y, (x, w), g)
    np.testing.assert_allclose(nn.grad.conv1d_input(x.shape, w, g, padding=1).detach().numpy(), gx.numpy())
    np.testing.assert_allclose(nn.grad.conv1d_weight(x, w.shape, g, padding=1).detach().numpy(), gw.numpy())
