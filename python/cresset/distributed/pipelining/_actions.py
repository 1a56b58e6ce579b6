"""What ranks do in a schedule: actions, lists of them, and passes over these lists."""

import re
from enum import Enum
from typing import NamedTuple, Optional

__all__ = []


class _ComputationType(str, Enum):
    """F: forward. B: backward, of which I is the part for inputs and W that for weights. The rest moves tensors or weights."""

    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    FULL_BACKWARD = "B"

    __hash__ = str.__hash__  # sets of actions are large

    def __str__(self):
        return self.value

    @staticmethod
    def from_str(action):
        """RuntimeError for a text that is none."""
        try:
            return _ComputationType(action)
        except ValueError:
            raise RuntimeError(f"Invalid computation type {action}") from None


FORWARD = F = _ComputationType.FORWARD
BACKWARD_INPUT = I = _ComputationType.BACKWARD_INPUT  # noqa: E741  the letter of schedules
BACKWARD_WEIGHT = W = _ComputationType.BACKWARD_WEIGHT
FULL_BACKWARD = B = _ComputationType.FULL_BACKWARD
UNSHARD, RESHARD = _ComputationType.UNSHARD, _ComputationType.RESHARD
SEND_F, RECV_F, SEND_B, RECV_B = (_ComputationType(name) for name in ("SEND_F", "RECV_F", "SEND_B", "RECV_B"))

_FORM = re.compile(r"(\d+)(F|I|B|W|UNSHARD|RESHARD|SEND_F|RECV_F|SEND_B|RECV_B)(\d*)")


class _Action(NamedTuple):
    """A step of one stage for one microbatch; its text is "2F3"."""

    stage_index: int
    computation_type: _ComputationType
    microbatch_index: Optional[int] = None

    def __repr__(self):
        return f"{self.stage_index}{self.computation_type}{'' if self.microbatch_index is None else self.microbatch_index}"

    @staticmethod
    def from_str(action_string):
        """The action of a text; None for an empty one. RuntimeError for any other."""
        text = action_string.strip()
        if not text:
            return None
        match = _FORM.fullmatch(text)
        if not match:
            raise RuntimeError(f"Invalid action string: {action_string}, should be formatted as [stage][action type][(microbatch)] e.g. 2F0")
        stage, kind, microbatch = match.groups()
        return _Action(int(stage), _ComputationType(kind), int(microbatch) if microbatch else None)


