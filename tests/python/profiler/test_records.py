"""What a session records: rows, nesting, times, shapes, backward steps, memory, ranges, threads."""

import gc
import importlib.util
import math
import threading
from pathlib import Path

import pytest

import cresset as torch
from cresset.autograd import profiler as ap
from cresset.autograd import profiler_util as util
from cresset.autograd.profiler import profile, record_function


def load_tables():
    spec = importlib.util.spec_from_file_location("profiler_tables", Path(__file__).with_name("tables.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recorded_tables():
    parts = Path(__file__).with_name("tables.txt").read_text().split("#### ")[1:]
    return {title: text[:-1] for title, _, text in (part.partition("\n") for part in parts)}


def names(p):
    return [e.name for e in p.function_events]


def find(p, name, at=0):
    return [e for e in p.function_events if e.name == name][at]


def chain(event):
    out = []
    while event is not None:
        out.append(event.name)
        event = event.cpu_parent
    return out


def test_tables_are_those_of_pytorch():
    texts = dict(load_tables().texts(util))
    assert texts == recorded_tables()
    assert len(texts) == 15


def test_operators_and_those_inside():
    x, w = torch.randn(5, 4), torch.randn(3, 4)
    with profile() as p:
        torch.nn.functional.linear(x, w, torch.zeros(3))
        x + 1
    assert chain(find(p, "aten::addmm")) == ["aten::addmm", "aten::linear"]
    assert find(p, "aten::add").cpu_parent is None
    linear = find(p, "aten::linear")
    assert {c.name for c in linear.cpu_children} >= {"aten::t", "aten::addmm"}
    assert all(c.cpu_parent is linear for c in linear.cpu_children)
    assert "aten::linear" not in {c.name for e in p.function_events for c in e.cpu_children}


def test_times_of_calls_contain_those_inside():
    x = torch.randn(60, 60)
    with profile() as p, record_function("outer"):
        for _ in range(3):
            torch.nn.functional.linear(x, x)
    outer = find(p, "outer")
    for e in p.function_events:
        assert e.cpu_time_total >= 0
        assert e.self_cpu_time_total == pytest.approx(e.cpu_time_total - sum(c.cpu_time_total for c in e.cpu_children))
        if e.cpu_parent is not None:
            assert e.cpu_parent.time_range.start <= e.time_range.start
            assert e.time_range.end <= e.cpu_parent.time_range.end
    assert p.self_cpu_time_total == pytest.approx(outer.cpu_time_total)
    assert p.total_average().self_cpu_time_total == pytest.approx(outer.cpu_time_total)


def test_averages_count():
    x = torch.randn(3)
    with profile() as p:
        for _ in range(7):
            x * 2
    (row,) = [e for e in p.key_averages() if e.key == "aten::mul"]
    each = [e.cpu_time_total for e in p.function_events if e.name == "aten::mul"]
    assert row.count == len(each) == 7
    assert row.cpu_time_total == pytest.approx(sum(each))
    assert row.cpu_time == pytest.approx(sum(each) / 7)
    assert row.cpu_time_str.endswith("s")


def test_shapes_types_and_values():
    x = torch.ones(2, 3, dtype=torch.float16)
    with profile(record_shapes=True) as p:
        x.sum(0, keepdim=True)
        torch.cat([x, x], 1)
        x.t()
    total = find(p, "aten::sum")
    assert total.input_shapes == [[2, 3], [], [], []]
    assert total.concrete_inputs == [None, [0], True, None]
    assert total.input_dtypes == ["c10::Half", "ScalarList", "Scalar", ""]
    cat = find(p, "aten::cat")
    assert (cat.input_shapes, cat.structured_input_shapes) == ([[], []], [[[2, 3], [2, 3]], []])
    assert cat.input_dtypes == ["TensorList", "Scalar"]
    assert find(p, "aten::t").structured_input_strides == [[3, 1]]


def test_shapes_are_kept_only_when_asked_for():
    with profile() as p:
        torch.ones(2) + 1
    assert find(p, "aten::add").input_shapes == []


def test_groups_by_shape_and_overload():
    a, b = torch.ones(2), torch.ones(5)
    with profile(record_shapes=True) as p:
        a + a, a + a, b + b, a.add(a, alpha=2)
        a.pow(2), a.pow(a)
    shapes = {str(e.input_shapes): e.count for e in p.key_averages(group_by_input_shape=True) if e.key == "aten::add"}
    assert shapes == {"[[2], [2], []]": 3, "[[5], [5], []]": 1}
    overloads = {e.overload_name for e in p.key_averages(group_by_overload_name=True) if e.key == "aten::pow"}
    assert overloads == {"Tensor_Scalar", "Tensor_Tensor"}
    assert [e.count for e in p.key_averages() if e.key == "aten::pow"] == [2]


def test_backward_steps_and_their_forward_operators():
    x = torch.randn(4, requires_grad=True)
    with profile(record_shapes=True) as p:
        (x * x).exp().sum().backward()
    mul = find(p, "aten::mul")
    step = find(p, "MulBackward0")
    assert step.sequence_nr == mul.sequence_nr >= 0
    assert (mul.fwd_thread, step.fwd_thread) == (0, mul.thread)
    assert step.scope == 1
    assert chain(step) == ["MulBackward0", "autograd::engine::evaluate_function: MulBackward0"]
    assert step.input_shapes == [[4]]
    assert [c.name for c in step.cpu_children] == ["aten::mul", "aten::mul"] or "aten::mul" in {
        c.name for c in step.cpu_children
    }
    order = [n for n in names(p) if n.endswith("Backward0") and not n.startswith("autograd::")]
    assert order == ["SumBackward0", "ExpBackward0", "MulBackward0"]
    assert find(p, "aten::exp").sequence_nr == mul.sequence_nr + 1


def test_operators_without_graph_have_no_number():
    x = torch.randn(4, requires_grad=True)
    with profile() as p, torch.no_grad():
        x * x
    assert find(p, "aten::mul").sequence_nr == -1


def test_custom_functions_are_steps():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    with profile() as p:
        Double.apply(x).sum().backward()
    assert "DoubleBackward" in names(p)
    assert find(p, "aten::mul", 1).cpu_parent.name == "DoubleBackward"


def test_memory_by_operator():
    gc.collect()
    with profile(profile_memory=True) as p:
        x = torch.empty(100)
        with record_function("twice"):
            y = x * 2
            z = y * 2
            del y
        del x
    assert find(p, "aten::empty").self_cpu_memory_usage == 400
    assert [e.cpu_memory_usage for e in p.function_events if e.name == "aten::mul"] == [400, 400]
    twice = find(p, "twice")
    assert (twice.cpu_memory_usage, twice.self_cpu_memory_usage) == (400, -400)
    assert find(p, "[memory]").cpu_memory_usage == -400
    assert sum(e.self_cpu_memory_usage for e in p.function_events) == z.nbytes
    assert "Self CPU Mem" in p.key_averages().table(sort_by="self_cpu_memory_usage")


def test_memory_of_resized_and_replaced_storage():
    x = torch.empty(0)
    with profile(profile_memory=True) as p:
        x.resize_(1000)
    assert find(p, "aten::resize_").cpu_memory_usage == 4000


def test_memory_is_not_watched_without_the_option():
    with profile() as p:
        torch.empty(100)
    assert find(p, "aten::empty").cpu_memory_usage == 0
    assert "Mem" not in p.table()


def test_ranges():
    @record_function("decorated", "number 1")
    def f(x):
        return x + 1

    with profile() as p:
        f(torch.ones(1))
        with pytest.raises(RuntimeError), record_function("fails"):
            torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        torch.ones(1)
    assert chain(find(p, "aten::add")) == ["aten::add", "decorated"]
    decorated = find(p, "decorated")
    assert (decorated.is_user_annotation, decorated.args, decorated.scope) == (True, "number 1", 7)
    assert chain(find(p, "aten::mm")) == ["aten::mm", "fails"]
    assert find(p, "aten::ones", -1).cpu_parent is None


def test_ranges_that_reach_over_the_ends():
    before = record_function("before")
    before.__enter__()
    inside = record_function("inside")
    with profile() as p:
        inside.__enter__()
        torch.ones(1)
        before.__exit__()
    inside.__exit__()
    with profile() as later:
        torch.ones(1)
    assert [n for n in names(p) if "::" not in n] == ["inside"]
    assert find(p, "inside").cpu_time_total > 0
    assert "inside" not in names(later)


def test_ranges_that_cross():
    a, b = record_function("a"), record_function("b")
    with profile() as p:
        a.__enter__()
        b.__enter__()
        a.__exit__()
        torch.ones(1)
        b.__exit__()
    assert find(p, "b").cpu_parent is None
    assert find(p, "a").self_cpu_time_total >= 0


def test_modules():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 2))
    with profile(with_modules=True) as p:
        model(torch.ones(1, 3))
        model(torch.ones(1, 3))
    assert [n for n in names(p) if n.startswith("nn.Module")] == [
        "nn.Module: Sequential_0",
        "nn.Module: Linear_0",
        "nn.Module: Linear_1",
    ] * 2
    assert chain(find(p, "aten::addmm")) == [
        "aten::addmm",
        "aten::linear",
        "nn.Module: Linear_0",
        "nn.Module: Sequential_0",
    ]
    with profile() as p:
        model(torch.ones(1, 3))
    assert not any(n.startswith("nn.Module") for n in names(p))


