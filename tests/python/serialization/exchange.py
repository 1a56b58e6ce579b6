"""Objects that are written by one package and read by the other: `python exchange.py write|read torch|cresset|alias FOLDER`.

Both sides build the same objects; `read` prints a line for each that comes back different, and a count.
"""

import argparse
import collections
import contextlib
import datetime
import decimal
import math
import os
import pathlib
import pickle
import sys
import warnings

import numpy as np

DTYPES = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 bool".split()

# module | shapes of its inputs; E: in eval mode, L: indices
MODULES = """Linear(4,3)|2,4
Bilinear(4,4,3)|2,4;2,4
LazyLinear(3)|2,4
Conv1d(2,3,2)|1,2,8
Conv2d(2,3,2,padding='same')|1,2,8,8
Conv3d(2,3,2,padding_mode='circular',padding=1)|1,2,4,4,4
ConvTranspose2d(2,3,2,stride=2)|1,2,4,4
LazyConv2d(3,2)|1,2,8,8
Fold((4,4),2,stride=2)|1,8,4
MaxPool2d(2)|1,2,8,8
AvgPool2d(2)|1,2,8,8
LPPool2d(2,2)|1,2,8,8
AdaptiveAvgPool2d((2,None))|1,2,8,8
ReflectionPad2d(1)|1,2,8,8
ConstantPad1d(1,2.)|1,2,8
PReLU()|2,4
GELU(approximate='tanh')|2,4
Threshold(.1,2.)|2,4
Softmax(1)|2,4
BatchNorm1d(4)|2,4
LazyBatchNorm1d()|2,4
GroupNorm(2,4)|2,4,4
InstanceNorm2d(2,affine=True)|2,2,4,4
LayerNorm(4)|2,4
RMSNorm(4)|2,4
CrossMapLRN2d(2)|1,4,4,4
RNN(4,3,nonlinearity='relu')|5,2,4
LSTM(4,3,2,bidirectional=True)|5,2,4
LSTM(4,3,proj_size=2)|5,2,4
GRU(4,3,2,batch_first=True)|2,5,4
LSTMCell(4,3)|2,4
MultiheadAttention(4,2)|5,2,4;5,2,4;5,2,4
TransformerEncoder(nn.TransformerEncoderLayer(4,2,8),2)|E5,2,4
Transformer(4,2,1,1,8)|E5,2,4;5,2,4
Dropout(.2)|E2,4
Embedding(5,3,padding_idx=0)|L2,4
EmbeddingBag(5,3)|L2,4
CrossEntropyLoss(label_smoothing=.1)|2,4;2,4
BCEWithLogitsLoss(pos_weight=torch.ones(4))|2,4;2,4
TripletMarginWithDistanceLoss()|2,4;2,4;2,4
AdaptiveLogSoftmaxWithLoss(4,10,[2,5])|
PixelShuffle(2)|1,4,2,2
ChannelShuffle(2)|1,4,2,2
Upsample(scale_factor=2)|1,2,4,4
Unflatten(1,(2,2))|2,4
Sequential(nn.Linear(4,4),nn.ReLU())|2,4
ModuleDict({'a':nn.Linear(1,1)})|
ParameterList([nn.Parameter(torch.ones(2))])|
ParameterDict({'a':nn.Parameter(torch.ones(2))})|
utils.weight_norm(nn.Linear(4,3))|2,4
utils.spectral_norm(nn.Linear(4,3))|E2,4""".splitlines()
OPTIMIZERS = "SGD AdamW Adam Adadelta Adagrad Adamax ASGD NAdam RAdam RMSprop Rprop".split()
SCHEDULES = (
    "StepLR(o,3)", "MultiStepLR(o,[1,2])", "LinearLR(o)", "ExponentialLR(o,.9)", "CosineAnnealingLR(o,5)", "OneCycleLR(o,.1,total_steps=10)",
    "CyclicLR(o,.1,.2,cycle_momentum=False)", "CyclicLR(o,.1,.2,cycle_momentum=False,mode='exp_range')",
)  # fmt: skip


