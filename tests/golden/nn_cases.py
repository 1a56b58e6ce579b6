"""The layers and inputs whose results are recorded in nn_layers.json; shared by the recorder and the tests.

A case is (constructor, inputs, training). An input is a shape (values cos(0.7 i + 0.3)), or a keyword with a shape:
P (in (0, 1)), S (-1 or 1), or I with the number of classes, or V with literal values. "same" repeats the input before.
"""

import math

LAYERS = [
    ("Linear(3, 4)", [(2, 3)], True),
    ("Linear(3, 2, bias=False)", [(2, 2, 3)], True),
    ("Bilinear(3, 2, 2)", [(2, 3), (2, 2)], True),
    ("Identity(54, unused=True)", [(2, 3)], True),
    ("Conv1d(3, 4, 2)", [(2, 3, 4)], True),
    ("Conv1d(3, 2, 3, padding='same', padding_mode='circular')", [(2, 3, 5)], True),
    ("Conv2d(2, 3, 3)", [(2, 2, 4, 5)], True),
    ("Conv2d(2, 3, 3, stride=2, padding=1)", [(1, 2, 4, 5)], True),
    ("Conv2d(2, 4, (3, 2), padding=(1, 0), dilation=(1, 2))", [(1, 2, 4, 5)], True),
    ("Conv2d(4, 2, 3, groups=2, bias=False)", [(1, 4, 4, 4)], True),
    ("Conv2d(2, 3, 3, padding='same')", [(2, 4, 5)], True),
    ("Conv2d(2, 3, 2, padding='valid')", [(1, 2, 4, 5)], True),
    ("Conv2d(2, 3, 3, padding=1, padding_mode='reflect')", [(1, 2, 4, 5)], True),
    ("Conv3d(2, 2, 2)", [(1, 2, 3, 3, 3)], True),
    ("ConvTranspose1d(3, 2, 3, stride=2)", [(2, 3, 4)], True),
    ("ConvTranspose2d(2, 3, 3, stride=2, output_padding=1)", [(1, 2, 3, 3)], True),
    ("BatchNorm1d(3)", [(4, 3)], True),
    ("BatchNorm1d(3)", [(2, 3, 4)], True),
    ("BatchNorm2d(2)", [(2, 2, 3, 3)], True),
    ("BatchNorm2d(2)", [(2, 2, 3, 3)], False),
    ("BatchNorm2d(2, affine=False, momentum=None)", [(2, 2, 3, 3)], True),
    ("BatchNorm2d(2, track_running_stats=False)", [(2, 2, 3, 3)], False),
    ("BatchNorm3d(2)", [(2, 2, 2, 2, 2)], True),
    ("InstanceNorm1d(3)", [(2, 3, 4)], True),
    ("InstanceNorm2d(2, affine=True, track_running_stats=True)", [(2, 2, 3, 3)], True),
    ("InstanceNorm2d(2)", [(2, 3, 3)], True),
    ("LayerNorm(3)", [(2, 3)], True),
    ("LayerNorm((3, 4), bias=False)", [(2, 3, 4)], True),
    ("LayerNorm(3, elementwise_affine=False)", [(2, 3)], True),
    ("GroupNorm(2, 4)", [(2, 4, 3)], True),
    ("RMSNorm(3)", [(2, 3)], True),
    ("RMSNorm(3, eps=0.01)", [(2, 3)], True),
    ("LocalResponseNorm(2)", [(2, 3, 4)], True),
    ("Embedding(5, 3)", [("I", (2, 3), 5)], True),
    ("Embedding(5, 3, padding_idx=1)", [("I", (2, 3), 5)], True),
    ("Embedding(5, 3, padding_idx=-1, max_norm=0.5)", [("I", (2, 3), 5)], True),
    ("Dropout(0.3)", [(2, 3)], False),
    *[
        (f"{name}", [(2, 4, 3)], True)
        for name in (
            "ReLU()",
            "ReLU6()",
            "SELU()",
            "Hardsigmoid()",
            "SiLU()",
            "Mish()",
            "Hardswish()",
            "Sigmoid()",
            "Tanh()",
            "LogSigmoid()",
            "Softsign()",
            "Tanhshrink()",
            "Threshold(0.1, 2.0)",
            "Hardtanh(-0.5, 0.25)",
            "ELU(0.5)",
            "CELU(0.5)",
            "GELU()",
            "GELU('tanh')",
            "Hardshrink()",
            "Softshrink()",
            "LeakyReLU(0.2)",
            "Softplus()",
            "Softplus(2, 1)",
            "PReLU()",
            "PReLU(4)",
            "Softmin(1)",
            "Softmax(-1)",
            "LogSoftmax(1)",
            "Softmax2d()",
            "GLU(1)",
        )
    ],  # fmt: skip
    ("MaxPool1d(2)", [(2, 3, 4)], True),
    ("MaxPool2d(2)", [(1, 2, 4, 5)], True),
    ("MaxPool2d(3, 2, 1, ceil_mode=True)", [(1, 2, 4, 5)], True),
    ("MaxPool2d(2, return_indices=True)", [(1, 2, 4, 5)], True),
    ("AvgPool1d(2)", [(2, 3, 4)], True),
    ("AvgPool2d(2, padding=1, count_include_pad=False)", [(1, 2, 4, 5)], True),
    ("AvgPool2d(2, divisor_override=3)", [(1, 2, 4, 5)], True),
    ("AdaptiveAvgPool1d(2)", [(2, 3, 5)], True),
    ("AdaptiveAvgPool2d(2)", [(1, 2, 4, 5)], True),
    ("AdaptiveAvgPool2d((None, 3))", [(1, 2, 4, 5)], True),
    ("AdaptiveMaxPool2d((2, None))", [(1, 2, 4, 5)], True),
    ("LPPool2d(2, (2, 1))", [(1, 2, 4, 5)], True),
    ("ConstantPad1d((1, 2), 2.0)", [(2, 3)], True),
    ("ConstantPad2d((1, 2, 0, 1), 2.0)", [(1, 2, 3, 3)], True),
    ("ZeroPad2d(2)", [(1, 2, 3, 3)], True),
    ("ReflectionPad1d(1)", [(2, 3)], True),
    ("ReflectionPad2d((1, 2, 0, 1))", [(1, 2, 3, 3)], True),
    ("ReplicationPad2d(2)", [(1, 2, 3, 3)], True),
    ("CircularPad1d(1)", [(1, 2, 3)], True),
    ("CircularPad2d(1)", [(1, 2, 3, 3)], True),
    ("PixelShuffle(2)", [(1, 4, 2, 2)], True),
    ("PixelUnshuffle(2)", [(1, 1, 4, 4)], True),
    ("ChannelShuffle(2)", [(1, 4, 2, 2)], True),
    ("Upsample(scale_factor=2)", [(1, 2, 2, 3)], True),
    ("Upsample(size=(3, 5), mode='bilinear')", [(1, 2, 2, 3)], True),
    ("Upsample(scale_factor=1.5, mode='bicubic', align_corners=True)", [(1, 2, 3, 3)], True),
    ("Upsample(scale_factor=2, mode='linear')", [(1, 2, 3)], True),
    ("Upsample(size=2, mode='trilinear')", [(1, 1, 3, 3, 3)], True),
    ("UpsamplingBilinear2d(scale_factor=2)", [(1, 1, 2, 3)], True),
    ("Unfold(2, padding=1, stride=2)", [(1, 2, 3, 3)], True),
    ("Fold((3, 3), 2)", [(1, 8, 4)], True),
    ("RReLU()", [(2, 4)], False),
    ("Flatten()", [(2, 3, 4)], True),
    ("Flatten(0, 1)", [(2, 3, 4)], True),
    ("Unflatten(1, (2, 2))", [(2, 4)], True),
    ("PairwiseDistance()", [(2, 3), ("P", (2, 3))], True),
    ("CosineSimilarity()", [(2, 3), ("P", (2, 3))], True),
    *[
        (f"{name[:-1]}{', ' if name[-2] != '(' else ''}reduction={reduction!r})", inputs, True)
        for name, inputs in (
            ("L1Loss()", [(2, 3), ("P", (2, 3))]),
            ("MSELoss()", [(2, 3), ("P", (2, 3))]),
            ("SmoothL1Loss(beta=0.5)", [(2, 3), ("P", (2, 3))]),
            ("HuberLoss(delta=0.5)", [(2, 3), ("P", (2, 3))]),
            ("SoftMarginLoss()", [(2, 3), ("S", (2, 3))]),
            ("PoissonNLLLoss()", [(2, 3), ("P", (2, 3))]),
            ("BCELoss()", [("P", (2, 3)), ("P", (2, 3))]),
            ("BCEWithLogitsLoss()", [(2, 3), ("P", (2, 3))]),
            ("KLDivLoss()", [(2, 3), ("P", (2, 3))]),
            ("NLLLoss()", [(2, 3), ("I", (2,), 3)]),
            ("CrossEntropyLoss()", [(3, 4), ("I", (3,), 4)]),
            ("CrossEntropyLoss(label_smoothing=0.1, ignore_index=2)", [(3, 4), ("I", (3,), 4)]),
            ("CrossEntropyLoss()", [(2, 3), ("P", (2, 3))]),
            ("CrossEntropyLoss()", [(2, 3, 2, 2), ("I", (2, 2, 2), 3)]),
            ("GaussianNLLLoss(full=True)", [(2, 3), ("P", (2, 3)), ("P", (2, 3))]),
            ("HingeEmbeddingLoss()", [(2, 3), ("S", (2, 3))]),
            ("MultiLabelSoftMarginLoss()", [(2, 3), ("P", (2, 3))]),
            ("CosineEmbeddingLoss(margin=0.1)", [(2, 3), ("P", (2, 3)), ("S", (2,))]),
            ("MarginRankingLoss(margin=0.1)", [(2, 3), ("P", (2, 3)), ("S", (2, 3))]),
            ("MultiMarginLoss(p=2)", [(2, 3), ("I", (2,), 3)]),
            ("MultiLabelMarginLoss()", [(2, 3), ("V", [[0, 2, -1], [1, -1, 0]])]),
            ("TripletMarginLoss(swap=True)", [(2, 3), ("P", (2, 3)), (2, 3)]),
        )
        for reduction in ("mean", "sum", "none")
    ],
    ("KLDivLoss(reduction='batchmean', log_target=True)", [(2, 3), ("P", (2, 3))], True),
    ("CrossEntropyLoss()", [(4,), ("V", 2)], True),
    *[
        (f"MultiheadAttention(4, 2{options})", [(3, 2, 4), "same", "same"], True)
        for options in ("", ", bias=False", ", add_bias_kv=True", ", add_zero_attn=True", ", batch_first=True")
    ],
    ("MultiheadAttention(4, 2)", [(3, 2, 4), ("P", (5, 2, 4)), "same"], True),
    ("MultiheadAttention(4, 2, kdim=3, vdim=2)", [(3, 2, 4), (5, 2, 3), (5, 2, 2)], True),
    ("MultiheadAttention(4, 2)", [(3, 4), ("P", (5, 4)), "same"], True),
    ("MultiheadAttention(4, 2)", [(3, 2, 4), "same", "same", ("V", [[False, False, True], [False, True, True]])], True),
    ("MultiheadAttention(4, 2)", [(3, 2, 4), "same", "same", None, False], True),
    *[
        (f"TransformerEncoderLayer(4, 2, 6, dropout=0.0{options})", [(3, 2, 4)], True)
        for options in ("", ", norm_first=True", ", activation='gelu'", ", batch_first=True", ", bias=False")
    ],
    ("TransformerDecoderLayer(4, 2, 6, dropout=0.0)", [(3, 2, 4), ("P", (5, 2, 4))], True),
    ("TransformerEncoder(TransformerEncoderLayer(4, 2, 6), 2, norm=LayerNorm(4))", [(3, 2, 4)], False),
    ("Transformer(4, 2, 1, 1, 6)", [(3, 2, 4), ("P", (5, 2, 4))], False),
    *[
        (f"{name}(3, 2{options})", [(4, 2, 3)], True)
        for name in ("RNN", "LSTM", "GRU")
        for options in ("", ", num_layers=2, bidirectional=True", ", bias=False, batch_first=True")
    ],
    ("RNN(3, 2, nonlinearity='relu')", [(4, 3)], True),
    ("LSTM(3, 4, proj_size=2)", [(4, 2, 3)], True),
    ("GRU(3, 2)", [(4, 2, 3), ("P", (1, 2, 2))], True),
    ("RNNCell(3, 2)", [(2, 3)], True),
    ("LSTMCell(3, 2)", [(2, 3)], True),
    ("GRUCell(3, 2)", [(2, 3), ("P", (2, 2))], True),
]

