"""The tree of a profile: calls of Python functions around operators, in all threads; what traces and PyTorch's private names show of it."""

import json
import threading
from types import SimpleNamespace

import pytest

import cresset
from cresset.autograd import _profiler_state
from cresset.autograd import profiler as session
from cresset.profiler import DeviceType, _utils, profile, schedule

parts = cresset._C._profiler


def tree(prof):
    return prof.profiler.kineto_results.experimental_event_tree()


def names(prof):
    return [node.name for node in _utils.traverse_dfs(tree(prof))]


def trace(prof, tmp_path):
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    return json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_operators_nest_without_stacks():
    x = cresset.ones(4, 4)
    with profile(record_shapes=True) as prof:
        x @ x
        x + x
    roots = tree(prof)
    assert [n.name for n in roots] == ["aten::matmul", "aten::add"]
    (child,) = roots[0].children
    assert child.name == "aten::mm" and child.parent is roots[0] and child.tag is parts._EventType.TorchOp
    assert [i.sizes for i in child.extra_fields.inputs] == [[4, 4]] * 2 and child.extra_fields.inputs[0].dtype is cresset.float32
    assert roots[0].start_time_ns <= child.start_time_ns and child.end_time_ns <= roots[0].end_time_ns


def test_python_functions_and_modules_are_around_operators(tmp_path):
    model = cresset.nn.Sequential(cresset.nn.Linear(3, 3), cresset.nn.Linear(3, 3))

    def outer():
        return model(cresset.ones(2, 3))

    with profile(with_stack=True) as prof:
        outer()
    nodes = list(_utils.traverse_dfs(tree(prof)))
    (call,) = [n for n in nodes if n.name.endswith("): outer")]
    assert call.extra_fields.callsite.function_name == "outer" and call.extra_fields.callsite.file_name.endswith("test_profiler_tree.py")
    inside = [n for n in _utils.traverse_dfs(call.children) if "nn.Module" in n.name]
    assert [n.name for n in inside] == ["nn.Module: Sequential_0", "nn.Module: Linear_0", "nn.Module: Linear_1"]
    assert inside[1].extra_fields.module.self_ptr == id(model[0]) and inside[1].extra_fields.module.cls_name == "Linear"
    assert [n.name for n in _utils.traverse_dfs(inside[2].children) if n.tag is parts._EventType.TorchOp][0] == "aten::linear"
    shown = {e["name"]: e["args"] for e in trace(prof, tmp_path) if e.get("cat") == "python_function"}
    assert shown["nn.Module: Sequential_0"]["Python parent id"] == shown[call.name]["Python id"]


def test_threads_that_exist_are_seen_with_what_they_run_already():
    go, done = threading.Barrier(2, timeout=20), threading.Barrier(2, timeout=20)

    def running_before():
        go.wait()

    def called_later():
        return cresset.ones(1) + 1

    def work():
        running_before()
        called_later()
        done.wait()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    with profile(with_stack=True) as prof:
        go.wait()
        done.wait()
    thread.join(timeout=20)
    seen = [n for n in _utils.traverse_dfs(tree(prof)) if n.tag is parts._EventType.PyCall]
    assert {n.start_tid for n in seen} >= {threading.get_native_id(), thread.native_id}  # and threads of the test runner
    by_name = {n.extra_fields.callsite.function_name: n for n in seen}
    assert by_name["running_before"].start_tid == by_name["called_later"].start_tid == thread.native_id


def test_errors_and_generators_close_their_calls():
    def fails():
        raise ValueError

    def generates():
        yield 1
        yield 2

    with profile(with_stack=True) as prof:
        with pytest.raises(ValueError):
            fails()
        list(generates())
        cresset.ones(1)
    last = [n for n in _utils.traverse_dfs(tree(prof)) if n.name == "aten::ones"][-1]
    around = []
    while last is not None:
        around.append(last.name)
        last = last.parent
    assert not any(n.endswith(("fails", "generates")) for n in around)
    assert sum(n.endswith(": generates") for n in names(prof)) == 3