def safe_objects(torch):
    """What weights_only reads."""
    nn = torch.nn
    x = torch.arange(24.0).reshape(2, 3, 4)
    noted, attributes = nn.Parameter(torch.arange(3.0)), torch.arange(6.0)
    noted.tag, attributes.note = "hello", [1, 2]
    yield from ((f"dtype_{name}", torch.tensor([0, 1, 1]).to(getattr(torch, name))) for name in DTYPES)
    yield "views", [x, x.transpose(0, 2), x[1], x[:, ::2], x.view(-1), x[0, 0, 0]]
    yield "nonleaf", torch.ones(2, requires_grad=True) * 2
    yield "leaf", torch.ones(2, requires_grad=True)
    yield "parameters", [nn.Parameter(torch.ones(2)), noted, nn.Parameter(torch.ones(2), False)]
    yield "attributes", attributes
    yield "empty", [torch.empty(0), torch.empty(0, 3), torch.tensor(3.5)]
    yield "expanded", torch.ones(1).expand(5, 4)
    yield "conjugate", torch.tensor([1 + 2j]).conj()
    yield "negative", torch.tensor([1 + 2j]).conj().imag
    rows = torch.linspace(-1.3, 2.2, 12).view(3, 4)
    one = torch.quantize_per_tensor(rows, 0.1, 10, torch.quint8)
    yield "quantized", [one, one.t(), torch.quantize_per_tensor(rows, 0.05, 0, torch.qint32)]
    yield "quantized_rows", torch.quantize_per_channel(rows, torch.tensor([0.1, 0.2, 0.05]), torch.tensor([0, 1, 2]), 0, torch.qint8)
    yield "quantized_types", [torch.qint8, torch.per_channel_affine]
    yield "meta", torch.empty(2, 3, device="meta")
    yield "facts", [torch.Size([1, 2]), torch.bfloat16, torch.device("cpu"), torch.device("cuda:1"), torch.strided]
    yield "containers", {"s": {1, 2}, "c": collections.Counter("aab"), "o": collections.OrderedDict(a=1), 7: (1, [2, {}]), ("a", 1): None}
    yield "values", [b"ab\xff", bytearray(b"xy"), 1 + 2j, 2**70, -5, 1e300, float("inf"), True, "\u00e4"]
    yield "storages", [torch.arange(3.0).storage(), torch.arange(3).storage()]
    torch.manual_seed(0)
    yield "generator_state", torch.get_rng_state()
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    yield "checkpoint", {"model": layer.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "history": [1.5, (2, True)]}
    yield "layers", nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).state_dict()


def other_objects(torch):
    """What only weights_only=False reads."""
    nn = torch.nn
    yield "arrays", [np.arange(6.0).reshape(2, 3), np.float32(1.5), np.array([1, "a", None], dtype=object), np.int64(3), np.array(["a", "bc"])]
    yield "namespace", argparse.Namespace(lr=0.1, layers=[1, 2])
    yield "times", [datetime.datetime(2024, 1, 2, 3, 4, 5), datetime.timedelta(1)]
    yield "standard", [pathlib.PurePosixPath("/a/b"), frozenset([1]), range(3), slice(1, 2), decimal.Decimal("1.5"), collections.deque([1, 2]), ValueError("a")]
    yield "classes", [torch.Tensor, nn.Parameter, nn.Linear]
    yield "result", torch.arange(3.0).max(0)
    yield "operator", [torch.relu, nn.functional.gelu]
    yield "uninitialized", nn.parameter.UninitializedParameter()
    yield "dataset", torch.utils.data.TensorDataset(torch.ones(3))
    yield "generator", torch.Generator().manual_seed(5)


def plain(torch, o):
    """What two objects have in common when one is the other from a file."""
    if type(o).__name__.startswith("Uninitialized"):
        return type(o).__name__
    if isinstance(o, torch.Tensor) and o.is_quantized:
        facts = (o.q_scale(), o.q_zero_point()) if o.qscheme() is torch.per_tensor_affine else (o.q_per_channel_scales().tolist(), o.q_per_channel_axis())
        return str(o.dtype), tuple(o.stride()), facts, o.int_repr().tolist()
    if isinstance(o, torch.Tensor):
        facts = (type(o).__name__, str(o.dtype).rpartition(".")[2], tuple(o.shape), tuple(o.stride()), o.requires_grad, repr(o.__dict__))
        return facts + ((o.device.type,) if o.is_meta else (o.detach().resolve_conj().tolist(),))
    if type(o).__name__ in ("TypedStorage", "UntypedStorage"):
        return o.tolist()
    if isinstance(o, np.ndarray):
        return str(o.dtype), o.tolist()
    if isinstance(o, torch.Generator):
        return o.initial_seed(), torch.rand(3, generator=o).tolist()
    if isinstance(o, (torch.dtype, torch.layout)):
        return str(o).rpartition(".")[2]
    if isinstance(o, type):
        return o.__name__
    if isinstance(o, dict):
        return type(o).__name__, [(plain(torch, k), plain(torch, v)) for k, v in o.items()]
    if isinstance(o, (list, tuple)):
        return type(o).__name__, [plain(torch, v) for v in o]
    if isinstance(o, torch.utils.data.Dataset):
        return plain(torch, o.__dict__)
    return getattr(o, "__name__", None) or repr(o)


def inputs(torch, text):
    if text.startswith("L"):
        return [torch.arange(8).reshape(2, 4) % 5]
    shapes = [tuple(map(int, part.split(","))) for part in text.lstrip("E").split(";") if part]
    return [torch.linspace(-1, 1, math.prod(shape)).reshape(shape) for shape in shapes]


