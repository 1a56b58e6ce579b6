"""`optim_db`: optimisers with settings, and `optims`, which makes a test for each. Names of the fields are PyTorch's."""

from dataclasses import dataclass, field

import cresset
from cresset.testing._internal.common_utils import _TestParametrizer

__all__ = ["OptimizerInfo", "OptimizerInput", "optim_db", "optims"]


@dataclass
class OptimizerInput:
    """Parameters (None: the test's own) and settings of one optimiser."""

    params: object = None
    kwargs: dict = field(default_factory=dict)
    desc: str = ""


@dataclass
class OptimizerInfo:
    """One optimiser with the settings that tests run it with."""

    optim_cls: type
    settings: list
    step_requires_closure: bool = False
    supported_impls: tuple = ("foreach",)
    decorators: tuple = ()
    matrices_only: bool = False

    @property
    def name(self):
        return self.optim_cls.__name__

    formatted_name = name

    def get_decorators(self, test_class, test_name, device, dtype, param_kwargs):
        return list(self.decorators)

    def optim_inputs_func(self, device="cpu", dtype=None, **kwargs):
        return [OptimizerInput(None, dict(s), ", ".join(f"{k}={v}" for k, v in s.items()) or "default") for s in self.settings]


def _db():
    optim = cresset.optim
    decay = {"weight_decay": 0.1}
    return [
        OptimizerInfo(optim.Adadelta, [{}, decay]), OptimizerInfo(optim.Adafactor, [{}, decay]), OptimizerInfo(optim.Adagrad, [{}, decay]),
        OptimizerInfo(optim.Adam, [{}, decay, {"amsgrad": True}], supported_impls=("foreach", "fused")),
        OptimizerInfo(optim.Adamax, [{}, decay]),
        OptimizerInfo(optim.AdamW, [{}, {"amsgrad": True}], supported_impls=("foreach", "fused")), OptimizerInfo(optim.ASGD, [{}, decay]),
        OptimizerInfo(optim.LBFGS, [{}], step_requires_closure=True, supported_impls=()), OptimizerInfo(optim.Muon, [{}], supported_impls=(), matrices_only=True),
        OptimizerInfo(optim.NAdam, [{}, decay]), OptimizerInfo(optim.RAdam, [{}, decay]), OptimizerInfo(optim.RMSprop, [{}, {"momentum": 0.9}, {"centered": True}]),
        OptimizerInfo(optim.Rprop, [{}]),
        OptimizerInfo(optim.SGD, [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9, "nesterov": True}], supported_impls=("foreach", "fused")),
    ]  # fmt: skip


optim_db = _db()


class optims(_TestParametrizer):
    """A test for each optimiser and dtype: arguments optim_info and dtype."""

    def __init__(self, optim_info_iterable, dtypes=None):
        self.infos, self.dtypes = list(optim_info_iterable), dtypes or [cresset.float32]

    def _parametrize_test(self, test, generic_cls, device_cls):
        if device_cls is None:
            raise RuntimeError("The @optims decorator is only intended to be used in a device-specific context; use it with "
                               "instantiate_device_type_tests() instead of instantiate_parametrized_tests()")
        for info in self.infos:
            for dtype in self.dtypes:
                def decorators(_, info=info, dtype=dtype):
                    return info.get_decorators(generic_cls.__name__, test.__name__, device_cls.device_type, dtype, {})

                yield test, info.formatted_name, {"optim_info": info, "dtype": dtype}, decorators
