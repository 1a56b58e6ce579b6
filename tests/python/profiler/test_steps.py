"""cresset.profiler: schedules, steps, handlers, traces."""

import gzip
import json
import subprocess
import sys

import pytest

import cresset as torch
from cresset import profiler
from cresset.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def actions(n, **options):
    action_of = schedule(**options)
    letters = {"NONE": ".", "WARMUP": "w", "RECORD": "r", "RECORD_AND_SAVE": "S"}
    return "".join(letters[action_of(i).name] for i in range(n))


# Recorded with PyTorch.
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1}, "..wrS.wrS....."),
        ({"wait": 1, "warmup": 1, "active": 1}, ".wS.wS.wS"),
        ({"wait": 1, "warmup": 1, "active": 1, "skip_first": 2, "skip_first_wait": 1}, "..wS.wS"),
    ],
)
def test_schedules(options, expected):
    assert actions(len(expected), **options) == expected


def test_schedules_without_warmup_warn():
    with pytest.warns(UserWarning, match="Profiler won't be using warmup, this can skew profiler results"):
        assert actions(4, wait=0, warmup=0, active=1) == "SSSS"


@pytest.mark.parametrize("bad", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -1}])
def test_schedules_that_make_no_sense(bad):
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments. Got wait="):
        schedule(**{"wait": 0, "warmup": 1, "active": 1, **bad})
    with pytest.raises(AssertionError, match="Step must be non-negative. Got -1."):
        schedule(wait=0, warmup=1, active=1)(-1)


def test_cycles_are_handed_over():
    seen = []

    def ready(prof):
        seen.append((prof.step_num, [(e.name, e.trace_name) for e in prof.events() if e.name != "aten::fill_"]))

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as prof:
        for _ in range(9):
            torch.ones(1)
            prof.step()

    def step(n):
        return [("ProfilerStep*", f"ProfilerStep#{n}"), ("aten::ones", "aten::ones")]

    assert seen == [(4, step(2) + step(3)), (8, step(6) + step(7))]
    rows = {e.key: e.count for e in prof.key_averages()}
    assert (rows["ProfilerStep*"], rows["aten::ones"]) == (2, 2)


def test_events_of_all_cycles_can_be_kept():
    with profile(schedule=schedule(wait=0, warmup=1, active=1), acc_events=True) as prof:
        for _ in range(6):
            torch.ones(1)
            prof.step()
    assert [e.trace_name for e in prof.events() if e.name == "ProfilerStep*"] == [
        f"ProfilerStep#{n}" for n in (1, 3, 5)
    ]


def test_without_schedule_everything_is_one_cycle():
    seen = []
    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=seen.append) as prof:
        for _ in range(3):
            torch.ones(1)
            prof.step()
    assert seen == [prof] and prof.step_num == 3
    assert [e.name for e in prof.events()].count("aten::ones") == 3
    assert not any(e.name == "ProfilerStep*" for e in prof.events())


def test_start_and_stop():
    prof = profile(record_shapes=True)
    prof.start()
    torch.ones(2) + 1
    prof.stop()
    assert [e.input_shapes for e in prof.events() if e.name == "aten::add"] == [[[2], [], []]] or prof.events()[
        -1
    ].input_shapes


def test_parts_that_are_not_collected():
    cpu = {profiler.ProfilerActivity.CPU}
    with profiler.profile(profile_memory=True) as p:
        with profiler.record_function("around"):
            torch.ones(1)
            p.toggle_collection_dynamic(False, cpu)
            with profiler.record_function("inside"):
                kept = torch.zeros(1000)
            p.toggle_collection_dynamic(True, set())  # no activity: no change
            p.toggle_collection_dynamic(False, cpu)
            torch.zeros(1)
            p.toggle_collection_dynamic(True, cpu)
            torch.arange(3)
        p.toggle_collection_dynamic(False, cpu)
        del kept
    assert [e.name for e in p.events() if not e.name.startswith("[")] == [
        "around",
        "aten::ones",
        "aten::fill_",
        "aten::arange",
    ]
    assert [e.cpu_parent and e.cpu_parent.name for e in p.events()][:4] == [None, "around", "aten::ones", "around"]
    assert p.events()[0].cpu_memory_usage == 0  # what was taken and given back is left out with the rest
    p.toggle_collection_dynamic(False, cpu)  # nothing runs
    with pytest.raises(TypeError, match="activities must be ProfilerActivity members, not str"):
        p.toggle_collection_dynamic(False, {"CPU"})


def test_sessions_have_names(tmp_path):
    names = iter("abc")
    p = profiler.profile(custom_trace_id_callback=lambda: next(names))
    assert p.get_trace_id() is None
    p.prepare_trace()
    p.start_trace()
    torch.ones(1)
    p.stop_trace()
    assert p.get_trace_id() == "a" and p.events()[0].name == "aten::ones"
    p.export_chrome_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["trace_id"] == "a"
    seen = []
    steps = profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with profiler.profile(schedule=steps, on_trace_ready=lambda p: seen.append(p.get_trace_id())) as p:
        p.set_custom_trace_id_callback(lambda: "given later")
        for _ in range(4):
            p.step()
    assert seen == ["given later"] * 2
    with profiler.profile() as first:
        pass
    with profiler.profile() as second:
        pass
    assert len(first.get_trace_id()) == 32 and first.get_trace_id() != second.get_trace_id()


