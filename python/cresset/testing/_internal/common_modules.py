"""`module_db`: layers with arguments and inputs, and `modules`, which makes a test for each. Names of the fields are PyTorch's."""

import enum
from dataclasses import dataclass, field

import cresset
from cresset import nn
from cresset.testing import make_tensor
from cresset.testing._internal.common_utils import _TestParametrizer

__all__ = ["FunctionInput", "ModuleInfo", "ModuleInput", "TrainEvalMode", "module_db", "modules"]


class FunctionInput:
    """Arguments of a call."""

    __slots__ = ("args", "kwargs")

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs


@dataclass
class ModuleInput:
    """Arguments of a layer's constructor and of its call; desc tells several inputs of one layer apart."""

    constructor_input: FunctionInput
    forward_input: FunctionInput = None
    desc: str = ""
    reference_fn: object = None


class TrainEvalMode(enum.Enum):
    train_only = 0
    eval_only = 1
    train_and_eval = 2
    no_train_eval = 3


@dataclass
class ModuleInfo:
    """One layer. `cases` are (constructor arguments, input shapes); a shape ("int", n, …) means whole numbers below n."""

    module_cls: type
    cases: list
    dtypes: tuple = (cresset.float32, cresset.float64)
    train_and_eval_differ: bool = False
    supports_gradgrad: bool = True
    decorators: tuple = ()
    gradcheck_nondet_tol: float = 0.0
    kwargs: dict = field(default_factory=dict)

    @property
    def name(self):
        return f"nn.{self.module_cls.__name__}"

    @property
    def formatted_name(self):
        return self.name.replace(".", "_")

    def get_decorators(self, test_class, test_name, device, dtype, param_kwargs):
        return list(self.decorators)

    def module_inputs_func(self, module_info, device, dtype, requires_grad, training, **kwargs):
        """A ModuleInput for each case, with inputs on the device."""

        def tensor(shape):
            if shape and shape[0] == "int":
                return make_tensor(shape[2:], dtype=cresset.int64, device=device, low=0, high=shape[1])
            return make_tensor(shape, dtype=dtype, device=device, requires_grad=requires_grad, low=-2, high=2)

        return [ModuleInput(FunctionInput(*args, **self.kwargs), FunctionInput(*map(tensor, shapes)), desc=str(args)) for args, shapes in self.cases]


def _elementwise(*names):
    return [ModuleInfo(getattr(nn, name), [((), [(3, 4)])]) for name in names]


