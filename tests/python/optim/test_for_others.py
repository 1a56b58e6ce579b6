"""What optimisers of others import from optim.optimizer; expected values are PyTorch 2.13's."""

import pytest

import cresset
from cresset.nn import Parameter
from cresset.optim import Optimizer
from cresset.optim import optimizer as module


def test_the_choice_of_an_implementation():
    choose, x = module._default_to_fused_or_foreach, cresset.ones(2)
    assert choose([x], False, True) == choose([Parameter(x), None], False, True) == choose([], False, True) == (True, False)
    whole, meta = cresset.ones(2, dtype=cresset.int64), cresset.ones(2, device="meta")
    for params, differentiable, fused in (([x], False, False), ([x], True, True), ([x, whole], False, True), ([meta], False, True)):
        assert choose(params, differentiable, fused) == (False, False)
    assert module._get_capturable_supported_devices() == ["cuda", "xpu", "hpu", cresset._C._get_privateuse1_backend_name(), "xla"]
    assert module._get_capturable_supported_devices(False)[-1] != "xla"


def test_types_of_annotations():
    from typing import Any

    assert module.StateDict == module.Kwargs == dict[str, Any] and module.Args == tuple[Any, ...]
    (*of, args, kwargs), result = module.GlobalOptimizerPostHook.__args__[:-1], module.GlobalOptimizerPostHook.__args__[-1]
    assert (of, args, kwargs, result) == (["Optimizer"], module.Args, module.Kwargs, None)
    assert module.GlobalOptimizerPreHook.__args__[-1] == tuple[module.Args, module.Kwargs] | None


def test_groups():
    a, b, c = cresset.ones(1), cresset.ones(1).double(), cresset.ones(1)
    cpu = cresset.device("cpu")
    groups = Optimizer._group_tensors_by_device_and_dtype([[a, b, c], [None] * 3, []], with_indices=True)
    assert groups == {(cpu, cresset.float32): ([[a, c], [None, None], []], [0, 2]), (cpu, cresset.float64): ([[b], [None], []], [1])}
    assert Optimizer._group_tensors_by_device_and_dtype([[a], [c]]) == {(cpu, cresset.float32): ([[a], [c]], [])}
    with pytest.raises(RuntimeError, match="supposed to be defined but the 0-th Tensor is not"):
        Optimizer._group_tensors_by_device_and_dtype([[None, a]])
    with pytest.raises(RuntimeError, match=r"lists of 1 tensors, or empty ones, were required; \[2\] were given"):
        Optimizer._group_tensors_by_device_and_dtype([[a], [a, c]])


def test_a_step_with_gradients_or_without():
    class Own(Optimizer):
        @module._use_grad_for_differentiable
        def step(self):
            return cresset.is_grad_enabled()

    p = [Parameter(cresset.ones(1))]
    assert Own(p, {"differentiable": False}).step() is False
    with cresset.no_grad():
        assert Own(p, {"differentiable": True}).step() is True


def test_numbers_and_pairs():
    assert module._get_value(cresset.tensor(3.0)) == 3.0 and module._stack_if_compiling([1]) == [1]
    assert module._get_scalar_dtype() == module._get_scalar_dtype(True) == cresset.float32
    p, q = [cresset.ones(2, dtype=cresset.complex64)], [cresset.ones(2, dtype=cresset.complex64)]
    module._view_as_real(p, q)
    assert p[0].tolist() == q[0].tolist() == [[1, 0], [1, 0]]


def test_which_parameters_have_fused_steps():
    check = module._device_dtype_check_for_fused
    assert check(cresset.ones(1)) is None and check(cresset.ones(1), cuda_unsupported=True) is None
    private = cresset._C._get_privateuse1_backend_name()
    with pytest.raises(RuntimeError, match=rf"\['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', '{private}'\] but \S+int32 and cpu"):
        check(cresset.ones(1, dtype=cresset.int32))
    with pytest.raises(RuntimeError, match=r"\['mps', 'xpu', .* but \S+float32 and meta"):
        check(cresset.ones(1, device="meta"), True)


def test_texts_for_docstrings_begin_with_the_argument():
    for name in ("params", "foreach", "fused", "maximize", "capturable", "differentiable"):
        assert getattr(module, f"_{name}_doc").startswith(f"{name} (")


def test_hooks_of_optimizers_that_do_not_call_init():
    class Around(Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self._patch_step_function()

    Around.step = lambda self: self.inner.step()  # given later than the class
    p, seen = Parameter(cresset.ones(1)), []
    around = Around(cresset.optim.SGD([p], lr=0.5))
    around.register_step_post_hook(lambda optimizer, args, kwargs: seen.append(optimizer))
    p.grad = cresset.ones(1)
    around.step()
    assert seen == [around] and p.item() == 0.5
