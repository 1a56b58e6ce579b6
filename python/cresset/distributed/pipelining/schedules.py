"""Schedules: in which order ranks do forwards and backwards of microbatches. Each gives lists of actions, which one runtime carries out."""

import csv
import warnings
from abc import ABC, abstractmethod

import cresset

from ._actions import (  # noqa: F401  programs and tests take them from here
    B, BACKWARD_INPUT, BACKWARD_WEIGHT, F, FORWARD, FULL_BACKWARD, I, RECV_B, RECV_F, RESHARD, SEND_B, SEND_F, UNSHARD, W, _Action, _add_send_recv,
    _add_unshard_reshard, _ComputationType, _format_pipeline_order, _merge_bw, _simulate_comms_compute, _validate_schedule,
)  # fmt: skip
from ._v_schedules import dual_pipe, zero_bubble
from .microbatch import merge_chunks, split_args_kwargs_into_chunks

__all__ = [
    "PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "get_schedule_class",
]

_COMPUTES = (F, B, I, W)


class _PipelineSchedule(ABC):
    """What all schedules have: microbatches, the loss, and the runtime."""

    def __init__(self, n_microbatches, loss_fn=None, args_chunk_spec=None, kwargs_chunk_spec=None, output_merge_spec=None, scale_grads=True):
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec, self._output_merge_spec = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        self._has_backward = loss_fn is not None
        self._set_up = None  # whether for a backward

    @abstractmethod
    def step(self, *args, target=None, losses=None, return_outputs=True, **kwargs):
        """One batch through the pipeline."""

    # --- batches

    def _split_inputs(self, args, kwargs):
        if args or kwargs:
            return split_args_kwargs_into_chunks(args, kwargs or {}, self._n_microbatches, self._args_chunk_spec, self._kwargs_chunk_spec)
        return [()] * self._n_microbatches, [{}] * self._n_microbatches

    def _merge_outputs(self, output_chunks):
        return merge_chunks(output_chunks, self._output_merge_spec)

    def _check_inputs(self, name, values):
        if values is not None and len(values) != self._n_microbatches:
            raise ValueError(f"Expecting {self._n_microbatches} {name} but got {len(values)}")

    # --- the runtime

    def _run(self, stages, actions, args, kwargs, target, losses, return_outputs, loss_kwargs, has_backward):
        """Carry out this rank's actions. Inputs come at the first stage, targets at the last, whose rank returns the outputs."""
        arg_mbs, kwarg_mbs = self._split_inputs(args, kwargs)
        last = next((s for s in stages.values() if s.is_last), None)
        targets = None
        if target is not None:
            targets = list(cresset.tensor_split(target, self._n_microbatches))
            self._check_inputs("target_mbs", targets)
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        self._prepare(stages, arg_mbs, kwarg_mbs, has_backward)
        batch = _Batch(self, stages, arg_mbs, kwarg_mbs, targets, loss_kwargs or {}, has_backward)
        try:
            with cresset.set_grad_enabled(has_backward):
                batch.run([a for a in actions if a is not None and a.computation_type in _COMPUTES and (has_backward or a.computation_type == F)])
            if losses is not None and last is not None and last.losses:
                losses[:] = [last.losses[n] for n in range(self._n_microbatches)]
            if has_backward and self.scale_grads:
                for stage in stages.values():
                    stage.scale_grads(self._n_microbatches)
            if last is not None and return_outputs and last.output_chunks:
                return self._merge_outputs([last.output_chunks[n] for n in range(self._n_microbatches)])
            return None
        finally:
            for stage in stages.values():
                stage.clear_runtime_states()

    def _prepare(self, stages, arg_mbs, kwarg_mbs, has_backward):
        if self._set_up == has_backward:
            return
        for index in sorted(stages):
            stage = stages[index]
            before = stages.get(index - 1)
            if before is not None:
                stage.neighbour_outputs = before.outputs
            stage.set_up(arg_mbs[0], kwarg_mbs[0], has_backward)
        self._set_up = has_backward


