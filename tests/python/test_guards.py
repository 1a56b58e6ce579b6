"""Names of the extension module and of the compiler's parts that packages ask."""

import pytest

import cresset
from cresset._guards import TracingContext, active_fake_mode, detect_fake_mode, tracing
from cresset._subclasses.fake_tensor import FakeTensorMode


def test_fake_modes_are_found():
    assert active_fake_mode() is None and detect_fake_mode([cresset.ones(1)]) is None and TracingContext.try_get() is None
    with FakeTensorMode() as mode:
        x = cresset.ones(1)
        assert active_fake_mode() is mode and detect_fake_mode() is mode
    assert detect_fake_mode({"a": [x]}) is mode
    with FakeTensorMode(), pytest.raises(AssertionError, match="doesn't match"):
        detect_fake_mode(x)


def test_context_of_a_trace():
    context = TracingContext(FakeTensorMode())
    with tracing(context) as entered:
        assert entered is context is TracingContext.try_get() is TracingContext.get() and detect_fake_mode() is context.fake_mode
        with tracing(None):
            assert TracingContext.try_get() is None
    with pytest.raises(RuntimeError, match="must be called within an ongoing trace"):
        TracingContext.get()


def test_questions_of_packages():
    x = cresset.ones(3)
    assert cresset._C._is_alias_of(x, x[1:]) and not cresset._C._is_alias_of(x, x.clone())
    assert isinstance(x.untyped_storage(), cresset.StorageBase)
    assert not cresset._C._is_torch_function_mode_enabled()

    class Mode(cresset.overrides.TorchFunctionMode):
        pass

    with Mode():
        assert cresset._C._is_torch_function_mode_enabled()
        with cresset._C.DisableTorchFunction():
            assert not cresset._C._is_torch_function_mode_enabled()
    if cresset.accelerator.current_accelerator() is None:
        assert cresset._C._get_accelerator() == cresset.device("cpu")
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            cresset._C._get_accelerator(True)