# Constructors whose initial values, drawn after manual_seed(0), are recorded.
INITIAL = [
    "Linear(2, 2)", "Linear(5, 3, bias=False)", "Linear(40, 3)", "Bilinear(3, 2, 4)", "Conv1d(2, 3, 3)", "Conv2d(1, 8, 3)",
    "Conv2d(4, 6, 3, groups=2, bias=False)", "Conv3d(2, 2, 2)", "ConvTranspose2d(2, 3, 3)", "Embedding(5, 3)",
    "Embedding(7, 4, padding_idx=2)", "BatchNorm2d(3)", "LayerNorm(4)", "PReLU()", "MultiheadAttention(4, 2)",
    "MultiheadAttention(4, 2, add_bias_kv=True)", "MultiheadAttention(4, 2, kdim=3, vdim=2, bias=False)",
    "TransformerEncoderLayer(8, 2, 16)", "TransformerDecoderLayer(4, 2, 6)", "Transformer(4, 2, 1, 1, 6)",
    "LSTM(3, 2, num_layers=2, bidirectional=True)",
    "GRUCell(3, 2)",
    "Sequential(Linear(4, 5), ReLU(), Linear(5, 2))",
]  # fmt: skip


def values(count, kind):
    """`count` numbers that every implementation can make exactly the same way."""
    wave = [math.cos(0.7 * i + 0.3) for i in range(count)]
    if kind == "P":
        return [0.5 + 0.45 * math.sin(1.3 * i + 0.2) for i in range(count)]
    if kind == "S":
        return [1.0 if w > 0 else -1.0 for w in wave]
    return wave