class _Batch:
    """One batch on this rank."""

    def __init__(self, schedule, stages, arg_mbs, kwarg_mbs, targets, loss_kwargs, has_backward):
        self.schedule, self.stages, self.arg_mbs, self.kwarg_mbs = schedule, stages, arg_mbs, kwarg_mbs
        self.targets, self.loss_kwargs, self.has_backward = targets, loss_kwargs, has_backward
        self.sent, self.coming = [], {}

    def run(self, actions):
        final = {}
        for n, action in enumerate(actions):
            if action.computation_type in (B, W):
                final[action.stage_index] = n
        for n, action in enumerate(actions):
            for following in actions[n : n + 2]:  # what the next action needs may come meanwhile
                self._begin_receive(following)
            self._arrive(action)
            self._compute(action, final.get(action.stage_index) == n)
        for work in self.sent:
            work.wait()

    def _begin_receive(self, action):
        if action in self.coming or action.computation_type == W:
            return
        stage = self.stages[action.stage_index]
        begin = stage.begin_receive_forward if action.computation_type == F else stage.begin_receive_backward
        self.coming[action] = begin(action.microbatch_index)

    def _arrive(self, action):
        waiting = self.coming.pop(action, None)
        if waiting is None:
            return
        buffers, works = waiting
        for work in works:
            work.wait()
        stage = self.stages[action.stage_index]
        (stage.arrived_forward if action.computation_type == F else stage.arrived_backward)(action.microbatch_index, buffers)

    def _compute(self, action, is_final):
        index, kind, microbatch = action
        stage = self.stages[index]
        if kind == F:
            output = stage.forward_one_chunk(microbatch, self.arg_mbs[microbatch], self.kwarg_mbs[microbatch])
            if stage.is_last and self.schedule._loss_fn is not None and self.targets is not None:
                stage.losses[microbatch] = self.schedule._loss_fn(output, self.targets[microbatch], **self.loss_kwargs)
            self.sent += stage.send_forward(microbatch, self.stages.get(index + 1))
            if not self.has_backward:
                stage.args.pop(microbatch), stage.results.pop(microbatch)
        elif kind == W:
            stage.backward_weight_one_chunk(microbatch, is_final)
        else:
            if stage.is_last and microbatch not in stage.losses:
                raise RuntimeError("Schedule: a target was required on the rank of the last stage, for the loss; none was given.")
            if kind == I and not stage.splits_backward:
                raise NotImplementedError("Schedule: backwards in two parts are not possible for stages in DistributedDataParallel.")
            stage.backward_one_chunk(microbatch, stage.losses.get(microbatch), kind, is_final)
            self.sent += stage.send_backward(microbatch, self.stages.get(index - 1))


class PipelineScheduleSingle(_PipelineSchedule):
    """Schedules of one stage a rank. See ScheduleGPipe."""

    def __init__(self, stage, n_microbatches, loss_fn=None, args_chunk_spec=None, kwargs_chunk_spec=None, output_merge_spec=None, scale_grads=True):
        super().__init__(n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads)
        self._stage, self._num_stages = stage, stage.num_stages
        if n_microbatches < self._num_stages:
            raise ValueError(f"Number of microbatches ({n_microbatches}) must be greater than or equal to the number of stages ({self._num_stages}).")
        self.pipeline_order = self._get_pipeline_order()

    def _get_pipeline_order(self):
        return {rank: self._actions(rank) for rank in range(self._num_stages)}

    def _actions(self, stage):
        """What a stage does, in order."""
        raise NotImplementedError(f"{type(self).__name__} has no order of actions")

    def step(self, *args, target=None, losses=None, return_outputs=True, loss_kwargs=None, **kwargs):
        """One batch: forwards, and backwards where there is a loss_fn.

        The rank of the first stage gives the arguments, that of the last the `target`, and gets the outputs and, in the list `losses`, the losses
        of microbatches; the others give nothing and get None.
        """
        if self._has_backward and not cresset.is_grad_enabled():
            raise RuntimeError("step() requires gradients to be enabled for backward computation; it should not be used under torch.no_grad() context. Please call eval() instead.")
        stages = {self._stage.stage_index: self._stage}
        return self._run(stages, self.pipeline_order[self._stage.stage_index], args, kwargs, target, losses, return_outputs, loss_kwargs, self._has_backward)

    def eval(self, *args, target=None, losses=None, return_outputs=True, loss_kwargs=None, **kwargs):
        """The forwards of one batch, as step() without gradients."""
        stages = {self._stage.stage_index: self._stage}
        return self._run(stages, self.pipeline_order[self._stage.stage_index], args, kwargs, target, losses, return_outputs, loss_kwargs, False)


