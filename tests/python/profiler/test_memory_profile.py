"""What the memory of a profile was for, and the graph behind it. Numbers and categories are those that PyTorch's profiler gives for the same programs."""

import functools
import gzip
import json

import pytest

import cresset
from cresset.profiler import _memory_profiler as memory
from cresset.profiler import profile, record_function

profile = functools.partial(profile, record_shapes=True, profile_memory=True, with_stack=True)
Category, Action = memory.Category, memory.Action


def flow(run):
    """`aten::mul T0(v0) -> T1(v0)` for each node that touches memory; * stands for memory that is given back."""
    with profile() as prof:
        kept = run()  # noqa: F841
    out = []
    for node in prof._memory_profile()._data_flow_graph.flow_nodes:
        gone = {k for k, e in node._edges.items() if e.is_deletion}
        given = ", ".join(f"T{k.id}(v{v}{'*' if k in gone else ''})" for k, (_, v) in node.inputs.items())
        made = ", ".join(f"T{k.id}(v{v})" for k, v in node.outputs.items())
        if given or made:
            out.append(f"{node._event.name.replace('torch::autograd::', '')} {given} -> {made}".replace("  ", " ").strip())
    return out


def categories(profiled, tensor):
    """Those of the memory of a tensor that lives."""
    snapshot, ptr = profiled._category_snapshot(), tensor.untyped_storage().data_ptr()
    last = max(key.storage.allocation_id for key, _ in snapshot if key.storage.ptr == ptr)
    return {c for (key, _), c in snapshot.items() if key.storage.allocation_id == last}


def test_what_a_memory_profile_needs():
    for missing in ("record_shapes", "profile_memory", "with_stack"):
        with profile(**{missing: False}) as prof:
            pass
        with pytest.raises(ValueError, match=f"^{missing}=True required for memory profiling.$"):
            prof._memory_profile()


def test_schemas_of_calls():
    with profile() as prof:
        cresset.ones(1).mul(2).add_(2)
        cresset.sin(cresset.ones(2), out=cresset.empty(2))
    match = memory.SchemaMatcher
    seen = {}
    for event in memory.OpTree(prof.profiler.kineto_results).dfs():
        if event.tag is cresset._C._profiler._EventType.TorchOp:
            (schema,) = match.match_schemas(event.extra_fields)
            seen[f"{event.name}.{schema.overload_name}"] = match.inputs_are_mutable(event.extra_fields)
    assert seen["aten::ones."] == (False,) * 5 and seen["aten::sin.out"] == (False, True) and seen["aten::fill_.Scalar"] == (True, False)
    assert match.lookup_schemas("my range") is None and match.lookup_schemas("my::range") == ()


def test_versions_and_memory_that_goes():
    x, y = cresset.ones(25), cresset.ones(25, requires_grad=True)

    def run():
        with record_function("Name::space"):
            z = x.mul(y).relu()
            x.zero_()
        return z.view_as(z)

    assert flow(run) == [
        "aten::mul T0(v0), T1(v0) -> T2(v0)", "aten::relu T2(v0) -> T3(v0)", "[memory] T2(v0*) ->", "aten::zero_ T0(v0) -> T0(v1)", "aten::view_as T3(v0) ->",
    ]  # fmt: skip


def test_backward_steps_are_nodes():
    x, w = cresset.ones(1), cresset.ones(1, requires_grad=True)
    assert flow(lambda: (x * w).sin().backward()) == [
        "aten::mul T0(v0), T1(v0) -> T2(v0)", "aten::sin T2(v0) -> T3(v0)", "aten::ones_like T3(v0) -> T4(v0)", "SinBackward0 T2(v0), T4(v0) -> T6(v0)",
        "[memory] T2(v0*) ->", "MulBackward0 T0(v0), T6(v0) -> T7(v0)", "[memory] T6(v0*) ->", "AccumulateGrad T7(v0) ->", "[memory] T4(v0*) ->",
        "[memory] T3(v0*) ->",
    ]  # fmt: skip


