"""From what the library recorded to events: the tree of calls, memory by call, operations counted from shapes."""

import math
import sys

from . import _profiler_state
from .profiler_util import MEMORY_EVENT_NAME, DeviceType, EventList, FunctionEvent

# The range over the part of a session that is not collected: what begins inside of it is left out.
PAUSE = "profiler: not collected"

_USER_SCOPE = 7
_STEP = "ProfilerStep#"


def _matmul(shapes, values):
    *batch, n, k = shapes[0]
    return 2 * math.prod(batch) * n * k * shapes[1][-1]


def _with_bias(shapes, values):
    return _matmul(shapes[1:], values[1:])


def _convolution(shapes, values):
    (batch, _, *size), (out_channels, channels_of_group, *kernel) = shapes[:2]
    _, _, _, stride, padding, dilation, _ = values
    if isinstance(padding, str):
        return 0
    per_dim = lambda v: list(v) * (len(size) if len(v) == 1 else 1)  # noqa: E731
    out = [
        (s + 2 * p - d * (k - 1) - 1) // t + 1
        for s, k, t, p, d in zip(size, kernel, per_dim(stride), per_dim(padding), per_dim(dilation))
    ]
    return 2 * batch * math.prod(out) * out_channels * channels_of_group * math.prod(kernel)


# Floating-point operations of a call, from the shapes and values of its inputs. Operators inside of others are not counted twice:
# only these names count.
_FLOPS = {
    "aten::mm": _matmul, "aten::bmm": _matmul, "aten::addmm": _with_bias, "aten::baddbmm": _with_bias, "aten::conv2d": _convolution,
    "aten::mul": lambda shapes, values: math.prod(shapes[0]), "aten::add": lambda shapes, values: math.prod(shapes[0]),
}  # fmt: skip


def _flops(name, shapes, values):
    count = _FLOPS.get(name)
    try:
        return count(shapes, values) if count else 0
    except (
        IndexError,
        TypeError,
        ValueError,
    ):  # an unusual call: a batch without dimension, numbers in place of tensors
        return 0


# Frames that say how the call was made, not by whom.
_MACHINERY = (
    "cresset/autograd/profiler.py",
    "cresset/nn/modules/_hooks.py",
    "cresset/optim/optimizer.py",
    "cresset/autograd/grad_mode.py",
)


def _short(frame):
    """A frame without the directory that Python found its module in."""
    best = max((len(p) for p in sys.path if p and frame.startswith(p.rstrip("/") + "/")), default=-1)
    return frame[best + 1 :].lstrip("/") if best >= 0 else frame


def _event_of(record, number, thread, os_thread, forward_threads, use_device, with_flops, with_shapes, short):
    name, overload, begin, end, _, scope, sequence, forward, device_ms, device, args, inputs, stack, record_id = record
    values = [i[3] for i in inputs]
    args, keywords = ("", args) if isinstance(args, dict) else (args, {})
    event = FunctionEvent(
        number, _STEP[:-1] + "*" if name.startswith(_STEP) else name, thread, begin / 1e3, end / 1e3, overload,
        forward_threads.get(forward, 0) if sequence >= 0 else 0,
        [i[0] for i in inputs] if with_shapes else (), [f for f in map(short, stack) if not f.startswith(_MACHINERY)], scope, use_device, sequence_nr=sequence,
        flops=_flops(name, [i[0] for i in inputs], values) if with_flops else 0, trace_name=name,
        concrete_inputs=values if with_shapes else (), is_user_annotation=scope == _USER_SCOPE,
        input_dtypes=[i[2] for i in inputs] if with_shapes else (), input_strides=[i[1] for i in inputs] if with_shapes else (), args=args,
        os_thread=os_thread,
    )  # fmt: skip
    event.kwinputs, event.record_id = keywords, record_id
    if scope == _USER_SCOPE and with_shapes and args:  # the text is an input
        event.structured_input_shapes, event.input_shapes, event.concrete_inputs, event.input_dtypes = [[]], [[]], [None], [""]
    return event, (device, device_ms * 1e3)


def _memory_event(change, number, thread, os_thread, use_device):
    time, nbytes, address, device, _, total = change
    on_cpu = device.type == "cpu"
    event = FunctionEvent(
        number, MEMORY_EVENT_NAME, thread, time / 1e3, time / 1e3, cpu_memory_usage=nbytes if on_cpu else 0,
        device_memory_usage=0 if on_cpu else nbytes, device_type=DeviceType.CPU if on_cpu else DeviceType.PrivateUse1,
        device_index=-1 if on_cpu else device.index, use_device=use_device, os_thread=os_thread,
    )  # fmt: skip
    event.address, event.total = address, total
    return event


def _add_memory(events, change, parent):
    on_cpu = change[3].type == "cpu"
    while parent is not None:
        if on_cpu:
            parent.cpu_memory_usage += change[1]
        else:
            parent.device_memory_usage += change[1]
        parent = parent.cpu_parent


