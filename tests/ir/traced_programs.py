"""Programs to trace: modules and functions of PyTorch's public surface. Run with PyTorch, this writes the operators of their traces:

python tests/ir/traced_programs.py    (with the oracle; writes traced_operators.json)
"""

import json
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

R = lambda *s: torch.ones(s)
PROGRAMS = {}  # name: (module or function, example inputs)


def m(name, mod, *a):
    PROGRAMS[name] = (mod, a)


for act in [
    "ReLU",
    "ReLU6",
    "GELU",
    "SiLU",
    "Mish",
    "ELU",
    "SELU",
    "CELU",
    "LeakyReLU",
    "Hardswish",
    "Hardsigmoid",
    "Hardtanh",
    "Softplus",
    "Softsign",
    "Tanhshrink",
    "Softshrink",
    "Hardshrink",
    "LogSigmoid",
    "Sigmoid",
    "Tanh",
    "PReLU",
    "RReLU",
]:
    m(act, getattr(nn, act)().eval(), R(2, 3))
m("GLU", nn.GLU(), R(2, 4))
m("Softmax", nn.Softmax(1), R(2, 4))
m("LogSoftmax", nn.LogSoftmax(1), R(2, 4))
m("Softmin", nn.Softmin(1), R(2, 4))
m("Softmax2d", nn.Softmax2d(), R(2, 3, 4, 4))
m("Threshold", nn.Threshold(0.1, 2.0), R(2))
for d in (1, 2, 3):
    s = (2, 4) + (8,) * d
    for k in ["Conv", "ConvTranspose"]:
        m(f"{k}{d}", getattr(nn, f"{k}{d}d")(4, 6, 3), R(*s))
    m(f"Conv{d}same", getattr(nn, f"Conv{d}d")(4, 6, 3, padding="same"), R(*s))
    m(f"Conv{d}refl", getattr(nn, f"Conv{d}d")(4, 6, 3, padding=1, padding_mode="reflect"), R(*s))
    for k in ["MaxPool", "AvgPool", "LPPool"]:
        m(f"{k}{d}", getattr(nn, f"{k}{d}d")(2, 2) if k == "LPPool" else getattr(nn, f"{k}{d}d")(2), R(*s))
    for k in ["AdaptiveAvgPool", "AdaptiveMaxPool"]:
        m(f"{k}{d}", getattr(nn, f"{k}{d}d")(2), R(*s))
    m(f"maxpoolidx{d}", getattr(nn, f"MaxPool{d}d")(2, return_indices=True), R(*s))
    for tr in (0, 1):
        m(f"BatchNorm{d}{tr}", getattr(nn, f"BatchNorm{d}d")(4).train(bool(tr)), R(*s))
        m(f"InstanceNorm{d}{tr}", getattr(nn, f"InstanceNorm{d}d")(4, track_running_stats=True).train(bool(tr)), R(*s))
    for k in ["Reflection", "Replication", "Constant", "Zero", "Circular"]:
        a = (1, 1.5) if k == "Constant" else (1,)
        m(f"{k}Pad{d}", getattr(nn, f"{k}Pad{d}d")(*a), R(*s))
    m(f"Dropout{d}", getattr(nn, "Dropout" if d == 1 else f"Dropout{d}d")(0.5), R(*s))
    m(f"Dropout{d}e", getattr(nn, "Dropout" if d == 1 else f"Dropout{d}d")(0.5).eval(), R(*s))
