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
