"""Masks of activations (`ao.pruning._experimental.activation_sparsifier`), beside PyTorch 2.13."""

import io

import cresset as torch
import pytest
from cresset import nn
from cresset.ao.pruning._experimental.activation_sparsifier.activation_sparsifier import ActivationSparsifier


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Identity(), nn.Identity()

    def forward(self, x):
        return self.b(self.a(x))


def mean(x):
    return x.mean(0)


def largest(x, level=0.5):
    """Zeroes the largest elements, by the fraction `level`."""
    mask = torch.ones_like(x)
    mask.view(-1)[x.abs().flatten().argsort(descending=True)[: int(level * x.numel())]] = 0
    return mask


X = torch.arange(1.0, 9).view(2, 4)


def watched(**config):
    net = Net()
    return net, ActivationSparsifier(net, torch.add, mean, largest, **config)


def test_inputs_are_added_up_and_masked():
    net, sparsifier = watched(level=0.25)
    sparsifier.register_layer(net.a)
    sparsifier.register_layer(net.b, level=0.5)
    assert sparsifier.data_groups["a"]["sparse_config"] == {"level": 0.25} and sparsifier.data_groups["b"]["sparse_config"] == {"level": 0.5}
    with pytest.raises(ValueError, match=r"^Error: shape unknown, call layer\(\) routine at least once to infer mask$"):
        sparsifier.get_mask("a")
    net(X)
    assert torch.equal(sparsifier.get_mask("a"), torch.ones(2, 4))
    net(X)
    assert torch.equal(sparsifier.data_groups["a"]["data"], X * 2)
    sparsifier.step()
    assert sparsifier.get_mask("a").tolist() == [1, 1, 1, 0] and sparsifier.get_mask(layer=net.b).tolist() == [1, 1, 0, 0]
    assert "data" not in sparsifier.data_groups["a"]
    sparsifier.squash_mask()
    assert net(X).tolist() == [[1, 2, 0, 0], [5, 6, 0, 0]]
    assert [len(layer._forward_pre_hooks) for layer in (net.a, net.b)] == [1, 1]
    sparsifier.unregister_layer("b")
    assert net(X).tolist() == [[1, 2, 3, 0], [5, 6, 7, 0]]


def test_features():
    net, sparsifier = watched()
    sparsifier.register_layer(net.a, features=[0, 2], feature_dim=1, level=1.0)
    net(X)
    assert [d.tolist() for d in sparsifier.data_groups["a"]["data"]] == [[[1], [5]], [[3], [7]]]
    sparsifier.step()
    assert [m.tolist() for m in sparsifier.get_mask("a")] == [[0], [0]]
    sparsifier.squash_mask()
    assert net(X).tolist() == [[0, 2, 0, 4], [0, 6, 0, 8]]


def test_no_masks_after_all():
    net, sparsifier = watched()
    sparsifier.register_layer(net.a)
    net(X)
    sparsifier.step()
    sparsifier.squash_mask(attach_sparsify_hook=False)
    assert torch.equal(net(X), X) and sparsifier.data_groups["a"]["hook_state"] is None


def test_state_dicts():
    net, sparsifier = watched()
    sparsifier.register_layer(net.a)
    sparsifier.register_layer(net.b, features=[1], feature_dim=1)
    net(X)
    sparsifier.step()
    sparsifier.squash_mask()
    state = sparsifier.state_dict()
    assert state["state"]["a"]["mask"].is_sparse and state["state"]["b"]["mask"][0].is_sparse
    assert sorted(state["data_groups"]["a"]) == ["aggregate_fn", "feature_dim", "features", "hook_state", "mask_fn", "reduce_fn", "sparse_config"]
    file = io.BytesIO()
    torch.save(state["state"], file)
    file.seek(0)
    other = Net()
    loaded = ActivationSparsifier(other)
    loaded.load_state_dict({**state, "state": torch.load(file, weights_only=False)})
    assert torch.equal(other(X), net(X)) and not torch.equal(other(X), X) and loaded.defaults == sparsifier.defaults
    loaded.load_state_dict(state)
    assert len(other.a._forward_pre_hooks) == 1
    with pytest.raises(AssertionError, match="^layer a not found in the model$"):
        ActivationSparsifier(nn.ReLU()).load_state_dict(state)


def test_words():
    net, sparsifier = watched()
    assert repr(sparsifier) == "ActivationSparsifier ()"
    sparsifier.register_layer(net.a)
    assert repr(sparsifier) == (
        "ActivationSparsifier (\n\tData Group\n\t    name: a\n\t    feature_dim: None\n\t    features: None\n\t    hook_state: aggregate\n\t    layer: Identity()\n\t    sparse_config: {}\n)"
    )
    with pytest.warns(UserWarning, match="^layer already attached to the sparsifier, deregistering the layer and registering with new config$"):
        sparsifier.register_layer(net.a)
    assert len(net.a._forward_pre_hooks) == 1
    for call, error, words in (
        (lambda: sparsifier.register_layer(nn.ReLU()), AssertionError, "layer not found in the model"),
        (lambda: sparsifier.register_layer(net.b, features=[0]), AssertionError, "need feature dim to select features"),
        (lambda: ActivationSparsifier(net).register_layer(net.b), AssertionError, "None must be callable"),
        (lambda: sparsifier.get_mask(), AssertionError, "Need at least name or layer obj to retrieve mask"),
        (lambda: sparsifier.get_mask(layer=nn.ReLU()), AssertionError, "layer not found in the specified model"),
        (lambda: sparsifier.get_mask("zz"), ValueError, "Error: layer with the given name not found"),
        (lambda: sparsifier.step(), KeyError, "'data'"),
    ):
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == words