class _ScheduleForwardOnly(PipelineScheduleSingle):
    """Forwards only."""

    def _actions(self, stage):
        return [_Action(stage, F, n) for n in range(self._n_microbatches)]

    def step(self, *args, target=None, losses=None, **kwargs):
        if target is not None or losses is not None:
            raise RuntimeError("Forward-only schedule does not support loss computation")
        return self.eval(*args, **kwargs)


class ScheduleGPipe(PipelineScheduleSingle):
    """All forwards, then all backwards: Huang et al., "GPipe" (2018).

    `n_microbatches` parts of each batch go through the pipeline; `loss_fn(output, target)` is that of a microbatch, and without one there is no
    backward. `args_chunk_spec`, `kwargs_chunk_spec`: how arguments are cut (TensorChunkSpec), `output_merge_spec`: how outputs come together.
    `scale_grads` divides gradients by the number of microbatches, for losses that are means.
    """

    def _actions(self, stage):
        numbers = range(self._n_microbatches)
        return [_Action(stage, F, n) for n in numbers] + [_Action(stage, B, n) for n in numbers]


class Schedule1F1B(PipelineScheduleSingle):
    """A forward and a backward in turns, once the pipeline is full: Narayanan et al., "PipeDream" (2019). Arguments as for ScheduleGPipe.

    A stage holds as many microbatches as there are stages behind it, and its own.
    """

    def _actions(self, stage):
        count = self._n_microbatches
        ahead = min(count, self._num_stages - stage)
        actions = [_Action(stage, F, n) for n in range(ahead)]
        for n in range(count):
            actions.append(_Action(stage, B, n))
            if n + ahead < count:
                actions.append(_Action(stage, F, n + ahead))
        return actions


class PipelineScheduleMulti(_PipelineSchedule):
    """Schedules of several stages a rank. See ScheduleInterleaved1F1B."""

    def __init__(self, stages, n_microbatches, loss_fn=None, args_chunk_spec=None, kwargs_chunk_spec=None, output_merge_spec=None, use_full_backward=None,
                 scale_grads=True):  # fmt: skip
        super().__init__(n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads)
        if use_full_backward is not None:
            warnings.warn("Deprecation warning: 'use_full_backward' is no longer supported. Simply stop passing it, and everything should still work fine.", stacklevel=2)
        self._stages, self._num_stages = stages, stages[0].num_stages
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank
        self.n_local_stages = len(stages)
        self.pipeline_order = {}

    def _check_stages(self):
        """The actions say which rank has which stage."""
        rank_of = _validate_schedule(self.pipeline_order, self.pp_group_size, self._num_stages, self._n_microbatches)
        for stage in self._stages:
            if rank_of[stage.stage_index] != self.rank:
                raise ValueError(f"Stage {stage.stage_index} is on rank {self.rank}; the schedule has it on rank {rank_of[stage.stage_index]}.")
            stage.stage_index_to_group_rank = rank_of

    def _load_csv(self, filename, format="compute_only"):
        """Take the actions of a file, a row for each rank: "0F0, 1F0, …, 1B0". Messages in it ("compute_comms") are made anew."""
        if format not in ("compute_only", "compute_comms"):
            raise NotImplementedError(f"{format=} is not implemented")
        with open(filename, newline="") as file:
            rows = {rank: [_Action.from_str(text) for text in row] for rank, row in enumerate(csv.reader(file))}
        self.pipeline_order = {rank: [a for a in row if a is None or a.computation_type in _COMPUTES] for rank, row in rows.items()}
        self._check_stages()

    def _dump_csv(self, filename, format="compute_only"):
        """Write the actions of all ranks, a row for each; with their messages as "compute_comms"."""
        order = self.pipeline_order
        if format == "compute_comms":
            rank_of = self._stages[0].stage_index_to_group_rank
            order = _add_send_recv(order, lambda stage: rank_of[stage], self._num_stages)
        with open(filename, "w", newline="") as file:
            csv.writer(file).writerows(["" if a is None else repr(a) for a in order[rank]] for rank in order)

    def step(self, *args, target=None, losses=None, return_outputs=True, loss_kwargs=None, **kwargs):
        """One batch; as PipelineScheduleSingle.step."""
        if self._has_backward and not cresset.is_grad_enabled():
            raise RuntimeError("step() requires gradients to be enabled for backward computation; it should not be used under torch.no_grad() context. Please call eval() instead.")
        stages = {stage.stage_index: stage for stage in self._stages}
        return self._run(stages, self.pipeline_order[self.rank], args, kwargs, target, losses, return_outputs, loss_kwargs, self._has_backward)

    def eval(self, *args, target=None, losses=None, return_outputs=True, loss_kwargs=None, **kwargs):
        """The forwards of one batch, as step() without gradients."""
        stages = {stage.stage_index: stage for stage in self._stages}
        return self._run(stages, self.pipeline_order[self.rank], args, kwargs, target, losses, return_outputs, loss_kwargs, False)