def test_module_that_fails_ends_its_range():
    class Broken(torch.nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    with profile(with_modules=True) as p:
        with pytest.raises(ValueError, match="broken"):
            Broken()(1)
        torch.ones(1)
    assert find(p, "aten::ones").cpu_parent is None


def called_here(x):
    return x.cos()


def test_stacks():
    x = torch.ones(2, requires_grad=True)
    with profile(with_stack=True) as p:
        called_here(x).sum().backward()
    stack = find(p, "aten::cos").stack
    assert "test_records.py" in stack[0] and stack[0].endswith("): called_here")
    assert stack[1].endswith("): test_stacks")
    assert find(p, "CosBackward0").stack == stack
    assert {e.key: e.stack for e in p.key_averages(group_by_stack_n=1)}["aten::cos"] == stack[:1]
    assert "Source Location" in p.key_averages(group_by_stack_n=2).table()


def test_exported_stacks(tmp_path):
    with profile(with_stack=True) as p:
        for _ in range(3):
            called_here(torch.ones(20000))
    p.export_stacks(tmp_path / "stacks", "self_cpu_time_total")
    lines = (tmp_path / "stacks").read_text().splitlines()
    cos = [line for line in lines if "called_here" in line]
    assert cos
    frames, _, value = cos[0].rpartition(" ")
    assert frames.split(";")[-1].endswith("):_called_here") and int(value) > 0
    with pytest.raises(ValueError, match="metric should be one of: .'self_cpu_time_total'"):
        p.export_stacks(tmp_path / "stacks", "bogus")


@pytest.mark.parametrize(
    ("call", "name", "flops"),
    [
        (lambda: torch.mm(torch.ones(2, 3), torch.ones(3, 5)), "aten::mm", 60),
        (lambda: torch.bmm(torch.ones(2, 2, 3), torch.ones(2, 3, 4)), "aten::bmm", 96),
        (lambda: torch.addmm(torch.ones(5), torch.ones(2, 3), torch.ones(3, 5)), "aten::addmm", 60),
        (lambda: torch.baddbmm(torch.ones(2, 2, 4), torch.ones(2, 2, 3), torch.ones(2, 3, 4)), "aten::baddbmm", 96),
        (lambda: torch.ones(4, 5) * 2, "aten::mul", 20),
        (lambda: torch.ones(4, 5) + 2, "aten::add", 20),
        (
            lambda: torch.conv2d(torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3), stride=2, padding=1),
            "aten::conv2d",
            972,
        ),
        (lambda: torch.ones(4).cos(), "aten::cos", 0),
    ],
)
def test_flops(call, name, flops):
    with profile(with_flops=True) as p:
        call()
    assert find(p, name).flops == flops
    assert ("FLOPs" in p.key_averages().table()) == bool(flops)


