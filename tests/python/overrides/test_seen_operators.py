"""A mode sees of 257 programs and of their gradients the operators that it sees with PyTorch 2.13 (seen_operators.json, by seen_operators.py)."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "seen_operators.json").read_text())
del RECORDED["torch"]

# What differs, by reason.
OTHERWISE = {
    **dict.fromkeys((f"{kind}{d}{flag}" for kind in ("BatchNorm", "InstanceNorm") for d in (1, 2, 3) for flag in (0, 1)),
                    "no reserve for cuDNN is made"),
    **dict.fromkeys(("LPPool1", "LPPool2", "LPPool3", "GaussNLL", "RMSNorm", "f:pow"), "a square is a product, and its derivative needs no power"),
    **dict.fromkeys(("RNN[]", "RNN['dropout', 'num_layers']", "RNN['batch_first', 'bidirectional']", "RNN['bias']", "RNNunbatched", "RNNrelu", "RNNCell",
                     "GRU[]", "GRU['dropout', 'num_layers']", "GRU['batch_first', 'bidirectional']", "GRU['bias']", "GRUunbatched", "GRUh", "GRUCell",
                     "LSTMCell", "LSTMproj"), "gates are not written in place"),
    **dict.fromkeys(("LSTM[]", "LSTM['dropout', 'num_layers']", "LSTM['batch_first', 'bidirectional']", "LSTM['bias']", "LSTMunbatched", "LSTMh"),
                    "oneDNN's layer is not an operator"),
    **dict.fromkeys(("HingeEmb", "MarginRank", "CosEmb", "Triplet", "f:where", "f:clamp", "f:norm"), "where takes numbers"),
    **dict.fromkeys(("BCELoss", "BCEWithLogitsLoss", "CEls", "KLDivLoss", "f:cosim", "f:std_mean", "f:one"), "temporaries are not written in place"),
    **dict.fromkeys(("CircularPad1", "CircularPad2", "CircularPad3"), "joined instead of written into an empty tensor"),
    **dict.fromkeys(("f:iter", "f:stack"), "the gradient of a stack is unbound"),
    **dict.fromkeys(("TEL0", "TDL0", "TE0", "f:cdist", "f:eye"), "a matrix that its reader takes as it is is not copied"),
    "GroupNorm": "the layer norm of its groups",
    "CrossMapLRN": "a layer of operators, where PyTorch has an autograd.Function",
    "Bilinear": "its gradient goes through the parts",
    "EmbeddingBag": "the gradient of a dense table is asked for as such",
    "PReLU": "the gradient of the weight is viewed twice",
    "RReLU": "without noise it is leaky_relu",
    **dict.fromkeys(("Dropout2", "Dropout3"), "noise is a result, so that vmap gives each example its own"),
    "SoftMarginLoss": "the error for a target that requires grad is NotImplementedError",
    "CTC": "lengths are numbers",
    "f:rarith": "PyTorch has no derivative of floor_divide, not even zero",
    **dict.fromkeys(("f:reduce", "f:inpl", "f:setmask", "f:cplx", "f:atan", "f:lerp", "f:detach"), "formulas of one's own"),
}  # fmt: skip


@pytest.fixture(scope="module")
def found(run_as_torch):
    return run_as_torch(HERE / "seen_operators.py", "seen_operators")


@pytest.mark.parametrize("name", RECORDED)
def test_seen(found, name):
    assert (found[name] == RECORDED[name]) is (name not in OTHERWISE), f"{found[name]}\n{RECORDED[name]}"