def _attach_kernels(events, measured):
    """Time on the device belongs to the innermost call that it was measured for."""
    inside = [0.0] * len(events)
    index = {id(e): i for i, e in enumerate(events)}
    for i in reversed(range(len(events))):
        device, us = measured[i]
        parent = events[i].cpu_parent
        if us >= 0:
            if (own := us - inside[i]) > 0:
                events[i].append_kernel(events[i].name, device, own)
        if parent is not None:
            inside[index[id(parent)]] += us if us >= 0 else inside[i]


def _take_stacks_of_forward(events):
    """Backward steps happen where the forward operator was called, as far as a reader is concerned."""
    stacks = {}
    for e in events:
        if e.sequence_nr >= 0 and not e.fwd_thread and e.stack:
            stacks.setdefault((e.thread, e.sequence_nr), e.stack)
    for e in events:
        root = e
        while root is not None and not root.fwd_thread:
            root = root.cpu_parent
        if root is not None and (stack := stacks.get((root.fwd_thread, root.sequence_nr))):
            e.stack = stack


def _without_pauses(threads):
    """The records of a session less those that began while collection was switched off."""
    pauses = [(r[2], r[3]) for thread in threads for r in thread[3] if r[0] == PAUSE]
    if not pauses:
        return threads

    def left_out(time):
        return any(begin <= time <= end for begin, end in pauses)

    out = []
    for number, os_thread, autograd, records, changes in threads:
        place, kept = (
            {-1: -1},
            [],
        )  # by position: the position of the record, or of the one around it when it is left out
        for i, r in enumerate(records):
            if left_out(r[2]):
                place[i] = place[r[4]]
            else:
                place[i] = len(kept)
                kept.append((*r[:4], place[r[4]], *r[5:]))
        out.append((number, os_thread, autograd, kept, [(*c[:4], place[c[4]], *c[5:]) for c in changes if not left_out(c[0])]))
    return out


def without_values(threads):
    """The threads of a session without the values of inputs."""
    return [
        (*thread[:3], [(*r[:11], [(*i[:3], None, i[4]) for i in r[11]], *r[12:]) for r in thread[3]], thread[4]) for thread in threads
    ]  # fmt: skip


def with_totals(threads):
    """The threads of a session, each change of memory with what the device holds behind it: of all memory that was taken while a profile looked,
    in this session or an earlier one. What was taken before is not in it when it goes."""
    blocks, totals, behind = _profiler_state.blocks, _profiler_state.totals, {}
    every = sorted(((change[0], number, i, change) for number, thread in enumerate(threads) for i, change in enumerate(thread[4])), key=lambda c: c[:3])
    for _, number, i, (_, nbytes, address, device, _) in every:
        if nbytes >= 0:
            blocks[device, address] = nbytes
            totals[device] = totals.get(device, 0) + nbytes
        else:
            totals[device] = totals.get(device, 0) - blocks.pop((device, address), 0)
        behind[number, i] = totals[device]
    return [(*thread[:4], [(*change, behind[n, i]) for i, change in enumerate(thread[4])]) for n, thread in enumerate(threads)]


def _with_keywords(threads, keywords):
    """The threads of a session, keyword values of ranges being in the place of their `args`. Tokens end in the thread and the position, from 1."""
    if not keywords:
        return threads
    by_place = {(token >> 32 & 0xFFFF, (token & 0xFFFFFFFF) - 1): values for token, values in keywords.items()}
    return [
        (*thread[:3], [(*r[:10], by_place.get((thread[0], i), r[10]), *r[11:]) for i, r in enumerate(thread[3])], thread[4]) for thread in threads
    ]  # fmt: skip


def events_of(threads, *, keywords=None, use_device=None, profile_memory=False, with_flops=False, with_shapes=False, with_stack=False):
    """(EventList, events of all changes of memory) from the threads of a session."""
    threads = _without_pauses(_with_keywords(threads, keywords))
    out = EventList(use_device=use_device, profile_memory=profile_memory, with_flops=with_flops)
    memory, loose = [], []
    forward_threads = {autograd: number for number, _, autograd, _, _ in threads}
    known = {}
    short = lambda frame: known.get(frame) or known.setdefault(frame, _short(frame))  # noqa: E731
    for number, os_thread, _, records, changes in threads:
        events, measured = [], []
        for record in records:
            event, work = _event_of(
                record,
                len(out) + len(events) + 1,
                number,
                os_thread,
                forward_threads,
                use_device,
                with_flops,
                with_shapes,
                short,
            )
            parent = events[record[4]] if record[4] >= 0 else None
            # A range that ended before this one did is beside it, not around it.
            while parent is not None and parent.time_range.end < event.time_range.end:
                parent = parent.cpu_parent
            if parent is not None:
                event.set_cpu_parent(parent)
                parent.append_cpu_child(event)
            events.append(event)
            measured.append(work)
        for change in changes:
            event = _memory_event(change, 0, number, os_thread, use_device)
            memory.append(event)
            if change[4] >= 0:
                _add_memory(events, change, events[change[4]])
            else:
                loose.append(event)
        if use_device:
            _attach_kernels(events, measured)
        out += events
    if with_stack:
        _take_stacks_of_forward(out)
    memory.sort(key=lambda e: e.time_range.start)
    for event in loose:
        event.id = len(out) + 1
        out.append(event)
    out.sort(key=lambda e: e.time_range.start)
    return out, memory