def test_nothing_is_called_after_the_session():
    def later():
        pass

    with profile(with_stack=True) as prof:
        pass
    later()
    import sys

    assert sys.getprofile() is None and not any(n.endswith("later") for n in names(prof))


def test_operators_have_numbers_of_their_own():
    seen = set()
    for _ in range(3):
        with profile() as prof:
            cresset.ones(2) + 1
        numbers = [e.correlation_id() for e in prof.profiler.kineto_results.events()]
        assert numbers and not seen & set(numbers) and len(set(numbers)) == len(numbers)
        seen |= set(numbers)
    assert {e.device_type() for e in prof.profiler.kineto_results.events()} == {DeviceType.CPU}


def test_fast_ranges_have_inputs_and_keywords(tmp_path):
    x = cresset.rand(4, 4)
    keywords = {"stream": 0, "grid": "g", "quoted": 'a"', "boolean": True, "list": [1]}
    with profile(record_shapes=True) as prof:
        fast = parts._RecordFunctionFast("fast", [x, "text", x[0]], keywords)
        for _ in range(2):
            with fast:
                x + 1
    found = [e for e in prof.events() if e.name == "fast"]
    assert [e.input_shapes for e in found] == [[[4, 4], [], [4]]] * 2 and all(e.kwinputs == keywords for e in found)
    args = next(e["args"] for e in trace(prof, tmp_path) if e["name"] == "fast" and e["cat"] == "cpu_op")
    assert (args["stream"], args["grid"], args["quoted"], args["boolean"]) == (0, "g", "None", True) and "list" not in args
    with profile(record_shapes=True) as prof:
        with parts._RecordFunctionFast("fast", keyword_values={"stream": "text"}):
            pass
    assert "stream" not in next(e["args"] for e in trace(prof, tmp_path) if e["name"] == "fast")
    with pytest.raises(TypeError):
        parts._RecordFunctionFast("x", 3)


def test_switches(tmp_path):
    x = cresset.rand(2, 6, requires_grad=True)

    def run():
        with profile(record_shapes=True) as prof:
            (x.as_strided([4, 3], [1, 4]) * 2).sum().backward()
        return prof

    try:
        parts._set_record_concrete_inputs_enabled_val(False)
        parts._set_fwd_bwd_enabled_val(False)
        prof = run()
        assert next(e for e in prof.events() if e.name == "aten::as_strided").concrete_inputs == [None] * 4
        assert not any(e.get("cat") == "fwdbwd" for e in trace(prof, tmp_path))
    finally:
        parts._set_record_concrete_inputs_enabled_val(True)
        parts._set_fwd_bwd_enabled_val(True)
    prof = run()
    assert next(e for e in prof.events() if e.name == "aten::as_strided").concrete_inputs[1] == [4, 3]
    assert any(e.get("cat") == "fwdbwd" for e in trace(prof, tmp_path))


def test_which_profiler_runs():
    from cresset.autograd.profiler_legacy import profile as legacy

    kind = cresset._C._autograd._profiler_type
    assert kind() is parts.ActiveProfilerType.NONE
    with legacy():
        assert kind() is parts.ActiveProfilerType.LEGACY
    with profile():
        assert kind() is parts.ActiveProfilerType.KINETO
    assert kind() is parts.ActiveProfilerType.NONE


def test_how_long_profiling_took():
    with profile() as prof:
        cresset.ones(1)
    stats = prof._stats()
    assert stats.number_of_events == stats.function_events_build_tree_call_duration_us == 0
    prof.events()
    assert all(v > 0 for v in vars(stats).values())


def test_steps_of_several_parts_of_a_program():
    tracker = session.KinetoStepTracker
    before = tracker.current_step()
    with profile(schedule=schedule(wait=1, warmup=1, active=1)) as prof:
        for _ in range(4):
            tracker.increment_step("another")
            prof.step()
    assert tracker.current_step() == before + 4
    assert tracker.erase_step_count("another") and not tracker.erase_step_count("another")


