"""Masks of data and their schedules (`ao.pruning._experimental.data_sparsifier`), beside PyTorch 2.13: masks and words are its own."""

import copy
import io

import cresset as torch
import pytest
from cresset import nn
from cresset.ao.nn.quantized import Embedding, EmbeddingBag
from cresset.ao.pruning._experimental.data_scheduler import BaseDataScheduler
from cresset.ao.pruning._experimental.data_sparsifier import BaseDataSparsifier, DataNormSparsifier
from cresset.ao.pruning._experimental.data_sparsifier.quantization_utils import post_training_sparse_quantize
from cresset.nn.utils.parametrize import is_parametrized

W = (torch.sin(torch.arange(42, dtype=torch.float64) * 1.7) * 3).float().view(6, 7)


def rows(mask):
    return ["".join(str(int(value)) for value in row) for row in mask.tolist()]


def masked(data, **arguments):
    sparsifier = DataNormSparsifier([("x", data)], **arguments)
    sparsifier.step()
    return sparsifier.get_mask("x")


class FirstRow(BaseDataSparsifier):
    def update_mask(self, name, data, **kwargs):
        self.get_mask(name)[0] = 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "0000111 1111000 1111111 0000111 0000111 0000000"),
        ({"norm": "L2"}, "1111000 1111000 1111000 0000111 0000111 1111000"),
        ({"sparsity_level": 0.3}, "0000111 1111000 1111111 0000111 1111111 0000111"),
        ({"sparsity_level": 0.3, "sparse_block_shape": (2, 3)}, "0001110 0001110 1111111 1111111 0001111 0001111"),
        ({"zeros_per_block": 2}, "0101111 1111010 1111111 1010111 0110111 0101010"),
        ({"sparsity_level": 1.0, "zeros_per_block": 2}, "0101010 0101010 1010010 1010100 0110001 0101010"),
        ({"sparsity_level": 0.6, "sparse_block_shape": (4, 1), "zeros_per_block": 3}, "0110010 0011010 1010010 0010111 0101011 0101011"),
        ({"sparsity_level": -1.0}, "1111111 1111111 1111111 1111111 1111111 1111111"),
        ({"sparsity_level": 2.0}, "0000000 0000000 0000000 0000000 0000000 0000000"),
        ({"zeros_per_block": 0}, "1111111 1111111 1111111 1111111 1111111 1111111"),
        ({"sparse_block_shape": (9, 9)}, "1111111 1111111 1111111 1111111 1111111 1111111"),
        ({"sparsity_level": 0.95, "sparse_block_shape": (1, 1)}, "0000000 0000010 0000000 0000000 0000000 0100000"),
        ({"sparsity_level": 0.999, "sparse_block_shape": (3, 1)}, "0000000 0000000 0000000 0000000 0000000 0000000"),
    ],
)
def test_blocks_of_smallest_norm_are_masked(arguments, expected):
    mask = masked(W, **arguments)
    assert rows(mask) == expected.split()


def test_shapes_and_ties():
    assert rows(masked(torch.ones(4, 8))) == ["00000000", "00000000", "11111111", "11111111"]
    assert rows(masked(torch.ones(4, 8), sparsity_level=1.0, zeros_per_block=2)) == ["00110011"] * 4
    # PyTorch's masks of one row have two dimensions, and those of one column lie down: they fit no data.
    assert masked(torch.arange(9.0)).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1] and masked(torch.arange(9.0).view(9, 1)).shape == (9, 1)
    assert {masked(W, sparsity_level=level).dtype for level in (0, 0.5, 1)} == {torch.int8}
    with pytest.raises(ValueError, match="^only supports 2-D at the moment$"):
        masked(torch.ones(2, 3, 4))
    with pytest.raises(AssertionError, match="^only L1 and L2 norm supported at the moment$"):
        DataNormSparsifier(norm="l2")


def test_data_are_held_by_reference():
    x, emb = torch.arange(1.0, 7).view(2, 3), nn.Embedding(4, 2)
    sparsifier = FirstRow([("x", x), ("emb", emb)], level=1)
    assert sparsifier.data_groups == {"x": {"level": 1}, "emb": {"level": 1}}
    assert repr(sparsifier) == "FirstRow (\n\tData Group\n\t    name: x\n\t    level: 1\n\n\tData Group\n\t    name: emb\n\t    level: 1\n)"
    sparsifier.step()
    assert sparsifier.get_data("x") is x and sparsifier.get_data("emb") is emb.weight
    assert sparsifier.get_data("x", return_original=False).tolist() == [[0, 0, 0], [4, 5, 6]]
    sparsifier.squash_mask(names="x")
    assert not is_parametrized(sparsifier._container, "x") and is_parametrized(sparsifier._container, "emb") and x[0].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="^mask squashed - original mask value does not exist$"):
        sparsifier.get_data("x")


def test_replacement():
    sparsifier = FirstRow([("x", torch.ones(2, 3))], a=1)
    sparsifier.step()
    with pytest.warns(UserWarning, match="^Replacing existing data of the same name. - Did you mean a different name?"):
        sparsifier.add_data("x", torch.zeros(2, 3), b=2)
    assert rows(sparsifier.get_mask("x")) == ["000", "111"] and sparsifier.data_groups["x"] == {"a": 1, "b": 2}
    with pytest.warns(UserWarning), pytest.raises(AssertionError, match="^to retain the old mask, the shape of the new data must be the same as the previous one$"):
        sparsifier.add_data("x", torch.zeros(3, 3))
    with pytest.warns(UserWarning):
        sparsifier.add_data("x", torch.zeros(3, 3), reuse_mask=False)
    assert rows(sparsifier.get_mask("x")) == ["111"] * 3


