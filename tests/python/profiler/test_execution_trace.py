"""Files of execution traces. Types, shapes, values and schemas are those that PyTorch's observer writes."""

import json
import threading
import warnings

import pytest

import cresset
from cresset.autograd import _record_function_with_args_enter, _record_function_with_args_exit
from cresset.profiler import ExecutionTraceObserver, profile, record_function, schedule


def nodes(path):
    with open(path) as file:
        return json.load(file)["nodes"]


def by_name(path):
    return {node["name"]: node for node in nodes(path)}


def attributes(node):
    return {a["name"]: a["value"] for a in node["attrs"]}


@pytest.fixture
def observer(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.et.json"))
    yield observer
    observer.cleanup()


def test_values_of_all_kinds(observer):
    u = cresset.ones(3, 4)
    observer.start()
    given = (1, False, 2.5, [u, u], (u, 1), "hello", u[1:], float("inf"), None, [1, 2], 'a"b')
    handle = _record_function_with_args_enter("all", *given)
    cresset.split(cresset.cat([u, u]), 3)
    _record_function_with_args_exit(handle)
    with record_function("texts", "1, 2"):
        pass
    observer.unregister_callback()
    seen = by_name(observer.get_output_file_path())
    inputs = seen["all"]["inputs"]
    number, storage = inputs["values"][6][:2]
    of_u = inputs["values"][3][0]
    assert number != of_u[0] and storage == of_u[1]  # a view
    assert inputs["values"] == [1, False, 2.5, [of_u, of_u], [of_u, 1], "hello", [number, storage, 4, 8, 4, "cpu"], "inf", "<None>", [1, 2], 'a"b']
    assert of_u[2:] == [0, 12, 4, "cpu"]
    assert inputs["shapes"] == [[], [], [], [[3, 4], [3, 4]], [[3, 4], []], [], [2, 4], [], [], [[], []], []]
    assert inputs["strides"][6] == [4, 1]
    assert inputs["types"] == [
        "Int", "Bool", "Double", "GenericList[Tensor(float),Tensor(float)]", "Tuple[Tensor(float),Int]", "String", "Tensor(float)", "Double", "None",
        "GenericList[Int,Int]", "String",
    ]  # fmt: skip
    assert seen["texts"]["inputs"] == {"values": ["1, 2"], "shapes": [[]], "types": ["String"], "strides": [[]]}
    cat, split = seen["aten::cat"], seen["aten::split"]
    assert cat["ctrl_deps"] == split["ctrl_deps"] == seen["all"]["id"] and cat["inputs"]["shapes"] == [[[3, 4], [3, 4]], []]
    assert cat["outputs"]["values"] == split["inputs"]["values"][:1] and split["outputs"]["shapes"] == [[[3, 4], [3, 4]]]
    assert attributes(cat)["op_schema"].startswith("aten::cat(Tensor[] tensors, int dim=0) -> Tensor")
    process = seen["[pytorch|profiler|execution_trace|process]"]
    assert process["id"] == process["ctrl_deps"] == seen["[pytorch|profiler|execution_trace|thread]"]["ctrl_deps"] == 1


def test_backward_steps(observer):
    x = cresset.ones(2, requires_grad=True)
    observer.start()
    x.sin().sum().backward()
    observer.unregister_callback()
    seen = by_name(observer.get_output_file_path())
    about = attributes(seen["SinBackward0"])
    assert about["scope"] == 1 and about["tid"] == about["fw_tid"] == 1 and about["seq_id"] == attributes(seen["aten::sin"])["seq_id"]
    assert seen["SinBackward0"]["inputs"]["shapes"] == [[2]] and about["op_schema"] == ""


def test_starts_and_stops(observer):
    assert observer.is_registered and not observer.is_running()
    for i in range(1, 6):
        if i in (2, 4):
            observer.start()
            observer.start()
        else:
            observer.stop()
        assert observer.is_running() == (i in (2, 4))
        cresset.ones(i)
    observer.start()
    cresset.ones(6)
    observer.cleanup()
    assert not observer.is_registered and not observer.is_running()
    observer.unregister_callback()
    observer.start()
    assert not observer.is_running()
    assert [n["inputs"]["values"][0] for n in nodes(observer.get_output_file_path()) if n["name"] == "aten::ones"] == [[2], [4], [6]]


def test_beside_profiles(observer, tmp_path):
    # The observer begins before, in or with a session and ends behind, in or with it: both see their own part.
    observer.start()
    cresset.zeros(1)
    with profile(record_shapes=True, profile_memory=True) as prof:
        cresset.zeros(2)
        observer.stop()
        cresset.zeros(3)
        observer.start()
        with record_function("inside"):
            cresset.zeros(4)
    cresset.zeros(5)
    observer.unregister_callback()
    zeros = [n for n in nodes(observer.get_output_file_path()) if n["name"] == "aten::zeros"]
    assert [n["inputs"]["values"][0] for n in zeros] == [[1], [2], [4], [5]]
    seen = [e for e in prof.events() if e.name == "aten::zeros"]
    assert [e.concrete_inputs[0] for e in seen] == [[2], [3], [4]] and all(e.cpu_memory_usage for e in seen)
    assert seen[-1].cpu_parent.name == "inside" and zeros[2]["ctrl_deps"] == by_name(observer.get_output_file_path())["inside"]["id"]
    assert not cresset._C._profiler_recording()


def test_numbers_are_those_of_the_trace(observer, tmp_path):
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1), execution_trace_observer=observer) as prof:
        for i in range(6):
            with record_function(f"loop {i}"):
                cresset.ones(2, requires_grad=True).sin().sum().backward()
            prof.step()
    assert prof.execution_trace_observer is observer and not observer.is_registered
    seen = nodes(observer.get_output_file_path())
    assert [n["name"] for n in seen if n["name"].startswith("loop")] == ["loop 2", "loop 3"]
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    with open(tmp_path / "t.json") as file:
        events = json.load(file)["traceEvents"]
    numbers = sorted(e["args"]["Record function id"] for e in events if e.get("cat") in ("cpu_op", "user_annotation"))
    assert numbers == sorted(attributes(n)["rf_id"] for n in seen if not n["name"].startswith("[pytorch"))


