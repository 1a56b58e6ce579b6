"""Ranges with arguments that begin and end by calls; what profiles show of them is what PyTorch 2.13 shows."""

import pytest

import cresset
from cresset.autograd import _record_function_with_args_enter, _record_function_with_args_exit
from cresset.autograd.profiler import profile


def test_ranges_have_shapes_and_values():
    u = cresset.randn(3, 4, 5)
    with profile(record_shapes=True) as p:
        handle = _record_function_with_args_enter("outer", 1, False, 2.5, [u, u], "hello", u)
        u + 1
        _record_function_with_args_exit(handle)
        _record_function_with_args_exit(_record_function_with_args_enter("nothing"))
        _record_function_with_args_exit(_record_function_with_args_enter("others", (u, u), None, {"a": 1}))
    events = {e.name: e for e in p.function_events}
    assert events["outer"].input_shapes == [[], [], [], [], [], [3, 4, 5]]
    assert events["outer"].concrete_inputs == [1, False, 2.5, None, None, None]
    assert [c.name for c in events["outer"].cpu_children] == ["aten::add"]
    assert events["nothing"].input_shapes == events["nothing"].concrete_inputs == []
    assert events["others"].input_shapes == [[], [], []] and events["others"].concrete_inputs == [None, None, None]


def test_without_a_profile_and_twice():
    handle = _record_function_with_args_enter("name", 1)
    _record_function_with_args_exit(handle)
    _record_function_with_args_exit(handle)
    with pytest.raises(TypeError, match="name must be a str, not int"):
        _record_function_with_args_enter(1)
    with pytest.raises(RuntimeError, match="what _record_function_with_args_enter gave was required; a int was given"):
        _record_function_with_args_exit(3)


def test_names_of_settings():
    assert cresset.profiler.ProfilerAction(4).name == "DEVICE_STOPPED"
    with cresset.profiler.profile(experimental_config=cresset.profiler._ExperimentalConfig()) as profile:
        cresset.ones(1)
    assert profile.events()