def test_optimizers_and_loaders():
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    data = torch.utils.data.TensorDataset(torch.arange(4.0))
    with profile() as p:
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=2):
            (w.sum() * batch.sum()).backward()
            optimizer.step()
            optimizer.zero_grad()
    rows = {e.key: e.count for e in p.key_averages()}
    assert rows["Optimizer.step#SGD.step"] == rows["Optimizer.zero_grad#SGD.zero_grad"] == 2
    assert (
        rows["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 3
    )  # the last one says that there is no more
    assert w.grad is None
    with profile() as p:
        list(torch.utils.data.DataLoader(data, batch_size=2, num_workers=1))
    assert "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" in names(p)


def test_other_threads_are_not_recorded():
    with profile() as p:
        thread = threading.Thread(target=lambda: torch.zeros(3))
        thread.start()
        thread.join()
        torch.ones(1)
    assert "aten::ones" in names(p) and "aten::zeros" not in names(p)


def test_a_session_may_end_while_a_pass_is_deep():
    # More than 60 passes inside of each other use a fresh stack, in another thread.
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if ctx.depth:
                with torch.enable_grad():
                    Nested.apply(torch.ones(1, requires_grad=True), ctx.depth - 1).sum().backward()
            return g, None

    with profile() as p:
        Nested.apply(torch.ones(1, requires_grad=True), 70).sum().backward()
    assert names(p).count("NestedBackward") == 71
    assert {e.thread for e in p.function_events} == {1, 2}


def test_results_do_not_change():
    x = torch.randn(6, 6, requires_grad=True, generator=torch.Generator().manual_seed(1))

    def f():
        x.grad = None
        y = torch.nn.functional.layer_norm(x @ x, (6,)).softmax(0).std()
        y.backward()
        return y.item(), x.grad.clone()

    value, grad = f()
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        again, grad_again = f()
    assert value == again and torch.equal(grad, grad_again)


def test_modes_and_transforms_are_recorded_inside():
    from cresset.func import grad, vmap

    with profile() as p:
        vmap(grad(lambda v: (v * v).sum()))(torch.ones(3, 2))
    assert "aten::mul" in names(p) and "MulBackward0" in names(p)
    with profile() as p, torch.inference_mode():
        torch.ones(2) * 2
    assert find(p, "aten::mul").sequence_nr == -1
    with profile() as p, torch.autocast("cpu", dtype=torch.bfloat16):
        torch.ones(2, 2) @ torch.ones(2, 2)
    assert "aten::mm" in names(p)
    x = torch.ones(1)
    with profile() as later:
        x + 1
    assert names(later) == ["aten::add"]


def test_one_session_at_a_time():
    with profile() as p:
        with pytest.raises(RuntimeError, match="Profiler is already enabled on this thread."):
            profile().__enter__()
        failures = []

        def start():
            try:
                profile().__enter__()
            except RuntimeError as error:
                failures.append(str(error))

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        assert failures == ["Profiler is already enabled on another thread; there is one session at a time."]
        torch.ones(1)
    assert "aten::ones" in names(p)
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        p.__enter__()


def test_profiles_that_did_not_run():
    p = profile()
    assert (repr(p), str(p), p.table(), p.key_averages(), p.self_cpu_time_total) == (
        *["<unfinished cresset.autograd.profile>"] * 2,
        "",
        [],
        0,
    )
    with pytest.raises(RuntimeError, match="there is nothing to export"):
        p.export_chrome_trace("nowhere.json")
    with profile(enabled=False) as p:
        torch.ones(1)
    assert p.function_events is None
    with pytest.raises(RuntimeError, match="Profiler didn't finish running: it was not enabled."):
        p.table()
    with profile() as p:
        torch.ones(1)
    assert str(p) == p.table()
    with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
        p.export_stacks("nowhere")
    with pytest.raises(AttributeError, match="bogus"):
        p.key_averages().table(sort_by="bogus")


def test_foreign_tools_are_refused():
    for tool, library in ((ap.emit_nvtx, "NVTX"), (ap.emit_itt, "ITT")):
        with tool(enabled=False):
            pass
        with pytest.raises(NotImplementedError, match=f"{tool.__name__}: {library} is not part of Cresset"), tool():
            pass
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        assert profile(use_device="cuda").use_device is None
    with pytest.warns(UserWarning, match="The xyz is not a valid device option."):
        assert profile(use_device="xyz").use_device is None
    with pytest.raises(AssertionError, match="Device-only events supported only with Kineto"):
        profile(use_cpu=False)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ap.nothing


def test_numbers_as_text():
    assert [util.format_time(t) for t in (0, 1.5, 999.9994, 1000, 1e6)] == [
        "0.000us",
        "1.500us",
        "999.999us",
        "1.000ms",
        "1.000s",
    ]
    from cresset.autograd._profiler_table import _share, format_memory

    assert [format_memory(n) for n in (0, 1023, 1024, -2048, 5 << 20, 3 << 30)] == [
        "0 B",
        "1023 B",
        "1.00 KB",
        "-2.00 KB",
        "5.00 MB",
        "3.00 GB",
    ]
    assert (_share(1, 3), _share(0, 0)) == ("33.33%", "NaN")


def _ranged(x):
    with torch.autograd.profiler.record_function("outer"):
        with torch.autograd.profiler.record_function("inner"):
            y = x.sin()
    return y


def _ranged_by_operators(x):
    outer = torch.ops.profiler._record_function_enter("outer")
    inner = torch.ops.profiler._record_function_enter("inner")
    y = x.sin()
    torch.ops.profiler._record_function_exit(inner)
    torch.ops.profiler._record_function_exit(outer)
    return y


@pytest.mark.parametrize("function", [_ranged, torch.jit.script(_ranged), _ranged_by_operators], ids=["python", "script", "operators"])
def test_what_runs_in_a_range_is_below_it(function):
    """torch 2.13: the range of a script has the operators, too, and the operators that begin and end it are no rows."""
    with profile() as prof:
        function(torch.ones(2))
    events = {e.name: e for e in prof.function_events}
    assert not [name for name in events if name.startswith("profiler::")]
    assert events["aten::sin"].cpu_parent is events["inner"] and events["inner"].cpu_parent is events["outer"]
    assert events["outer"].cpu_parent is None


def test_events_by_hand():
    e = util.FunctionEvent(1, "x", 1, 2.0, 6.0, use_device="mychip")
    e.append_kernel("k", 0, 3.0)
    child = util.FunctionEvent(2, "y", 1, 3.0, 4.0)
    child.append_kernel("k", 0, 1.5)
    e.append_cpu_child(child)
    assert (e.cpu_time_total, e.self_cpu_time_total) == (4.0, 3.0)
    assert (e.device_time_total, e.self_device_time_total, e.cuda_time_total) == (4.5, 3.0, 4.5)
    assert (e.device_time_total_str, e.self_device_time_total_str) == ("4.500us", "3.000us")
    assert repr(e.kernels[0]) == "Kernel(name='k', device=0, duration=3.0)"
    text = util.EventList([e], use_device="mychip", profile_memory=True).table()
    assert text.splitlines()[1].split("  ")[0] == "Name"[:0] or "Self MYCHIP" in text
    assert "Self MYCHIP time total: 3.000us" in text and "MYCHIP Mem" in text
    assert math.isclose(util.FunctionEventAvg().add(e).add(child).device_time_total, 6.0)


def test_events_put_together_by_hand():
    from cresset.autograd.profiler_util import EventList, FunctionEvent

    ranges = [(1, 0, 1), (1, 1, 2), (0, 0, 2), (0, 1, 2), (0, 1, 3)]
    events = EventList(FunctionEvent(id=i, node_id=0, name="", thread=t, start_us=a, end_us=b) for i, (t, a, b) in enumerate(ranges, 1))
    events._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in events] == [[], [], [], [], [4]]  # [0, 2] ends before [1, 3], and so holds nothing
    assert events[3].cpu_parent is events[4]