m("LayerNorm", nn.LayerNorm(4), R(2, 4))
m("RMSNorm", nn.RMSNorm(4), R(2, 4))
m("GroupNorm", nn.GroupNorm(2, 4), R(2, 4, 3))
m("LRN", nn.LocalResponseNorm(2), R(2, 4, 3, 3))
m("CrossMapLRN", nn.CrossMapLRN2d(2), R(2, 4, 3, 3))
m("Linear", nn.Linear(4, 3), R(2, 4))
m("LinearNB", nn.Linear(4, 3, bias=False), R(2, 4))
m("Bilinear", nn.Bilinear(4, 3, 2), R(2, 4), R(2, 3))
m("Identity", nn.Sequential(nn.Identity(), nn.ReLU()), R(2))
m("Embedding", nn.Embedding(5, 3), torch.tensor([1, 2]))
m("EmbeddingBag", nn.EmbeddingBag(5, 3), torch.tensor([[1, 2]]))
m("EmbeddingPad", nn.Embedding(5, 3, padding_idx=0, max_norm=1.0), torch.tensor([1, 2]))
for rn in ["RNN", "LSTM", "GRU"]:
    for kw in [dict(), dict(num_layers=2, dropout=0.1), dict(bidirectional=True, batch_first=True), dict(bias=False)]:
        m(f"{rn}{sorted(kw)}", getattr(nn, rn)(4, 3, **kw), R(5, 2, 4))
    m(rn + "unbatched", getattr(nn, rn)(4, 3), R(5, 4))
    m(rn + "Cell", getattr(nn, rn + "Cell")(4, 3), R(2, 4))
m("LSTMproj", nn.LSTM(4, 3, proj_size=2), R(5, 2, 4))
m("LSTMh", nn.LSTM(4, 3), R(5, 2, 4), (R(1, 2, 3), R(1, 2, 3)))
m("GRUh", nn.GRU(4, 3), R(5, 2, 4), R(1, 2, 3))
m("RNNrelu", nn.RNN(4, 3, nonlinearity="relu"), R(5, 2, 4))
for tr in (0, 1):
    m(f"MHA{tr}", nn.MultiheadAttention(4, 2).train(bool(tr)), R(3, 2, 4), R(3, 2, 4), R(3, 2, 4))
    m(f"MHAbf{tr}", nn.MultiheadAttention(4, 2, batch_first=True, dropout=0.1).train(bool(tr)), R(3, 2, 4), R(3, 2, 4), R(3, 2, 4))
    m(f"TEL{tr}", nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).train(bool(tr)), R(3, 2, 4))
    m(f"TDL{tr}", nn.TransformerDecoderLayer(4, 2, 8).train(bool(tr)), R(3, 2, 4), R(3, 2, 4))
    m(f"TE{tr}", nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2).train(bool(tr)), R(3, 2, 4))
