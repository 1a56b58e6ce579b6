"""Whether a session runs, walks over event trees, and what a trace says of the whole profile."""

import json
from types import SimpleNamespace

import cresset as torch
from cresset.autograd import profiler
from cresset.profiler import _utils, profile


def test_whether_a_session_runs():
    states = [torch.autograd._profiler_enabled()]
    with profile():
        states.append(profiler._is_profiler_enabled)
    with profiler.profile():
        states.append(torch.autograd._profiler_enabled())
    states.append(profiler._is_profiler_enabled)
    assert states == [False, True, True, False] and torch.autograd.kineto_available()


def test_walks():
    def node(name, *children):
        return SimpleNamespace(name=name, children=children)

    roots = [node("a", node("b", node("c")), node("d")), node("e", node("f"))]
    assert "".join(n.name for n in _utils.traverse_dfs(roots)) == "abcdef"
    assert "".join(n.name for n in _utils.traverse_bfs(roots)) == "aebdfc"


def test_a_trace_says_where_it_begins_and_ends(tmp_path):
    with profile(profile_memory=True) as p:
        x = torch.rand(10, 10) + 1
        del x
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    span, _, start, end = events[-4:]
    assert span["name"] == "PyTorch Profiler (0)" and start["name"] == "Iteration Start: PyTorch Profiler" and end["name"] == "Record Window End"
    assert start["ts"] <= span["ts"] and span["ts"] + span["dur"] <= end["ts"]
    assert all(span["ts"] <= e["ts"] and e["ts"] + e.get("dur", 0) <= end["ts"] for e in events)
    changes = [e["args"] for e in events if e["name"] == "[memory]"]
    assert changes and all({"Addr", "Bytes", "Device Type", "Device Id"} <= set(a) for a in changes) and all(a["Addr"] > 0 for a in changes)