def _db():
    x2, x3, x4, x5 = (2, 6), (2, 4, 8), (2, 4, 8, 8), (1, 2, 5, 5, 5)
    info = ModuleInfo
    return [
        *_elementwise("CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LeakyReLU", "LogSigmoid", "Mish", "PReLU",
                      "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink"),
        info(nn.GLU, [((), [x2])]), info(nn.Softmax, [((1,), [x2])]), info(nn.Softmin, [((1,), [x2])]), info(nn.LogSoftmax, [((1,), [x2])]),
        info(nn.Threshold, [((0.1, 2.0), [x2])]), info(nn.Flatten, [((), [x3])]),
        info(nn.Linear, [((6, 3), [x2]), ((8, 3), [x3])]), info(nn.Bilinear, [((6, 5, 3), [x2, (2, 5)])]),
        info(nn.Embedding, [((10, 3), [("int", 10, 2, 4)])]), info(nn.EmbeddingBag, [((10, 3), [("int", 10, 2, 4)])]),
        info(nn.Conv1d, [((4, 3, 3), [x3])]), info(nn.Conv2d, [((4, 6, 3), [x4]), ((4, 4, 3, 2, 1, 1, 2), [x4])]), info(nn.Conv3d, [((2, 3, 2), [x5])]),
        info(nn.ConvTranspose1d, [((4, 3, 3), [x3])]), info(nn.ConvTranspose2d, [((4, 3, 3, 2), [x4])]),
        info(nn.BatchNorm1d, [((4,), [x3])], train_and_eval_differ=True), info(nn.BatchNorm2d, [((4,), [x4])], train_and_eval_differ=True),
        info(nn.GroupNorm, [((2, 4), [x4])]), info(nn.LayerNorm, [((8,), [x3])]), info(nn.InstanceNorm2d, [((4,), [x4])]),
        info(nn.LocalResponseNorm, [((2,), [x4])]), info(nn.RMSNorm, [((8,), [x3])]),
        info(nn.AvgPool1d, [((2,), [x3])]), info(nn.AvgPool2d, [((2,), [x4])]), info(nn.MaxPool1d, [((2,), [x3])]), info(nn.MaxPool2d, [((2,), [x4])]),
        info(nn.AdaptiveAvgPool2d, [((3,), [x4])]), info(nn.AdaptiveMaxPool2d, [((3,), [x4])]), info(nn.LPPool2d, [((2, 2), [x4])]),
        info(nn.ZeroPad2d, [((1,), [x4])]), info(nn.ReflectionPad2d, [((1,), [x4])]), info(nn.ReplicationPad2d, [((1,), [x4])]),
        info(nn.PixelShuffle, [((2,), [x4])]), info(nn.Upsample, [((None, 2), [x4])]),
        info(nn.RNN, [((8, 5), [x3])]), info(nn.LSTM, [((8, 5, 2), [x3])]), info(nn.GRU, [((8, 5), [x3])]), info(nn.LSTMCell, [((6, 5), [x2])]),
        info(nn.MultiheadAttention, [((8, 2), [x3, x3, x3])]), info(nn.TransformerEncoderLayer, [((8, 2, 16, 0.0), [x3])], train_and_eval_differ=True),
        info(nn.MSELoss, [((), [x2, x2])]), info(nn.L1Loss, [((), [x2, x2])]), info(nn.SmoothL1Loss, [((), [x2, x2])]), info(nn.HuberLoss, [((), [x2, x2])]),
        info(nn.CrossEntropyLoss, [((), [x2, ("int", 6, 2)])]), info(nn.BCEWithLogitsLoss, [((), [x2, x2])]), info(nn.KLDivLoss, [((), [x2, x2])]),
        info(nn.CosineSimilarity, [((), [x2, x2])]), info(nn.PairwiseDistance, [((), [x2, x2])]),
    ]  # fmt: skip


module_db = _db()


class modules(_TestParametrizer):
    """A test for each layer, dtype and mode: arguments module_info, dtype and training. Layers whose training differs get a test for each."""

    def __init__(self, module_info_iterable, allowed_dtypes=None, train_eval_mode=TrainEvalMode.train_and_eval, skip_if_dynamo=True):
        self.infos, self.mode = list(module_info_iterable), train_eval_mode
        self.allowed_dtypes = None if allowed_dtypes is None else set(allowed_dtypes)

    def _modes(self, info):
        if self.mode is TrainEvalMode.train_and_eval and info.train_and_eval_differ:
            return [("train_mode", True), ("eval_mode", False)]
        return [("", self.mode is not TrainEvalMode.eval_only)]

    def _parametrize_test(self, test, generic_cls, device_cls):
        if device_cls is None:
            raise RuntimeError("The @modules decorator is only intended to be used in a device-specific context; use it with "
                               "instantiate_device_type_tests() instead of instantiate_parametrized_tests()")
        for info in self.infos:
            for mode, training in self._modes(info):
                for dtype in info.dtypes:
                    if self.allowed_dtypes is not None and dtype not in self.allowed_dtypes:
                        continue
                    name = f"{info.formatted_name}_{mode}" if mode else info.formatted_name

                    def decorators(_, info=info, dtype=dtype):
                        return info.get_decorators(generic_cls.__name__, test.__name__, device_cls.device_type, dtype, {})

                    yield test, name, {"module_info": info, "dtype": dtype, "training": training}, decorators
