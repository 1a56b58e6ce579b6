"""Tables of profiler events."""

import math

_WIDTH = 12  # of columns with numbers
_GAP = "  "
_TIME_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_FLOP_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def format_time(us, unit=None):
    """1500.0 as "1.500ms"; in `unit` when given."""
    if unit not in _TIME_UNITS:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return f"{us / _TIME_UNITS[unit]:.3f}{unit}"


def format_memory(n):
    """1536 as "1.50 KB"."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} B"


def _share(part, whole):
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


class _Columns:
    """Lines of right-aligned columns."""

    def __init__(self):
        self.titles, self.widths = [], []

    def add(self, *titles, width=_WIDTH):
        for title in titles:
            self.titles.append(title)
            self.widths.append(width)

    def line(self, cells):
        return "".join(f"{cell:>{width}}{_GAP}" for cell, width in zip(cells, self.widths))

    def rule(self):
        return "".join("-" * width + _GAP for width in self.widths)


def _fitting(values, limit):
    width = max(len(v) for v in values) + 4
    return width if limit is None else min(width, limit)


def _cut(text, limit):
    return text[: limit - 3] + "..." if limit is not None and len(text) >= limit - 3 else text


def _flop_scale(events):
    """(factor, title) for the smallest number of operations."""
    counts = [e.flops for e in events if e.flops > 0]
    if not counts:
        return None
    power = min(max(int(math.log10(min(counts)) // 3), 0), len(_FLOP_UNITS) - 1)
    return 10.0 ** (-3 * power), f"Total {_FLOP_UNITS[power]}"


def _parts(events, all_events, device, memory, flops, max_name_width, max_shapes_width, src_width, time):
    """The columns from left to right, as (titles, width or None, their texts for an event)."""
    self_total = sum(e.self_cpu_time_total for e in all_events)
    device_total = sum(e.self_device_time_total for e in all_events)
    yield ["Name"], _fitting([e.key for e in events], max_name_width), lambda e: [_cut(e.key, max_name_width)]
    if any(getattr(e, "overload_name", "") for e in events):
        yield ["Overload Name"], _fitting([e.overload_name for e in events], max_name_width), lambda e: [_cut(e.overload_name, max_name_width)]
    yield ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"], None, lambda e: [
        _share(e.self_cpu_time_total, self_total), time(e.self_cpu_time_total),
        _share(e.cpu_time_total, self_total), time(e.cpu_time_total), time(e.cpu_time),
    ]  # fmt: skip
    if device:
        yield [f"Self {device}", f"Self {device} %", f"{device} total", f"{device} time avg"], None, lambda e: [
            time(e.self_device_time_total), _share(e.self_device_time_total, device_total), time(e.device_time_total), time(e.device_time),
        ]  # fmt: skip
    if memory:
        yield ["CPU Mem", "Self CPU Mem"], None, lambda e: [format_memory(e.cpu_memory_usage), format_memory(e.self_cpu_memory_usage)]
    if memory and device:
        yield [f"{device} Mem", f"Self {device} Mem"], None, lambda e: [
            format_memory(e.device_memory_usage), format_memory(e.self_device_memory_usage),
        ]  # fmt: skip
    yield ["# of Calls"], None, lambda e: [str(e.count)]
    if any(e.node_id != -1 for e in events):
        yield ["Node ID"], None, lambda e: [str(e.node_id)]
    if any(e.input_shapes for e in events):
        width = _fitting([str(e.input_shapes) for e in events], max_shapes_width)
        yield ["Input Shapes"], width, lambda e: [str(e.input_shapes)[:width]]
    if src_width is not None:
        yield [f"{'Source Location':<{src_width}}"], src_width, lambda e: [_left(e.stack[0] if e.stack else "", src_width)]
    if flops:
        yield [flops[1]], None, lambda e: [f"{e.flops * flops[0]:8.3f}" if e.flops > 0 else "--"]


def table(
    events, all_events, row_limit, max_src_width, max_name_width, max_shapes_width, header, use_device, memory, with_flops,
    top_level_only, time_unit,
):  # fmt: skip
    """The text of `events`; percentages are of the sums over `all_events`."""
    if not events:
        return ""
    device = use_device.upper() if use_device else None
    src_width = (
        _fitting([frame for e in events for frame in e.stack], max_src_width) if any(e.stack for e in events) else None
    )
    flops = _flop_scale(events) if with_flops else None
    time = lambda us: format_time(us, time_unit)  # noqa: E731
    columns, texts = _Columns(), []
    for titles, width, cells in _parts(events, all_events, device, memory, flops, max_name_width, max_shapes_width, src_width, time):
        columns.add(*titles, **({} if width is None else {"width": width}))
        texts.append(cells)

    lines = []
    double_rule = "=" * (len(columns.rule()) - len(_GAP))
    if header is not None:
        lines += [double_rule, header]
    if top_level_only:
        lines += [double_rule, "This report only display top-level ops statistics"]
    lines += [columns.rule(), columns.line(columns.titles), columns.rule()]
    shown = [e for e in events if not top_level_only or e.cpu_parent is None]
    for e in shown[:row_limit] if row_limit >= 0 else shown:
        lines.append(columns.line([text for cells in texts for text in cells(e)]))
        if src_width is not None:
            # The other frames, each in a line of its own, and a line between events.
            blank = [""] * len(columns.titles)
            at = len(blank) - 1 - bool(flops)
            for frame in [*e.stack[1:], ""] if e.stack else [""]:
                blank[at] = _left(frame, src_width)
                lines.append(columns.line(blank))
    lines.append(columns.rule())
    lines.append(f"Self CPU time total: {time(sum(e.self_cpu_time_total for e in all_events))}")
    if device:
        lines.append(f"Self {device} time total: {time(sum(e.self_device_time_total for e in all_events))}")
    return "\n".join(lines) + "\n"


def _left(text, width):
    # The tail of a path says more than its head.
    text = text if len(text) <= width else "..." + text[3 - width :]
    return f"{text:<{width}}"