def test_registering(tmp_path, monkeypatch):
    first, second = ExecutionTraceObserver(), ExecutionTraceObserver()
    assert first.get_output_file_path() is None and not first.is_registered
    with pytest.warns(UserWarning, match="Failed to open output file"):
        first.register_callback(str(tmp_path / "none" / "a.json"))
    assert not first.is_registered
    first.register_callback(str(tmp_path / "a.json")).register_callback(str(tmp_path / "b.json"))
    assert first.get_output_file_path() == str(tmp_path / "a.json")
    with pytest.warns(UserWarning, match="already registered"):
        second.register_callback(str(tmp_path / "c.json"))
    assert not second.is_registered and first.get_resources_dir(True) is None
    first.set_extra_resource_collection(True)
    assert first.get_resources_dir() == str(tmp_path / "a_resources")
    del first
    assert [n["name"] for n in nodes(tmp_path / "a.json")] == ["[pytorch|profiler|execution_trace|process]"]
    assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with profile() as prof:
        cresset.ones(2)
    assert "aten::ones" in by_name(prof.execution_trace_observer.get_output_file_path())


def test_one_thread(observer):
    failed = []

    def work():
        try:
            observer.start()
        except RuntimeError as error:
            failed.append(str(error))

    with profile():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "Observer is already enabled on another thread" in failed[0] and not observer.is_running()


def test_values_that_have_no_plain_form(observer):
    values = cresset.rand(4, 2)
    observer.start()
    cresset.rand(2, generator=cresset.Generator())
    cresset.eye(2).to_sparse().neg()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = cresset.nested.nested_tensor_from_jagged(values, cresset.tensor([0, 1, 4]))
    nested.sin()
    observer.unregister_callback()
    seen = by_name(observer.get_output_file_path())
    assert "<Generator>" in seen["aten::rand"]["inputs"]["values"]
    (sparse,) = next(n for n in nodes(observer.get_output_file_path()) if n["name"] == "aten::neg")["outputs"]["values"]
    assert sparse[1:] == [0, 0, 0, 0, ""] and "aten::sin" in seen