class _PipelineScheduleRuntime(PipelineScheduleMulti):
    """Carries out actions from a file, `_load_csv`."""


class ScheduleLoopedBFS(_PipelineScheduleRuntime):
    """All microbatches through one stage, then through the next of the rank: Lamy-Poirier, "Breadth-First Pipeline Parallelism" (2022)."""

    def __init__(self, stages, n_microbatches, loss_fn=None, output_merge_spec=None, scale_grads=True):
        super().__init__(stages, n_microbatches, loss_fn=loss_fn, output_merge_spec=output_merge_spec, scale_grads=scale_grads)
        for rank in range(self.pp_group_size):
            mine, numbers = range(rank, self._num_stages, self.pp_group_size), range(n_microbatches)
            forwards = [_Action(stage, F, n) for stage in mine for n in numbers]
            self.pipeline_order[rank] = forwards + [_Action(stage, B, n) for stage in reversed(mine) for n in reversed(numbers)]


def _interleaved(rank, size, local, count, per_round, warmup, split=0):
    """The actions of a rank: `warmup` forwards, forward and backward in turns, then backwards. Microbatches go in rounds of `per_round` through its stages.

    With `split`, a backward is for inputs only, and that for weights follows `split` backwards later.
    """
    def at(n, reverse):
        place = n // per_round % local
        microbatch = n // (per_round * local) * per_round + n % per_round
        return ((local - 1 - place) if reverse else place) * size + rank, microbatch

    total, actions, weights = local * count, [], []
    for n in range(total + warmup):
        if n < total:
            stage, microbatch = at(n, False)
            actions.append(_Action(stage, F, microbatch))
        if n >= warmup:
            stage, microbatch = at(n - warmup, True)
            actions.append(_Action(stage, I if split else B, microbatch))
            if split:
                weights.append(_Action(stage, W, microbatch))
                if len(weights) > split - 1 and (n >= total or len(weights) > split):
                    actions.append(weights.pop(0))
    return actions + weights