m("Upsample", nn.Upsample(scale_factor=2), R(1, 2, 3, 3))
m("UpsampleBil", nn.Upsample(size=(5, 5), mode="bilinear"), R(1, 2, 3, 3))
m("PixelShuffle", nn.PixelShuffle(2), R(1, 4, 3, 3))
m("PixelUnshuffle", nn.PixelUnshuffle(2), R(1, 1, 4, 4))
m("ChannelShuffle", nn.ChannelShuffle(2), R(1, 4, 3, 3))
m("Fold", nn.Fold((4, 4), 2), R(1, 8, 9))
m("Unfold", nn.Unfold(2), R(1, 2, 4, 4))
m("Flatten", nn.Flatten(), R(1, 2, 4, 4))
m("Unflatten", nn.Unflatten(1, (2, 2)), R(1, 4))
for L in ["L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "KLDivLoss", "BCELoss", "BCEWithLogitsLoss", "SoftMarginLoss", "PoissonNLLLoss"]:
    m(L, getattr(nn, L)(), R(2, 3) * 0.5, R(2, 3) * 0.5)
T = torch.tensor([1, 0])
m("CE", nn.CrossEntropyLoss(), R(2, 3), T)
m("CEls", nn.CrossEntropyLoss(label_smoothing=0.1), R(2, 3), T)
m("NLL", nn.NLLLoss(), R(2, 3), T)
m("MultiMargin", nn.MultiMarginLoss(), R(2, 3), T)
m("CosEmb", nn.CosineEmbeddingLoss(), R(2, 3), R(2, 3), R(2))
m("Triplet", nn.TripletMarginLoss(), R(2, 3), R(2, 3) * 2, R(2, 3) * 3)
m("CTC", nn.CTCLoss(), R(5, 2, 4).log_softmax(-1), torch.tensor([[1, 2], [2, 3]]), torch.tensor([5, 5]), torch.tensor([2, 2]))
m("GaussNLL", nn.GaussianNLLLoss(), R(2, 3), R(2, 3), R(2, 3))
m("MLSM", nn.MultiLabelSoftMarginLoss(), R(2, 3), R(2, 3))
m("HingeEmb", nn.HingeEmbeddingLoss(), R(2, 3), R(2, 3))
m("MarginRank", nn.MarginRankingLoss(), R(2), R(2), R(2))
fs = {
    "interp": lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
    "interpbic": lambda x: F.interpolate(x, size=(4, 4), mode="bicubic", antialias=True),
    "pad": lambda x: F.pad(x, (1, 1)),
    "grid": lambda x: F.grid_sample(x, F.affine_grid(torch.ones(1, 2, 3), (1, 2, 4, 4))),
    "einsum": lambda x: torch.einsum("nchw,nchk->nwk", x, x),
    "norm": lambda x: F.normalize(x),
    "sdpa": lambda x: F.scaled_dot_product_attention(x, x, x),
    "sdpac": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "view": lambda x: x.view(x.size(0), -1),
    "shape": lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]),
    "chunk": lambda x: x.chunk(2, 1)[0] + 1,
    "split": lambda x: torch.split(x, [1, 1], 1),
    "unbind": lambda x: [t + 1 for t in x.unbind(1)],
    "iter": lambda x: torch.stack([t for t in x[0]]),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "mf": lambda x: x.masked_fill(x > 0, 1.0),
    "to": lambda x: x.to(torch.float64).half().float(),
    "type_as": lambda x: x.double().type_as(x),
    "arange": lambda x: torch.arange(x.size(1)) + 1,
    "zeros": lambda x: torch.zeros(x.shape) + x,
    "zl": lambda x: torch.zeros_like(x) + x.new_ones(x.shape) + torch.full_like(x, 2) + x.new_zeros(3, 3),
    "expand": lambda x: x[:, :1].expand(-1, 2, -1, -1),
    "expas": lambda x: x[:, :1].expand_as(x),
    "repeat": lambda x: x.repeat(1, 2, 1, 1),
    "permute": lambda x: x.permute(0, 2, 3, 1).transpose(1, 2).contiguous().flatten(1),
    "T": lambda x: x[0, 0].T @ x[0, 0].mT,
    "bool": lambda x: (x > 0) & (x < 2) | ~(x == 1),
    "reduce": lambda x: (x.sum(), x.mean(1), x.amax((1, 2), keepdim=True), x.std(1), x.var(), x.max(1)[0], x.argmax(1), x.prod(1), x.norm(dim=1), x.cumsum(1), x.logsumexp(1)),
    "arith": lambda x: ((x + 1) * 2 - 3) / 4,
    "rarith": lambda x: (1 - x, 2 / x, 2**x, x**2, x**0.5, x // 2, x % 2, -x, abs(x)),
    "cmp": lambda x: (x > 1, x >= x, x != 1),
    "inpl": lambda x: x.clone().add_(1).mul_(2).relu_(),
    "gather": lambda x: x.gather(1, torch.zeros(1, 1, 3, 3, dtype=torch.int64)),
    "index": lambda x: x[:, [0, 1]],
    "idx2": lambda x: x[torch.tensor([0]), :, 0],
    "mask": lambda x: x[x > 0],
    "setmask": lambda x: set_mask(x),
    "topk": lambda x: x.topk(1, 1),
    "sort": lambda x: x.sort(1, descending=True),
    "cat": lambda x: torch.cat((x, x), 1),
    "stack": lambda x: torch.stack([x, x]),
    "mm": lambda x: torch.bmm(x[0], x[0]),
    "roll": lambda x: x.roll(1, 2).flip(1),
    "triu": lambda x: x.triu(1),
    "clamp": lambda x: x.clamp(0, 1).clamp_min(0),
    "one": lambda x: F.one_hot(x.long(), 3),
    "lin": lambda x: F.linear(x, x[0, 0]),
    "drop": lambda x: F.dropout(x, 0.5),
    "rand": lambda x: torch.randn(2, 3) + torch.rand_like(x).sum(),
    "numel": lambda x: x.sum() / x.numel(),
    "len": lambda x: x * len(x),
    "item": lambda x: x * x.sum().item(),
    "newaxis": lambda x: x[..., None, :],
    "step": lambda x: x[:, ::2, 1:],
    "neg": lambda x: x[..., -1],
    "tri": lambda x: x.masked_fill(torch.tril(torch.ones(3, 3)) == 0, float("-inf")),
    "meshgrid": lambda x: torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij"),
    "outer": lambda x: torch.outer(x[0, 0, 0], x[0, 0, 1]),
    "dict": lambda x: {"a": x + 1, "b": x},
    "cplx": lambda x: torch.view_as_real(torch.fft.rfft(x)),
    "addmm": lambda x: torch.addmm(x[0, 0], x[0, 0], x[0, 0]),
    "swish": lambda x: x * torch.sigmoid(x),
    "pow": lambda x: torch.pow(x, 2) + torch.rsqrt(x),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "movedim": lambda x: x.movedim(1, -1).swapaxes(0, 1),
    "bucket": lambda x: torch.bucketize(x, torch.ones(3)),
    "scatter": lambda x: x.scatter(1, torch.zeros(1, 1, 3, 3, dtype=torch.int64), 2.0),
    "index_put": lambda x: x.index_put((torch.tensor([0]),), torch.tensor(1.0)),
    "atan": lambda x: torch.atan2(x, x),
    "lerp": lambda x: torch.lerp(x, x, 0.5),
    "multinomial": lambda x: torch.multinomial(x[0, 0], 1),
    "as_tensor": lambda x: x + torch.as_tensor(2.0),
    "size_arith": lambda x: x.view(x.size(0), x.size(1) // 2, -1),
    "float_scalar": lambda x: x * float(x.size(1)) ** -0.5,
    "scalar_tensor": lambda x: x + torch.scalar_tensor(1.0),
    "narrow": lambda x: x.narrow(1, 0, 1).squeeze(1).unsqueeze(0),
    "select": lambda x: x.select(1, 0).index_select(1, torch.tensor([0])),
    "softmaxd": lambda x: F.softmax(x, dim=-1, dtype=torch.float64),
    "std_mean": lambda x: torch.std_mean(x),
    "cdist": lambda x: torch.cdist(x[0], x[0]),
    "cosim": lambda x: F.cosine_similarity(x, x),
    "gumbel": lambda x: F.gumbel_softmax(x),
    "linspace": lambda x: torch.linspace(0, 1, 3) + x,
    "eye": lambda x: torch.eye(3) @ x,
    "full": lambda x: torch.full((2, 2), 1.0) * 2,
    "detach": lambda x: x.detach() + x.data,
    "tolist": lambda x: x * x.shape[-1],
    "unflat": lambda x: x.unflatten(1, (1, 2)),
    "tensor_split": lambda x: x.tensor_split(2, 1)[0] * 1,
    "hsplit": lambda x: torch.hstack((x, x)),
    "baddbmm": lambda x: torch.baddbmm(x[0], x[0], x[0]),
    "nanum": lambda x: torch.nan_to_num(x).isnan(),
    "iadd": lambda x: iadd(x),
}


def set_mask(x):
    x = x.clone()
    x[x > 0] = 0
    x[:, 0] = x[:, 1]
    x[..., 1:] += 2
    return x


def iadd(x):
    y = x * 1
    y += 1
    y *= y
    y -= 2
    y /= 3
    y **= 2
    return y


for k, f in fs.items():
    m("f:" + k, f, R(1, 2, 3, 3))


# Sizes are read where they are needed, and attributes where a module is entered: their places are not compared.
READS = {"GetAttr", "size", "NumToTensor", "Int", "Constant"}


def operators():
    """{name: operators of the trace, in order}; an error's class for what cannot be traced."""
    found = {}
    for name, (program, inputs) in PROGRAMS.items():
        torch.manual_seed(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                traced = torch.jit.trace(program, inputs, check_trace=False)
        except Exception as error:
            found[name] = type(error).__name__
            continue
        graph = traced.inlined_graph if hasattr(traced, "inlined_graph") else traced.graph
        kinds = [n.kind().partition("::")[2] for n in graph.nodes()]
        found[name] = " ".join(kind for kind in kinds if kind not in READS)
    return found


if __name__ == "__main__":
    text = json.dumps({"torch": torch.__version__, **operators()}, indent=0)
    Path(__file__).with_name("traced_operators.json").write_text(text + "\n")