def test_schedules_of_ones_own_may_be_incorrect():
    order = [
        ProfilerAction.WARMUP,
        ProfilerAction.NONE,
        ProfilerAction.RECORD,
        ProfilerAction.NONE,
        ProfilerAction.RECORD,
        ProfilerAction.WARMUP,
    ]
    with pytest.warns(UserWarning) as caught, profile(schedule=lambda n: order[n]) as prof:
        for _ in order[1:]:
            prof.step()
    assert [str(w.message) for w in caught] == [
        "Incorrect schedule: WARMUP followed by NONE",
        "Incorrect schedule: RECORD followed by NONE",
        "Incorrect schedule: RECORD followed by WARMUP",
    ]


def test_activities():
    assert ProfilerActivity.CPU in supported_activities()
    for bad in ([], [3]):
        with pytest.raises(AssertionError, match="No valid profiler activities found"):
            profile(activities=bad)
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])


def test_profiles_that_did_not_start():
    prof = profile()
    for what, call in (
        ("accessing events", prof.events),
        ("getting key averages", prof.key_averages),
        ("exporting chrome trace", lambda: prof.export_chrome_trace("nowhere.json")),
        ("stopping trace", prof.stop),
    ):
        with pytest.raises(AssertionError, match=f"Profiler must be initialized before {what}"):
            call()
    with pytest.raises(ValueError, match="record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."):
        prof.export_memory_timeline("nowhere")


def traced(tmp_path, name="trace.json", **options):
    x = torch.ones(4, requires_grad=True)
    with profile(**options) as prof:
        with record_function("a block", "args of it"):
            y = x * x
        y.sum().backward()
        del y
    prof.add_metadata("note", "text")
    prof.add_metadata_json("numbers", "[1, 2]")
    prof.export_chrome_trace(str(tmp_path / name))
    open_file = gzip.open if name.endswith(".gz") else open
    with open_file(tmp_path / name, "rt") as file:
        return json.load(file)


def test_traces(tmp_path):
    trace = traced(tmp_path, record_shapes=True, profile_memory=True)
    assert (trace["note"], trace["numbers"], trace["record_shapes"], trace["displayTimeUnit"]) == (
        "text",
        [1, 2],
        1,
        "ms",
    )
    rows = trace["traceEvents"]
    assert all({"ph", "name", "pid"} <= row.keys() for row in rows)
    calls = {row["name"]: row for row in reversed(rows) if row["ph"] == "X"}  # the first of each name
    mul, block, step = calls["aten::mul"], calls["a block"], calls["MulBackward0"]
    assert (mul["cat"], block["cat"], block["args"]["Args"]) == ("cpu_op", "user_annotation", "args of it")
    assert block["ts"] <= mul["ts"] and mul["ts"] + mul["dur"] <= block["ts"] + block["dur"] + 0.01
    assert mul["args"]["Input Dims"] == [[4], [4]] and mul["args"]["Input type"] == ["float", "float"]
    assert mul["args"]["Sequence number"] == step["args"]["Sequence number"]
    assert (mul["args"]["Fwd thread id"], step["args"]["Fwd thread id"]) == (0, 1)
    flows = [(row["ph"], row["id"], row["ts"]) for row in rows if row.get("cat") == "fwdbwd"]
    starts, ends = ({i: ts for ph, i, ts in flows if ph == kind} for kind in "sf")
    assert starts.keys() == ends.keys() and len(starts) == 2
    (number,) = [i for i, ts in ends.items() if ts == step["ts"]]
    assert starts[number] == mul["ts"]
    memory = [row["args"] for row in rows if row["name"] == "[memory]"]
    assert memory[0]["Bytes"] == 16
    before = memory[0]["Total Allocated"] - 16  # what earlier profiles saw taken and not given back
    assert memory[-1]["Total Allocated"] == before + sum(m["Bytes"] for m in memory)
    assert {"process_name", "thread_name"} <= {row["name"] for row in rows if row["ph"] == "M"}


def test_compressed_traces(tmp_path):
    assert traced(tmp_path, "trace.json.gz")["traceEvents"]


def test_handler_for_tensorboard(tmp_path):
    with (
        pytest.warns(UserWarning, match="warmup"),
        profile(
            schedule=schedule(wait=0, warmup=0, active=1, repeat=2),
            on_trace_ready=tensorboard_trace_handler(str(tmp_path / "runs"), "w"),
        ) as prof,
    ):
        for _ in range(3):
            torch.ones(1)
            prof.step()
    files = sorted(f.name for f in (tmp_path / "runs").iterdir())
    assert len(files) == 2 and all(f.startswith("w.") and f.endswith(".pt.trace.json") for f in files)
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "zipped"), use_gzip=True)):
        torch.ones(1)
    (file,) = (tmp_path / "zipped").iterdir()
    assert json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RuntimeError, match="Can't create directory: "),
        profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "file" / "x"))),
    ):
        torch.ones(1)


def test_nothing_is_loaded_before_it_is_used():
    code = "import sys, cresset; print([m for m in sys.modules if 'profiler' in m and m != 'cresset._C._profiler'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
