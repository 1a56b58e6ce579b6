"""Pipelines on two and three ranks beside the whole model in one process: losses, outputs, gradients; schedules, cuts, words of errors."""

import copy
import re

import pytest

import cresset as torch
import cresset.distributed as dist
from cresset import nn
from cresset.distributed.pipelining import PipelineStage, SplitPoint, pipe_split, pipeline, schedules
from cresset.distributed.pipelining._actions import _Action, _add_send_recv, _format_pipeline_order, _simulate_comms_compute, _validate_schedule
from cresset.distributed.pipelining._backward import stage_backward_input, stage_backward_weight
from cresset.distributed.pipelining._v_schedules import dual_pipe, zero_bubble
from cresset.distributed.pipelining.microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks, sum_reducer
from cresset.nn.parallel import DistributedDataParallel
from cresset.utils.flop_counter import FlopCounterMode

from ranks import RankError, Ranks


class Block(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(self.linear(x)).relu()


def model_of(stages):
    torch.manual_seed(0)
    return nn.Sequential(*[Block() for _ in range(stages)])


def batch():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(24, 6, generator=generator), torch.randn(24, 6, generator=generator)


def in_pipeline(rank, name, per_rank, microbatches):
    """The largest difference of gradients, outputs and losses from those of one process, over two steps and an evaluation."""
    size = dist.get_world_size()
    whole = model_of(size * per_rank)
    x, y = batch()
    loss_fn = nn.MSELoss()
    parts = copy.deepcopy(whole)
    in_v = name in ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")
    mine = [rank, 2 * size - 1 - rank] if in_v else list(range(rank, size * per_rank, size))
    last = 0 if in_v else size - 1
    stages = [PipelineStage(parts[i], i, size * per_rank, "cpu") for i in mine]
    schedule = getattr(schedules, name)(stages if per_rank > 1 else stages[0], microbatches, loss_fn=loss_fn)
    for _ in range(2):
        whole.zero_grad()
        parts.zero_grad()
        expected = whole(x)
        loss = loss_fn(expected, y)
        loss.backward()
        losses = []
        out = schedule.step(*([x] if rank == 0 else []), target=y if rank == last else None, losses=losses)
        for i in mine:
            for p, q in zip(parts[i].parameters(), whole[i].parameters()):
                torch.testing.assert_close(p.grad, q.grad)
        if rank == last:
            torch.testing.assert_close(out, expected)
            torch.testing.assert_close(sum(losses) / microbatches, loss)
            assert len(losses) == microbatches
        else:
            assert out is None and losses == []
    before = [p.grad.clone() for i in mine for p in parts[i].parameters()]
    out = schedule.eval(*([x] if rank == 0 else []))
    if rank == last:
        torch.testing.assert_close(out, whole(x))
        assert not out.requires_grad
    return all(torch.equal(g, p.grad) for g, p in zip(before, (p for i in mine for p in parts[i].parameters())))


@pytest.mark.parametrize("name, per_rank, microbatches", [
    ("ScheduleGPipe", 1, 4), ("Schedule1F1B", 1, 6), ("Schedule1F1B", 1, 3), ("ScheduleInterleaved1F1B", 2, 6), ("ScheduleInterleaved1F1B", 3, 12),
    ("ScheduleLoopedBFS", 2, 4), ("ScheduleInterleavedZeroBubble", 2, 6), ("ScheduleZBVZeroBubble", 2, 6),
    ("ScheduleZBVZeroBubble", 2, 1), ("ScheduleDualPipeV", 2, 6), ("ScheduleDualPipeV", 2, 8),
])  # fmt: skip
def test_gradients_are_those_of_one_process(pool, name, per_rank, microbatches):
    assert all(pool.run(in_pipeline, name, per_rank, microbatches))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_zero_bubble_has_no_waits_but_those_of_filling(size, rounds):
    """Steps where all actions take one: 6 for each microbatch and, until the last rank has work, size - 1."""
    count = size * rounds
    order = zero_bubble(size, count)
    rank_of = {s: min(s, 2 * size - 1 - s) for s in range(2 * size)}
    assert _validate_schedule(order, size, 2 * size, count) == rank_of
    assert steps_of(order, size) == 6 * count + size - 1
    for row in order.values():  # activations that are held
        held = [sum((a.computation_type == "F") - (a.computation_type == "W") for a in row[:n]) for n in range(len(row) + 1)]
        assert max(held) <= 2 * size + 1


def steps_of(order, size):
    """How long a schedule takes: an action begins when the rank is free and what it needs has ended."""
    ended, free, waiting = {}, dict.fromkeys(order, 0), {rank: list(row) for rank, row in order.items()}
    while any(waiting.values()):
        for rank, row in waiting.items():
            while row:
                stage, kind, n = row[0]
                needs = [(stage - 1, "F", n)] if kind == "F" and stage else []
                needs += [(stage, "F", n)] if kind == "I" else []
                needs += [(stage + 1, "I", n)] if kind == "I" and stage + 1 < 2 * size else []
                needs += [(stage, "I", n)] if kind == "W" else []
                if any(each not in ended for each in needs):
                    break
                free[rank] = ended[stage, kind.value, n] = max([free[rank], *(ended[each] for each in needs)]) + 1
                row.pop(0)
    return max(free.values())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
def test_dual_pipe_is_complete_and_ends(size):
    for count in (2 * size, 2 * size + 1, 5 * size):
        order = {rank: dual_pipe(rank, size, count) for rank in range(size)}
        rank_of = _validate_schedule(order, size, 2 * size, count)
        assert rank_of == {s: min(s, 2 * size - 1 - s) for s in range(2 * size)}
        _add_send_recv(order, rank_of.__getitem__, 2 * size)  # refuses orders that wait for each other


class Tied(nn.Module):
    """Weights that two layers share, one that is made of others, one behind a hook, an output that depends on no input, and a weight without use."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(5, 5), nn.Linear(5, 5), nn.utils.parametrizations.weight_norm(nn.Linear(5, 5))
        self.scale, self.unused, self.apart = (nn.Parameter(torch.rand(5)) for _ in range(3))

    def forward(self, x):
        x = self.third(self.first(x).tanh()).tanh() * self.scale
        x.register_hook(lambda g: 2 * g)
        return self.second(self.first(x)) + self.scale, self.apart.exp() * self.second.bias


def split(module, inputs, outputs=None):
    outputs = module(inputs) if outputs is None else outputs
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    gradients = [torch.linspace(0.5, 1.5, o.numel()).reshape(o.shape) for o in outputs]
    from_inputs, groups = stage_backward_input(outputs, gradients, [inputs], module.parameters())
    assert all(p.grad is None for p in module.parameters())
    torch.testing.assert_close(from_inputs[0], inputs.grad)
    stage_backward_weight(module.parameters(), groups)


def test_the_two_parts_of_a_backward_are_the_whole():
    torch.manual_seed(0)
    for module in (Tied(), nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5)), nn.MultiheadAttention(4, 2), nn.GRU(5, 3)):
        twin = copy.deepcopy(module)
        call = (lambda m: lambda x: m(x, x, x, need_weights=False)[0]) if isinstance(module, nn.MultiheadAttention) else lambda m: m
        x = torch.randn(3, 2, 4 if isinstance(module, nn.MultiheadAttention) else 5, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        outputs = call(twin)(y)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        torch.autograd.backward(outputs, [torch.linspace(0.5, 1.5, o.numel()).reshape(o.shape) for o in outputs])
        wrapped = call(module)
        if wrapped is not module:
            wrapped.parameters = module.parameters
        split(wrapped, x)
        torch.testing.assert_close(x.grad, y.grad)
        for (name, p), q in zip(module.named_parameters(), twin.parameters()):
            assert (p.grad is None) == (q.grad is None), name
            if p.grad is not None:
                torch.testing.assert_close(p.grad, q.grad)


def test_two_parts_of_a_backward_multiply_as_often_as_the_whole():
    model = nn.Sequential(*[nn.Linear(6, 6) for _ in range(5)])
    counts = []
    for backward in (lambda x, y: y.sum().backward(), lambda x, y: split(model, x, y)):
        model.zero_grad()
        x = torch.ones(2, 6, requires_grad=True)
        y = model(x)  # not under the counter, whose hooks are in front of nodes
        with FlopCounterMode(display=False) as counter:
            backward(x, y)
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] > 0


class Skips(nn.Module):
    """An input, a parameter and a constant are used by several stages; one argument is a keyword."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Parameter(torch.randn(6, 6))
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.register_buffer("constant", torch.ones(6))

    def forward(self, x, scale=None, left_out=3.0):
        skip = x @ self.shared + self.constant
        x = self.first(skip) * left_out
        pipe_split()
        x = (x @ self.shared).relu()
        pipe_split()
        x = self.second(x) + skip
        return x * scale


def traced(rank, name):
    torch.manual_seed(0)
    model = Skips()
    x, y = batch()
    pipe = pipeline(copy.deepcopy(model), (x[:6],), {"scale": y[:6]})
    assert pipe.num_stages == 3
    expected = model(x, scale=y)
    torch.testing.assert_close(pipe(x, scale=y)[0], expected)
    loss_fn = nn.MSELoss(reduction="sum")
    loss_fn(expected, y).backward()
    stage = pipe.build_stage(rank, "cpu")
    schedule = getattr(schedules, name)(stage, 4, loss_fn=loss_fn, scale_grads=False)
    if rank == 0:
        schedule.step(x, scale=y)
    elif rank == 1:
        schedule.step()
    else:
        torch.testing.assert_close(schedule.step(target=y), expected)
    found = [None] * 3
    dist.all_gather_object(found, {n: p.grad for n, p in stage.submod.named_parameters()})
    sums = {}
    for gradients in found:
        for n, g in gradients.items():
            sums[n] = sums[n] + g if n in sums else g
    for n, p in model.named_parameters():
        torch.testing.assert_close(sums[n], p.grad)
    return sorted(stage.submod.state_dict())


@pytest.mark.parametrize("name", ["ScheduleGPipe", "Schedule1F1B"])
def test_a_module_is_cut(name):
    pool = Ranks(3, globals())
    try:
        assert pool.run(traced, name) == [["constant", "first.bias", "first.weight", "shared"], ["shared"], ["second.bias", "second.weight"]]
    finally:
        pool.close()


def test_cuts_before_and_behind_submodules():
    model = model_of(4)
    x, _ = batch()
    pipe = pipeline(model, (x,), split_spec={"1": SplitPoint.BEGINNING, "2": SplitPoint.END})
    assert [sorted({n.split(".")[0] for n in s.state_dict()}) for s in pipe.stages] == [["0"], ["1", "2"], ["3"]]
    torch.testing.assert_close(pipe(x)[0], model(x))
    assert "stage 2" in str(pipe) and pipe.info().num_stages == 3
    pipe_split()  # nothing outside of a trace


@pytest.mark.parametrize("act, error, words", [
    (lambda: pipeline(model_of(2), (batch()[0],), split_spec={"7": SplitPoint.END}), ValueError, "pipeline: split_spec: submodules that the forward calls were required; ['7'] are none."),
    (lambda: pipeline(model_of(2), (batch()[0],), split_spec={}, split_policy=print), ValueError, "Cannot specify both `split_spec` and `split_policy`."),
    (lambda: pipeline(model_of(2), (batch()[0],)).get_stage_module(1), ValueError, "Invalid stage index 1!"),
    (lambda: schedules.get_schedule_class("zigzag"), ValueError, "Unknown schedule 'zigzag'. The valid options are ['1F1B', 'GPipe',"),
    (lambda: split_args_kwargs_into_chunks((torch.ones(2),), {}, 3), ValueError, "Tensor size on chunking dimension is 2, smaller than the number of chunks 3."),
    (lambda: _Action.from_str("0Q1"), RuntimeError, "Invalid action string: 0Q1"),
    (lambda: _add_send_recv({0: [_Action.from_str("0B0")], 1: [_Action.from_str("1F0")]}, lambda s: s, 2), ValueError, "Malformed compute schedule"),
    (lambda: _validate_schedule({0: [_Action.from_str("0F0")]}, 1, 1, 1), AssertionError, "Invalid backward microbatches for stage 0"),
])  # fmt: skip
def test_errors(act, error, words):
    with pytest.raises(error, match=re.escape(words)):
        act()


def wrong(rank, which):
    size = dist.get_world_size()
    model = model_of(size)
    x, y = batch()
    stage = PipelineStage(model[rank], rank, size, "cpu")
    if which == "few":
        schedules.ScheduleGPipe(stage, 1)
    schedule = schedules.ScheduleGPipe(stage, 4, loss_fn=nn.MSELoss())
    arguments = [x] if rank == 0 else []
    if which == "target":
        schedule.step(*arguments)
    schedule.step(*arguments, target=y if rank else None)
    if which == "grad":
        with torch.no_grad():
            schedule.step(*arguments)
    if which == "shape":
        schedule.step(x[:20])
    if which == "dtype":
        schedule.step(x.double())
    if which == "index":
        PipelineStage(model[rank], size, size, "cpu")


@pytest.mark.parametrize("which, words", [
    ("few", "ValueError: Number of microbatches (1) must be greater than or equal to the number of stages (2)."),
    ("grad", "RuntimeError: step() requires gradients to be enabled for backward computation;"),
    ("index", "ValueError: Stage index 2 is out of range of 2"),
])  # fmt: skip
def test_errors_on_ranks(pair, which, words):
    with pytest.raises(RankError) as caught:
        pair.run(wrong, which)
    assert caught.value.errors[0].startswith(words)


def shapes(rank):
    """Errors of the first rank, which the second takes no part in."""
    x, y = batch()
    stage = PipelineStage(model_of(2)[rank], rank, 2, "cpu")
    schedule = schedules.ScheduleGPipe(stage, 4, loss_fn=nn.MSELoss())
    schedule.step(*([x] if rank == 0 else []), target=y if rank else None)
    words = []
    for bad in (x[:20], x.double()) if rank == 0 else ():
        try:
            schedule.step(bad)
        except RuntimeError as error:
            words.append(f"{type(error).__name__}: {error}")
    return words


def test_shapes_are_checked(pair):
    shape = "PipeliningShapeError: Stage 0 forward inputs 0 has a shape mismatch: expected (6, 6) actual (5, 6)"
    assert pair.run(shapes)[0] == [shape, "PipeliningShapeError: Stage 0 forward inputs 0 has a dtype mismatch: expected cresset.float32 actual cresset.float64"]


def with_parallel(rank):
    """Two pipelines of one rank each, whose gradients are averaged."""
    x, y = batch()
    part = slice(12 * rank, 12 * rank + 12)
    alone, group = dist.new_subgroups(group_size=1)[0], dist.group.WORLD
    torch.manual_seed(0)
    model = Block()
    parallel = DistributedDataParallel(copy.deepcopy(model), process_group=group)
    schedule = schedules.Schedule1F1B(PipelineStage(parallel, 0, 1, "cpu", group=alone), 3, loss_fn=nn.MSELoss())
    nn.MSELoss()(model(x), y).backward()
    schedule.step(x[part], target=y[part])
    for p, q in zip(parallel.module.parameters(), model.parameters()):
        torch.testing.assert_close(p.grad, q.grad)
    return True


def test_with_distributed_data_parallel(pair):
    assert pair.run(with_parallel) == [True, True]


def test_orders_of_actions():
    class Mock:
        group_size, group_rank = 4, 0

    for local in (2, 3):
        Mock.num_stages = 4 * local
        for kind in (schedules.ScheduleInterleaved1F1B, schedules.ScheduleLoopedBFS, schedules.ScheduleInterleavedZeroBubble):
            schedule = kind([Mock()] * local, 8)
            assert _validate_schedule(schedule.pipeline_order, 4, 4 * local, 8) == {s: s % 4 for s in range(4 * local)}
            order = _add_send_recv(schedule.pipeline_order, lambda s: s % 4, 4 * local)
            steps = _simulate_comms_compute(order, lambda s: s % 4, 4 * local)
            assert {r: [a for a in actions if a is not None] for r, actions in steps.items()} == order
    with pytest.raises(ValueError, match="requires the number of microbatches to be a multiple of the number of rounds"):
        schedules.ScheduleInterleaved1F1B([Mock()] * 2, 9)


def test_tables_of_actions(tmp_path):
    class Mock:
        group_size, group_rank, num_stages, stage_index = 1, 0, 1, 0

    order = {0: [_Action.from_str(t) for t in ("0F0", "0F1", "0B0", "0B1")]}
    assert _format_pipeline_order(order) == "       Rank 0\nStep 0 0F0\nStep 1 0F1\nStep 2 0B0\nStep 3 0B1\n"
    (tmp_path / "order.csv").write_text("0F0,0F1,,0B0,0B1\n")
    schedule = schedules._PipelineScheduleRuntime([Mock()], 2)
    schedule._load_csv(tmp_path / "order.csv")
    schedule._dump_csv(tmp_path / "again.csv")
    assert [a for a in schedule.pipeline_order[0] if a] == order[0] and (tmp_path / "again.csv").read_text().strip() == "0F0,0F1,,0B0,0B1"


def test_microbatches():
    x = torch.arange(12.0).reshape(4, 3)
    args, kwargs = split_args_kwargs_into_chunks((x, 5), {"y": x.t()}, 2, kwargs_chunk_spec={"y": TensorChunkSpec(1)})
    assert torch.equal(args[1][0], x[2:]) and args[1][1] == 5 and torch.equal(kwargs[1]["y"], x.t()[:, 2:])
    assert torch.equal(merge_chunks([{"y": k["y"]} for k in kwargs], {"y": TensorChunkSpec(1)})["y"], x.t())
    assert merge_chunks([1.0, 2.0, 4.0], sum_reducer) == 7.0 and torch.equal(merge_chunks([a[0] for a in args], None), x)
    assert TensorChunkSpec.from_dict({"y": 1})["y"].split_dim == 1 and str(TensorChunkSpec.from_tuple((0, 2))[1]) == "TensorChunkSpec(2)"