def test_refusals():
    sparsifier = FirstRow()
    with pytest.raises(ValueError, match="^data with specified name does not exist$"):
        sparsifier.get_data("x")
    with pytest.raises(ValueError, match="^data with specified name does not exist$"):
        sparsifier.get_mask("x")
    with pytest.raises(AssertionError, match="^specified data type:<class 'list'> not supported at the moment$"):
        sparsifier.add_data("x", [1])
    with pytest.raises(NotImplementedError, match="^this function is undefined for this class$"):
        sparsifier.prepare(None, None)
    with pytest.raises(TypeError, match="Can't instantiate abstract class BaseDataSparsifier with abstract method update_mask"):
        BaseDataSparsifier()


def test_state_dicts():
    sparsifier = FirstRow([("x", torch.ones(2, 2)), ("p", nn.Parameter(torch.ones(2, 2) * 2))], a=1)
    sparsifier.step()
    state = sparsifier.state_dict()
    assert list(state) == ["state", "data_groups", "_container"] and state["state"]["x"]["mask"].is_sparse
    assert list(state["_container"]) == ["parametrizations.x.original", "parametrizations.p.original"]
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    state = torch.load(file, weights_only=False)
    other = FirstRow([("q", torch.ones(1, 1))], m=1)
    other.load_state_dict(state, strict=False)
    assert list(other.data_groups) == ["x", "p", "q"] and other.defaults == {"m": 1}
    other.load_state_dict(state)
    assert list(other.data_groups) == ["x", "p"] and other.get_data("p", return_original=False).tolist() == [[0, 0], [2, 2]]
    assert other.get_mask("p") is other._container.parametrizations.p[0].mask and not other.get_mask("p").is_sparse
    again = copy.deepcopy(sparsifier)
    assert again.get_data("x", return_original=False).tolist() == [[0, 0], [1, 1]] and not again.get_mask("x").is_sparse
    del state["_container"]["parametrizations.p.original"]
    with pytest.raises(RuntimeError, match="^Error loading p$"):
        other.load_state_dict(state)


class Half(BaseDataScheduler):
    def get_schedule_param(self):
        groups = self.data_sparsifier.data_groups
        return {name: group["sparsity_level"] * 0.5 for name, group in groups.items()} if self.last_epoch > 0 else self.base_param


def test_schedules(capsys):
    sparsifier = DataNormSparsifier([("x", torch.ones(2, 4))])
    scheduler = Half(sparsifier, "sparsity_level", verbose=True)
    sparsifier.step()
    scheduler.step()
    assert sparsifier.data_groups["x"]["sparsity_level"] == 0.25 and scheduler.get_last_param() == {"x": 0.25} and scheduler.base_param == {"x": 0.5}
    assert capsys.readouterr().out.splitlines() == ["Adjusting sparsity_level for group x to 0.5", "Adjusting sparsity_level for group x to 0.25"]
    assert repr(scheduler).startswith("Half (\nData Sparsifier DataNormSparsifier (\n") and repr(scheduler).endswith("\n    sparsity_level: {'x': 0.5}\n)")
    scheduler = Half(sparsifier, "sparsity_level")
    with pytest.warns(UserWarning, match=r"^Detected call of `scheduler.step\(\)` before `data_sparsifier.step\(\)`"):
        scheduler.step()
    with pytest.raises(TypeError, match="^int is not an instance of torch.ao.pruning.BaseDataSparsifier$"):
        Half(5, "sparsity_level")


def embeddings():
    model = nn.Sequential(nn.Embedding(4, 4), nn.Sequential(nn.EmbeddingBag(4, 4), nn.Linear(2, 2)))
    with torch.no_grad():
        model[0].weight.copy_(W.flatten()[:16].view(4, 4))
        model[1][0].weight.copy_(W.flatten()[16:32].view(4, 4))
    return model


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (True, [[[123, 255, 123, 0], [119, 255, 0, 119], [255, 135, 0, 135], [255, 126, 0, 126]], [[255, 116, 0, 238], [122, 0, 122, 255], [131, 0, 131, 255], [255, 0, 255, 255]]]),
        (False, [[[123, 255, 123, 0], [119, 255, 0, 119], [255, 135, 0, 135], [255, 126, 0, 126]], [[255, 116, 0, 238], [122, 0, 122, 255], [131, 0, 131, 255], [140, 0, 140, 140]]]),
    ],
)
def test_sparse_and_quantized_embeddings(first, expected):
    model = embeddings()
    post_training_sparse_quantize(model, DataNormSparsifier, sparsify_first=first, sparsity_level=0.5, sparse_block_shape=(1, 1))
    assert type(model[0]) is Embedding and type(model[1][0]) is EmbeddingBag and type(model[1][1]) is nn.Linear
    assert [model[0].weight().int_repr().tolist(), model[1][0].weight().int_repr().tolist()] == expected


def test_selected_embeddings():
    model = embeddings()
    post_training_sparse_quantize(model, DataNormSparsifier, select_embeddings=[model[0]])
    assert type(model[0]) is Embedding and type(model[1][0]) is nn.EmbeddingBag
    for chosen, words in (
        ([model[1][1]], "the embedding_modules list must be an embedding or embedding bags"),
        ([nn.Embedding(1, 1)], "the embedding modules must be part of input model"),
        ((), "the embedding_modules must be a list of embedding modules"),
    ):
        with pytest.raises(AssertionError, match=f"^{words}$"):
            post_training_sparse_quantize(model, DataNormSparsifier, select_embeddings=chosen)