def test_steps_fit_functions_when_asked(tmp_path):
    def one_step(prof):
        cresset.ones(10) + 1
        prof.step()

    config = parts._ExperimentalConfig(adjust_profiler_step=True)
    with profile(with_stack=True, schedule=schedule(wait=0, warmup=0, active=3, repeat=1), experimental_config=config) as prof:
        for _ in range(3):
            one_step(prof)
    spans = {}
    for e in trace(prof, tmp_path):
        kind = "step" if "ProfilerStep" in e["name"] else "function" if "one_step" in e["name"] else None
        spans.setdefault(kind, []).append((e["ts"], e["ts"] + e.get("dur", 0)))
    assert len(spans["step"]) == len(spans["function"]) == 3
    for a, b in spans["step"]:
        for c, d in spans["function"]:
            assert b <= c or d <= a or (a <= c and d <= b) or (c <= a and b <= d)


def test_texts_of_addresses():
    import ctypes

    address = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value
    for mode in ("fast", "dladdr", "addr2line"):
        (file, line, function), nowhere = parts.symbolize_addresses([address, 1], mode)
        assert "python" in file.lower() and function == "Py_IncRef" and line >= 0 or mode == "addr2line"
        assert nowhere[2] == "??"
    with pytest.raises(ValueError):
        parts.symbolize_addresses([], "other")


# --- time that a device waited


def device_event(name, start, correlation, on_device):
    kind = DeviceType.PrivateUse1 if on_device else DeviceType.CPU
    return SimpleNamespace(
        name=name, start_ns=lambda: start, duration_ns=lambda: 100, linked_correlation_id=lambda: correlation, device_type=lambda: kind
    )


def call(number, start, duration):
    return SimpleNamespace(name=f"call {number}", id=number, start_time_ns=start, duration_time_ns=duration, end_time_ns=start + duration, children=[])


def evaluation(device_events, calls):
    results = SimpleNamespace(events=lambda: device_events, experimental_event_tree=lambda: calls)
    return _utils.BasicEvaluation(SimpleNamespace(kineto_results=results))


def test_queue_and_idle_time():
    launches = [device_event("launch", 400 + 100 * i, i + 1, False) for i in range(3)]
    kernels = [device_event("kernel", 700 + 100 * i, i + 1, True) for i in range(3)]
    calls = [call(i, 200 * i, 200) for i in range(7)]
    found = evaluation(launches + kernels, calls)
    assert [i.queue_depth for i in found.queue_depth_list] == [1, 2, 3, 2, 1, 0]
    assert [found.metrics[k].queue_depth for k in found.event_keys] == [0, 0, 1, 3, 1, 0, 0]
    assert [found.metrics[k].idle_time_ns for k in found.event_keys] == [200, 200, 0, 0, 0, 200, 200]
    assert found.metrics[found.event_keys[0]].fraction_idle_time == 1


def test_calls_that_ask_or_wait_are_no_launches():
    around = [device_event("Occupancy", 90, 1, False), device_event("Synchronize", 250, 1, False)]
    found = evaluation([*around, device_event("LaunchKernel", 100, 1, False), device_event("kernel", 300, 1, True)], [call(1, 0, 500)])
    assert [e.name for e in found.cuda_events] == ["LaunchKernel", "kernel"] and [i.queue_depth for i in found.queue_depth_list] == [1, 0]


def test_without_a_device_nothing_waits():
    with profile() as prof:
        cresset.ones(3) @ cresset.ones(3)
    found = _utils.BasicEvaluation(prof.profiler)
    assert found.compute_queue_depth() == [] and found.get_optimizable_events(2, print_enable=False) == []
    for key, metrics in found.metrics.items():
        assert metrics.self_time_ns == key.event.duration_time_ns - sum(c.duration_time_ns for c in key.event.children)


def test_overlap_counts_once():
    key = _utils.EventKey(call(1, 5, 5))
    spans = [_utils.Interval(*s) for s in ((0, 9), (1, 2), (4, 5), (8, 12))]
    assert key.intervals_overlap(spans) == 5 and key.intervals_overlap([_utils.Interval(6, 7), _utils.Interval(6, 8)]) == 2