class ScheduleInterleaved1F1B(_PipelineScheduleRuntime):
    """Forward and backward in turns with several stages a rank: Narayanan et al., "Efficient Large-Scale Language Model Training" (2021).

    Rank r of n has the stages r, r + n, r + 2n, …. ValueError where the microbatches do not make whole rounds. Arguments as for ScheduleGPipe.
    """

    _split = False

    def __init__(self, stages, n_microbatches, loss_fn=None, args_chunk_spec=None, kwargs_chunk_spec=None, output_merge_spec=None, scale_grads=True):
        super().__init__(
            stages, n_microbatches, loss_fn=loss_fn, args_chunk_spec=args_chunk_spec, kwargs_chunk_spec=kwargs_chunk_spec,
            output_merge_spec=output_merge_spec, scale_grads=scale_grads,
        )  # fmt: skip
        self.number_of_rounds = max(1, n_microbatches // self.pp_group_size)
        self.microbatches_per_round = n_microbatches // self.number_of_rounds
        if n_microbatches % self.number_of_rounds != 0:
            raise ValueError(f"{type(self).__name__} requires the number of microbatches to be a multiple of the number of rounds ({self.number_of_rounds}), but got {n_microbatches}.")
        self.pipeline_order = {rank: self._calculate_single_rank_operations(rank) for rank in range(self.pp_group_size)}

    def _calculate_single_rank_operations(self, rank):
        size, local, count = self.pp_group_size, self.n_local_stages, self._n_microbatches
        factor = 1 if self._split else 2
        warmup = min((local - 1) * self.microbatches_per_round + factor * (size - 1 - rank), count * local)
        return _interleaved(rank, size, local, count, self.microbatches_per_round, warmup, size if self._split else 0)


class ScheduleInterleavedZeroBubble(ScheduleInterleaved1F1B):
    """Backwards for weights where ranks would wait: Qi et al., "Zero Bubble Pipeline Parallelism" (2023). Arguments as for ScheduleInterleaved1F1B."""

    _split = True

    def __init__(self, stages, *args, **kwargs):
        super().__init__(stages, *args, **kwargs)
        rank_of = {stage: stage % self.pp_group_size for stage in range(self._num_stages)}
        _add_send_recv(self.pipeline_order, lambda stage: rank_of[stage], self._num_stages)  # refuses orders that wait for each other


class _ScheduleV(_PipelineScheduleRuntime):
    """Two stages a rank in a V: rank r of n has r and 2n - 1 - r, so that the first rank has the first and the last stage, inputs and targets."""

    _name = ""

    def __init__(self, stages, n_microbatches, loss_fn=None, args_chunk_spec=None, kwargs_chunk_spec=None, output_merge_spec=None, scale_grads=True):
        super().__init__(
            stages, n_microbatches, loss_fn=loss_fn, args_chunk_spec=args_chunk_spec, kwargs_chunk_spec=kwargs_chunk_spec,
            output_merge_spec=output_merge_spec, scale_grads=scale_grads,
        )  # fmt: skip
        if self.n_local_stages != 2:
            raise ValueError(f"{self._name} requires exactly 2 stages per rank, but got {self.n_local_stages}.")
        self.pipeline_order = self._order(self.pp_group_size)
        self._check_stages()

    def _order(self, size):
        """Rank -> actions."""
        raise NotImplementedError(f"{type(self).__name__} has no order of actions")


class ScheduleZBVZeroBubble(_ScheduleV):
    """No waits where forwards and both parts of backwards take one time: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 6.

    Each rank has two stages in a V: rank r of n has r and 2n - 1 - r. Backwards for weights fill what would be waits. ValueError for other numbers or places of
    stages. Arguments as for ScheduleGPipe; the first rank gives inputs and targets and gets outputs and losses.
    """

    _name = "ZBV"

    def _order(self, size):
        return zero_bubble(size, self._n_microbatches)


class ScheduleDualPipeV(_ScheduleV):
    """Forwards of one direction beside backwards of the other: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), cut in half to a V.

    Stages and arguments as for ScheduleZBVZeroBubble; ValueError for fewer microbatches than stages. The two of a pair run one after the other, as a
    processor has no second engine for them.
    """

    _name = "DualPipeV"

    def _order(self, size):
        if self._n_microbatches < self._num_stages:
            raise ValueError(f"DualPipeV requires at least as many microbatches as stages, but got {self._n_microbatches} microbatches and {self._num_stages} stages.")
        return {rank: dual_pipe(rank, size, self._n_microbatches) for rank in range(size)}


_CLASSES = {
    kind.__name__.removeprefix("Schedule").lower(): kind for kind in (
        Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble, ScheduleLoopedBFS, ScheduleZBVZeroBubble,
        ScheduleDualPipeV, PipelineScheduleSingle, PipelineScheduleMulti,
    )
}  # fmt: skip


def get_schedule_class(schedule_name):
    """The class of a name such as "1F1B" or "GPipe", in large or small letters. ValueError for others."""
    kind = _CLASSES.get(schedule_name.lower())
    if kind is None:
        raise ValueError(f"Unknown schedule '{schedule_name}'. The valid options are {[k.__name__.removeprefix('Schedule') for k in _CLASSES.values()]}")
    return kind