def tensor(lib, spec):
    """The tensor of an input specification, made with the package `lib`."""
    if spec is None or isinstance(spec, bool):
        return spec
    if spec[0] == "V":
        return lib.tensor(spec[1])
    if spec[0] == "I":
        shape, classes = spec[1], spec[2]
        return lib.tensor([(3 * i + 1) % classes for i in range(math.prod(shape))]).reshape(shape)
    kind, shape = (spec[0], spec[1]) if isinstance(spec[0], str) else ("", spec)
    return lib.tensor(values(math.prod(shape), kind), dtype=lib.float64).reshape(shape)


def fill(lib, module):
    """Give every parameter values that do not depend on a random stream; makes the module double."""
    module.double()
    with lib.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(
                lib.tensor([0.4 * math.sin(0.9 * j + i) for j in range(p.numel())], dtype=lib.float64).reshape(p.shape)
            )
    return module


def flat(value):
    """The tensors in nested tuples and lists, in order."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return [] if value is None else [value]


def digest(t):
    """First value, and two sums that change when any element does."""
    t = t.detach().double().reshape(-1).tolist()
    return [t[0] if t else 0.0, math.fsum(v * math.cos(i + 1.0) for i, v in enumerate(t)), math.fsum(abs(v) for v in t)]


def run(lib, nn, case):
    """{"repr", "keys", "out", "grad", "state"} of one case."""
    expression, inputs, training = case
    scope = {name: getattr(nn, name) for name in dir(nn) if not name.startswith("_")}
    module = fill(lib, eval(expression, scope)).train(training)
    args, wanted = [], []
    for i, spec in enumerate(inputs):
        if spec == "same":
            args.append(args[-1])
            continue
        t = tensor(lib, spec)
        if isinstance(t, lib.Tensor) and t.is_floating_point() and (i == 0 or "Loss" not in expression):
            wanted.append(t.requires_grad_())
        args.append(t)
    outputs = flat(module(*args))
    loss = sum(
        (o * lib.arange(1, o.numel() + 1, dtype=lib.float64).cos().reshape(o.shape)).sum()
        for o in outputs
        if o.is_floating_point()
    )
    wanted += [p for p in module.parameters() if p.requires_grad]
    grads = lib.autograd.grad(loss, wanted, allow_unused=True)
    return {
        "repr": repr(module),
        "out": [[list(o.shape), *digest(o)] for o in outputs],
        "grad": [None if g is None else digest(g) for g in grads],
        "state": [[k, list(v.shape), *digest(v)] for k, v in module.state_dict().items()],
    }