def test_steps_of_optimizers_tell_what_they_hold():
    # What PyTorch 2.13 shows of the same program: what an optimizer holds is that behind its first step of the session, at all its steps.
    kept = []
    net = cresset.nn.Linear(2, 1)
    with profile(with_stack=True, profile_memory=True) as prof:
        opt = cresset.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            opt.zero_grad()
            net(cresset.ones(3, 2)).sum().backward()
            kept.append(net.weight.grad)
            opt.step()
    found = [n.extra_fields.optimizer for n in _utils.traverse_dfs(tree(prof)) if n.name.endswith(": _optimizer_step_code")]
    assert [f.self_ptr for f in found] == [id(opt)] * 2
    for info in found:
        assert [(p.sizes, g.sizes, [(name, t.sizes) for name, t in state]) for p, g, state in info.parameters] == [
            ([1, 2], [1, 2], [("momentum_buffer", [1, 2])]),
            ([1], [1], [("momentum_buffer", [1])]),
        ]
        assert [p.storage_data_ptr for p, _, _ in info.parameters] == [p.data_ptr() for p in net.parameters()]
    parameter, gradient, _ = found[1].parameters[0]
    assert gradient.storage_data_ptr == kept[0].data_ptr() != kept[1].data_ptr() and parameter.device == cresset.device("cpu") and parameter.strides == [2, 1]
    assert isinstance(found[0], parts._OptimizerInfo)
    names = [n.name for n in _utils.traverse_dfs(tree(prof))]
    assert not any("_profiler_c.py" in name for name in names)  # what looks at the optimizer is no call of the program
    memory = next(n.extra_fields for n in _utils.traverse_dfs(tree(prof)) if n.name == "[memory]")
    assert memory.total_reserved == 0


def test_totals_of_memory_go_on_over_profiles(monkeypatch):
    """As PyTorch 2.13 counts: memory that was taken while a profile looked. (It leaves out the event of memory that was taken before.)"""
    for name in ("blocks", "totals"):  # profiles of other tests saw memory being taken, and not being given back, that `earlier` may get
        monkeypatch.setattr(_profiler_state, name, {})

    def totals(prof):
        found = sorted((n.start_time_ns, n.extra_fields.alloc_size, n.extra_fields.total_allocated) for n in _utils.traverse_dfs(tree(prof)) if n.name == "[memory]")
        return [f[1:] for f in found]

    earlier = cresset.empty(1000)
    with profile(profile_memory=True) as prof:
        x = cresset.empty(3, 4)
        del earlier
    base = totals(prof)[0][1] - 48
    assert totals(prof) == [(48, base + 48), (-4000, base + 48)]
    with profile(profile_memory=True) as prof:
        y = cresset.empty(10)
        del x
    assert totals(prof) == [(40, base + 88), (-48, base + 40)]
    del y  # seen by nobody
    with profile(profile_memory=True) as prof:
        cresset.empty(20).shape  # noqa: B018
    assert totals(prof) == [(80, base + 120), (-80, base + 40)]


def test_modules_of_a_tree_know_their_parameters():
    model = cresset.nn.Sequential(cresset.nn.Linear(2, 3), cresset.nn.Linear(3, 2, bias=False))
    model[0](cresset.rand(2)).sum().backward()
    with profile(with_stack=True) as prof:
        model(cresset.rand(2))
    modules = [n.extra_fields.module for n in _utils.traverse_dfs(tree(prof)) if getattr(n.extra_fields, "module", None)]
    outer, first, second = sorted(modules, key=lambda m: [id(model), id(model[0]), id(model[1])].index(m.self_ptr))
    assert (outer.cls_name, outer.parameters) == ("Sequential", [])
    found = [(name, p.storage_data_ptr, grad.storage_data_ptr) for name, p, grad in first.parameters]
    assert found == [(name, p.data_ptr(), p.grad.data_ptr()) for name, p in model[0].named_parameters()]
    ((name, weight, gradient),) = second.parameters
    assert (name, weight.sizes, weight.impl_ptr, gradient) == ("weight", [2, 3], model[1].weight._cdata, None)
