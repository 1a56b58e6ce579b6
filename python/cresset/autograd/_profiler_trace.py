"""Traces of profiler events, in the format that chrome://tracing and perfetto read."""

import gzip
import itertools
import json
import os
import socket

MEMORY = "[memory]"  # the name of events of memory


def _at(us):
    return round(us, 3)


def _metadata(kind, pid, tid, **args):
    return {"ph": "M", "name": kind, "ts": 0, "pid": pid, "tid": tid, "args": args}


# What these keyword values are is settled; others may be of any plain type.
_KEYWORD_TYPES = {"stream": int, "grid": str}


def _keywords(values):
    """Keyword values of a range as a trace has them: plain ones; a text that would end the trace's own is None."""
    out = {}
    for name, value in values.items():
        if isinstance(value, _KEYWORD_TYPES.get(name, (bool, int, float, str))):
            out[name] = "None" if isinstance(value, str) and '"' in value else value
    return out


def _call(event, number, pid):
    args = {"External id": event.id, "Record function id": event.record_id, "Ev Idx": number, **_keywords(event.kwinputs)}
    if event.sequence_nr >= 0:
        args |= {"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread}
    if event.args:
        args["Args"] = event.args
    if event.input_dtypes:
        args |= {
            "Input Dims": event.structured_input_shapes, "Input type": event.input_dtypes,
            "Input Strides": event.structured_input_strides,
            "Concrete Inputs": ["" if v is None else str(v) for v in event.concrete_inputs],
        }  # fmt: skip
    if event.stack:
        args["Call stack"] = ";\n".join(event.stack)
    if event.overload_name:
        args["Overload name"] = event.overload_name
    return {
        "ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "name": event.trace_name, "pid": pid,
        "tid": event.os_thread, "ts": _at(event.time_range.start), "dur": round(event.time_range.elapsed_us(), 3), "args": args,
    }  # fmt: skip


def _memory(event, number, pid):
    device = (int(event.device_type), event.device_index)
    nbytes = event.cpu_memory_usage or event.device_memory_usage
    return {
        "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": MEMORY, "pid": pid, "tid": event.os_thread,
        "ts": _at(event.time_range.start),
        "args": {"Addr": event.address, "Bytes": nbytes, "Total Allocated": event.total, "Device Type": device[0], "Device Id": device[1], "Ev Idx": number},
    }  # fmt: skip


def _flows(events, pid):
    """Arrows from forward operators to the backward steps that belong to them: the innermost operator with the number."""
    forward, backward = {}, []
    for e in events:
        if e.sequence_nr < 0:
            continue
        if e.scope == 1:
            backward.append(e)
        elif not e.fwd_thread:
            forward[e.thread, e.sequence_nr] = e
    for number, step in enumerate(backward, 1):
        source = forward.get((step.fwd_thread, step.sequence_nr))
        if source is None:
            continue
        common = {"id": number, "pid": pid, "cat": "fwdbwd", "name": "fwdbwd"}
        yield {"ph": "s", "tid": source.os_thread, "ts": _at(source.time_range.start), **common}
        yield {"ph": "f", "bp": "e", "tid": step.os_thread, "ts": _at(step.time_range.start), **common}


def _kernels(events):
    """Rows of devices: one process a device, a bar for each piece of work that was measured there."""
    seen = set()
    for e in events:
        for k in e.kernels:
            row = f"{e.use_device}:{k.device}"
            if row not in seen:
                seen.add(row)
                yield _metadata("process_name", row, 0, name=row)
            yield {
                "ph": "X", "cat": "kernel", "name": k.name, "pid": row, "tid": 0, "ts": _at(e.time_range.start), "dur": round(k.duration, 3),
                "args": {"External id": e.id, "device": k.device},
            }  # fmt: skip


def _functions(calls, first, pid):
    """A bar for each call of a Python function."""
    for number, call in enumerate(calls, first):
        args = {"Python parent id": call.parent and call.parent.number, "Python id": call.number, "Ev Idx": number}
        if call.module is not None:
            args["Python module id"] = call.module_number
        yield {
            "ph": "X", "cat": "python_function", "name": call.name, "pid": pid, "tid": call.os_thread, "ts": _at(call.begin / 1e3),
            "dur": round((call.end - call.begin) / 1e3, 3), "args": args,
        }  # fmt: skip


def _adjusted(step, calls):
    """The bar of a step that neither begins nor ends inside of a Python function that it has a part of only: it begins with the end of the
    outermost one in which it began, and ends with the end of the outermost one in which it ended."""
    begin, end = step["ts"], step["ts"] + step["dur"]
    spans = [(c.begin / 1e3, c.end / 1e3) for c in calls if c.os_thread == step["tid"]]
    tick = 0.001  # behind the functions' ends also when both are rounded
    new_begin = max((b + tick for a, b in spans if a < begin < b < end), default=begin)
    new_end = max((b + tick for a, b in spans if begin < a < end < b), default=end)
    return step | {"ts": _at(new_begin), "dur": round(new_end - new_begin, 3)}


def _window(events, last_call):
    """The span of the whole profile, and marks at its ends; all other events lie inside."""
    end = max((e.time_range.end for e in events), default=0)
    end = max(end, last_call)
    span = {"cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0, "dur": _at(end + 1), "args": {"Op count": 0}}
    return [
        {"ph": "X", **span},
        {"ph": "M", "name": "process_sort_index", "ts": 0, "pid": "Spans", "tid": 0, "args": {"sort_index": 1 << 29}},
        {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": 0},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": _at(end + 2)},
    ]  # fmt: skip


def trace_of(events, memory=(), wall_clock=0, metadata=None, options=None, calls=(), arrows=True, adjust_steps=False):
    """The trace as a dictionary. `memory` are the events of all changes of memory; times count from `wall_clock`, nanoseconds since 1970.
    `calls` are those of Python functions; `arrows` lead from forward operators to backward steps; `adjust_steps` fits steps to functions."""
    pid = os.getpid()
    out = [_metadata("process_name", pid, 0, name="python"), _metadata("process_labels", pid, 0, labels="CPU")]
    for thread in dict.fromkeys(e.os_thread for e in itertools.chain(events, memory, calls)):
        out.append(_metadata("thread_name", pid, thread, name=f"thread {thread} (python)"))
    operators = [e for e in events if e.name != MEMORY]
    bars = [_call(e, number, pid) for number, e in enumerate(operators)]
    out += [_adjusted(b, calls) if adjust_steps and b["name"].startswith("ProfilerStep#") else b for b in bars]
    out += [_memory(e, len(operators) + number, pid) for number, e in enumerate(memory)]
    out += _functions(calls, len(operators) + len(memory), pid)
    out += _flows(operators, pid) if arrows else ()
    out += _kernels(operators)
    out += _window([*operators, *memory], max((c.end / 1e3 for c in calls), default=0))
    return {
        "schemaVersion": 1, "deviceProperties": [], "host_name": socket.gethostname(), "displayTimeUnit": "ms",
        "baseTimeNanoseconds": wall_clock, **(options or {}),
        **(metadata or {}), "traceEvents": out,
    }  # fmt: skip


def write_trace(path, events, **details):
    """Write the trace of `events` to `path`, compressed when that ends in .gz."""
    path = os.fspath(path)
    content = trace_of(events, **details)
    content["traceName"] = path
    with gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w") as file:
        json.dump(content, file)