def run(torch, module, text):
    """The numbers of a module's first result."""
    if not text:
        return list(module.state_dict())
    if text.startswith("E"):
        module.eval()
    result = module(*inputs(torch, text))
    while isinstance(result, (tuple, list)):
        result = result[0]
    return result.detach().double().flatten().tolist()


def parameter(torch):
    made = torch.nn.Parameter(torch.linspace(-1, 1, 6).reshape(3, 2))
    made.grad = torch.ones(3, 2)
    return made


def stepped(torch, optimizer):
    p = optimizer.param_groups[0]["params"][0]
    p.grad = torch.ones(3, 2)
    optimizer.step()
    return p.detach().flatten().tolist()


def steps_of(optimizer, schedule):
    optimizer.step()
    schedule.step()
    return [optimizer.param_groups[0]["lr"]]


def programs(torch):
    """(name, make, what is compared): objects that are pickled whole and then used."""
    for line in MODULES:
        text, _, shapes = line.partition("|")
        yield text, lambda text=text: eval(f"nn.{text}", {"nn": torch.nn, "torch": torch}), lambda m, shapes=shapes: run(torch, m, shapes)
    for name in OPTIMIZERS:
        def make(name=name):
            optimizer = getattr(torch.optim, name)([parameter(torch)], lr=0.1)
            optimizer.step()
            return optimizer

        yield name, make, lambda o: stepped(torch, o)
    for text in SCHEDULES:
        make = lambda text=text: eval(f"s.{text}", {"s": torch.optim.lr_scheduler, "o": torch.optim.SGD([parameter(torch)], lr=0.1)})
        yield text, make, lambda s: steps_of(s.optimizer, s)


def same(a, b):
    return a == b or (len(a) == len(b) and all(not isinstance(x, str) and abs(x - y) <= 1e-5 + 1e-4 * abs(y) for x, y in zip(a, b, strict=True)))


def file_name(folder, name, form):
    return os.path.join(folder, "".join(c if c.isalnum() else "_" for c in name) + "." + form)


def forms(side, name):
    yield "zip"
    if name != "generator":  # PyTorch's own generators do not come back from this form
        yield "legacy"
    if side != "cresset" and name not in ("result", "operator"):
        yield "pickle"


def write(torch, side, folder):
    for name, value in (*safe_objects(torch), *other_objects(torch)):
        for form in forms(side, name):
            if form == "pickle":
                pathlib.Path(file_name(folder, name, form)).write_bytes(pickle.dumps(value))
            else:
                torch.save(value, file_name(folder, name, form), _use_new_zipfile_serialization=form == "zip")
    for name, make, use in programs(torch):
        torch.manual_seed(0)
        made = make()
        torch.save(made, file_name(folder, name, "zip"))
        if "Lazy" in name:  # parameters are drawn when it is first used
            use(made)
            torch.save(made, file_name(folder, name, "used"))
        pathlib.Path(file_name(folder, name, "numbers")).write_bytes(pickle.dumps(use(made)))


def read(torch, side, folder):
    """(right, all)"""
    good = total = 0

    @contextlib.contextmanager
    def counted(name):
        nonlocal total
        total += 1
        try:
            yield
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}")

    safe = dict(safe_objects(torch))
    for name, value in {**safe, **dict(other_objects(torch))}.items():
        want = plain(torch, value.detach().requires_grad_() if name == "nonleaf" else value)
        for form in ("zip", "legacy", "pickle"):
            path = file_name(folder, name, form)
            if not os.path.exists(path) or (form == "pickle" and side == "cresset"):
                continue
            with counted(f"{name} {form}"):
                if form == "pickle":
                    have = pickle.loads(pathlib.Path(path).read_bytes())
                else:
                    have = torch.load(path, weights_only=name in safe)
                if name == "views" and form != "pickle" and len({t.untyped_storage().data_ptr() for t in have}) != 1:
                    raise ValueError("the views do not share their storage")
                if name == "negative":  # a copy or a view
                    have, want = have.tolist(), value.tolist()
                else:
                    have = plain(torch, have)
                if repr(have) != repr(want):
                    raise ValueError(f"{have} instead of {want}")
                good += 1
    for name, _, use in programs(torch):
        with counted(name):
            numbers = pickle.loads(pathlib.Path(file_name(folder, name, "numbers")).read_bytes())
            have = use(torch.load(file_name(folder, name, "zip"), weights_only=False))
            if "Lazy" in name:
                have = use(torch.load(file_name(folder, name, "used"), weights_only=False))
            if not same(have, numbers):
                raise ValueError(f"{have} instead of {numbers}")
            good += 1
    return good, total


def main(action, side, folder):
    warnings.simplefilter("ignore")
    if side == "cresset":
        import cresset as torch
    else:
        if side == "alias":
            from cresset import as_torch

            as_torch.install()
        import torch
    if action == "write":
        os.makedirs(folder, exist_ok=True)
        write(torch, side, folder)
        return 0
    good, total = read(torch, side, folder)
    print(f"{side} read {good} of {total}")
    return good != total


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