def test_parameters_gradients_and_states():
    model = cresset.nn.Sequential(cresset.nn.Linear(2, 3), cresset.nn.ReLU(), cresset.nn.Linear(3, 1))
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    before, targets = cresset.ones(4, 2), cresset.rand(4, 1)
    with profile() as prof:
        later = cresset.ones(4, 2)
        for x in (before, later):
            y = model(x)
            cresset.nn.functional.mse_loss(y, targets).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    found = prof._memory_profile()
    for p in model.parameters():
        assert categories(found, p) == {Category.PARAMETER}
        assert categories(found, p.grad) == {Category.GRADIENT}
        assert categories(found, optimizer.state[p]["momentum_buffer"]) == {Category.OPTIMIZER_STATE}
    assert all(categories(found, t) == {Category.INPUT} for t in (before, later, targets))
    assert categories(found, y) == {Category.ACTIVATION}


def test_what_nobody_knows():
    w = cresset.ones(1, requires_grad=True)
    with profile() as prof:
        x = cresset.ones(2, 2)
        y = cresset.cat([x * w, x * w])
        y.view_as(y)
    found = prof._memory_profile()
    assert categories(found, x) == categories(found, w) == categories(found, y) == {None}


def test_gradients_that_appear_in_the_session_are_not_those_of_modules():
    model = cresset.nn.Linear(2, 1)
    for known in (False, True):
        with profile() as prof:
            model(cresset.ones(2, 2)).sum().backward()
        pairs = [pair for event in memory.OpTree(prof.profiler.kineto_results).dfs() for pair in memory.extract_gradients(event)]
        for p in model.parameters():
            mine = [parameter for parameter, gradient in pairs if gradient.storage.ptr == p.grad.data_ptr()]
            assert None in mine and [k.storage.ptr for k in mine if k is not None] == [p.data_ptr()] * known


def test_files_of_timelines(tmp_path):
    model = cresset.nn.Linear(64, 32)
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.1)
    with profile() as prof:
        for _ in range(2):
            model(cresset.ones(8, 64)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    timeline = prof._memory_profile().timeline
    times = [time for time, *_ in timeline]
    assert times == sorted(times) and all((time == -1) == (action is Action.PREEXISTING) for time, action, _, _ in timeline)
    path = str(tmp_path / "m.raw.json.gz")
    prof.export_memory_timeline(path, "cpu")
    with gzip.open(path, "rt") as file:
        changes = json.load(file)
    # Numbers of actions and categories as PyTorch's files have them.
    assert [change[1:] for change in changes[:4]] == [[1, 8192, 0], [1, 128, 0], [2, 2048, 2], [2, 1024, 4]]
    assert [change[1:] for change in changes if abs(change[2]) == 8192 and change[0] > 0 and change[3] != 6] == [[2, 8192, 5], [3, -8192, 0], [3, 8192, 0], [4, -8192, 5]] * 2
    prof.export_memory_timeline(str(tmp_path / "m.json"))
    times, rows = json.loads((tmp_path / "m.json").read_text())
    assert rows[0] == [0, 8320, 0, 0, 0, 0, 0, 0, 0] and rows[1] == [0, 8320, 0, 2048, 0, 0, 0, 0, 0] and times[0] == times[1] == changes[2][0] // 1000
    assert len(rows) == len(times) and rows[-1][:4] == [0, 8320, 0, 0] and rows[-1][6] == 0
    prof.export_memory_timeline(str(tmp_path / "m.html"), "cpu")
    page = (tmp_path / "m.html").read_text()
    assert page.count("<polygon") >= 4 and "GRADIENT" in page
    prof.export_memory_timeline(str(tmp_path / "none.json"), "meta")
    assert json.loads((tmp_path / "none.json").read_text()) == [[], []]