def _format_pipeline_order(pipeline_order, error_step_number=None):
    """A table of the actions of all ranks by step; the step of an error is marked."""
    order = {rank: [str(a) if a is not None else "" for a in actions] for rank, actions in pipeline_order.items()}
    steps = max(map(len, order.values()), default=0)
    rows = [["", *(f"Rank {rank}" for rank in order)]]
    for step in range(steps):
        cells = [actions[step] if step < len(actions) else "" for actions in order.values()]
        mark = " <-- ERROR HERE" if step == error_step_number else ""
        rows.append([f"Step {step:0{len(str(steps - 1))}}", *cells[:-1], cells[-1] + mark])
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join(" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows) + "\n"


def _validate_schedule(actions, pp_group_size, num_stages, num_microbatches):
    """The rank of each stage. AssertionError for a schedule that leaves a forward or backward out, or does one twice or on two ranks."""
    assert len(actions) == pp_group_size, f"Schedule has incorrect number of ranks - expected {pp_group_size}, actual {len(actions)}"
    done, rank_of = {}, {}
    for rank in range(pp_group_size):
        assert rank in actions, f"Schedule is missing actions for rank {rank}"
        for action in actions[rank]:
            if action is None or action.computation_type not in (F, B, I, W):
                continue
            stage, kind, microbatch = action
            assert rank_of.setdefault(stage, rank) == rank, f"Stage {stage} is assigned to both rank {rank} and rank {rank_of[stage]}"
            seen = done.setdefault((stage, kind), set())
            assert microbatch not in seen, f"{action} is in the schedule twice"
            if kind != F:
                before = I if kind == W else F
                assert microbatch in done.get((stage, before), ()), f"Running {action} before {_Action(stage, before, microbatch)}"
            seen.add(microbatch)
    for stage in range(num_stages):
        count = {kind: len(done.get((stage, kind), ())) for kind in (F, B, I, W)}
        assert count[F] == num_microbatches, f"Got {count[F]} F microbatches for stage {stage}, expected {num_microbatches}"
        for half in (I, W):
            total = count[B] + count[half]
            assert total == num_microbatches, f"Invalid backward microbatches for stage {stage}: B={count[B]} {half}={count[half]}, expected {num_microbatches}"
    return rank_of


def _merge_bw(compute_actions):
    """I directly before W of the same stage and microbatch is one B."""
    merged = []
    waiting = list(compute_actions)
    while waiting:
        action = waiting.pop(0)
        if action is None:
            continue
        following = next((a for a in waiting if a is not None), None)
        same = following is not None and (action.stage_index, action.microbatch_index) == (following.stage_index, following.microbatch_index)
        if action.computation_type == I and same and following.computation_type == W:
            merged.append(_Action(action.stage_index, B, action.microbatch_index))
            waiting.remove(following)
        else:
            merged.append(action)
    return merged


def _add_unshard_reshard(compute_actions, max_active_stages=3):
    """Weights of sharded stages are brought before they are used and let go afterwards; at most `max_active_stages` are here."""
    result, active = [], []
    for n, action in enumerate(compute_actions):
        if action is None:
            continue
        wanted = []
        for upcoming in compute_actions[n:]:
            if upcoming is not None and upcoming.stage_index not in wanted:
                wanted.append(upcoming.stage_index)
        wanted = wanted[:max_active_stages]
        for stage in [s for s in active if s not in wanted]:
            active.remove(stage)
            result.append(_Action(stage, RESHARD, None))
        for stage in [s for s in wanted if s not in active]:
            active.append(stage)
            result.append(_Action(stage, UNSHARD, None))
        result.append(action)
    return result + [_Action(stage, RESHARD, None) for stage in active]


def _messages(action, stage_to_rank, num_stages):
    """(what the rank sends after an action, what the other rank receives), or None."""
    stage, kind, microbatch = action
    if kind == F and stage != num_stages - 1 and stage_to_rank(stage + 1) != stage_to_rank(stage):
        return _Action(stage, SEND_F, microbatch), _Action(stage + 1, RECV_F, microbatch)
    if kind in (B, I) and stage != 0 and stage_to_rank(stage - 1) != stage_to_rank(stage):
        return _Action(stage, SEND_B, microbatch), _Action(stage - 1, RECV_B, microbatch)
    return None


def _is_ready(action, done, num_stages):
    """Has the rank, which has done these actions, what a forward or backward needs?"""
    stage, kind, microbatch = action
    if kind == F:
        return stage == 0 or _Action(stage, RECV_F, microbatch) in done or _Action(stage - 1, F, microbatch) in done
    if kind in (B, I):
        above = (_Action(stage + 1, each, microbatch) for each in (B, I))
        return stage == num_stages - 1 or _Action(stage, RECV_B, microbatch) in done or any(a in done for a in above)
    return True


def _add_send_recv(compute_actions, stage_to_rank, num_stages):
    """The actions of all ranks with messages: sent after what makes them, received when they are sent. ValueError for lists that wait for each other."""
    waiting = {rank: list(actions) for rank, actions in compute_actions.items()}
    result = {rank: [] for rank in waiting}
    done = {rank: set() for rank in waiting}

    def add(rank, action):
        result[rank].append(action)
        done[rank].add(action)

    while any(waiting.values()):
        progress = False
        for rank in sorted(waiting):
            if not waiting[rank]:
                continue
            action = waiting[rank][0]
            if action is not None:
                if not _is_ready(action, done[rank], num_stages):
                    continue
                add(rank, action)
                messages = _messages(action, stage_to_rank, num_stages)
                if messages:
                    add(rank, messages[0])
                    add(stage_to_rank(messages[1].stage_index), messages[1])
            waiting[rank].pop(0)
            progress = True
        if not progress:
            raise ValueError(f"Malformed compute schedule, can't schedule sends/recvs: {waiting}")
    return result


_SENT_BY = {RECV_F: (-1, SEND_F), RECV_B: (1, SEND_B)}


def _simulate_comms_compute(pipeline_order, stage_to_rank, num_stages):
    """Rank -> what it does at each step, None where it waits; a message is received in the step that it is sent in. ValueError when all wait."""
    waiting = {rank: [a for a in actions if a is not None] for rank, actions in pipeline_order.items()}
    steps = {rank: [] for rank in waiting}
    done = {rank: set() for rank in waiting}

    def ready(rank, action):
        stage, kind, microbatch = action
        if kind in _SENT_BY:
            offset, sent = _SENT_BY[kind]
            return _Action(stage + offset, sent, microbatch) in done[stage_to_rank(stage + offset)]
        if kind == SEND_F:
            return _Action(stage, F, microbatch) in done[rank]
        if kind == SEND_B:
            return any(_Action(stage, each, microbatch) in done[rank] for each in (B, I))
        return _is_ready(action, done[rank], num_stages)

    while any(waiting.values()):
        chosen = {}
        for rank, actions in waiting.items():
            if actions and actions[0].computation_type not in _SENT_BY and ready(rank, actions[0]):
                chosen[rank] = actions[0]
        for rank, action in chosen.items():
            done[rank].add(action)
        for rank, actions in waiting.items():  # those that receive see what is sent now
            if actions and actions[0].computation_type in _SENT_BY and ready(rank, actions[0]):
                chosen[rank] = actions[0]
                done[rank].add(actions[0])
        if not chosen:
            raise ValueError("Schedule is not progressing:\n" + _format_pipeline_order(waiting))
        for rank in waiting:
            if rank in chosen:
                steps[rank].append(waiting[rank].pop(0))
            elif waiting[rank]:
                steps[rank].append(None)
    return steps
