"""The page of memory_page: one file, no scripts from elsewhere."""

import html

_STYLE = """
body { font: 14px sans-serif; margin: 2em; color: #222; max-width: 70em }
table { border-collapse: collapse; margin: 1em 0 } td, th { padding: .2em .8em; text-align: left; vertical-align: top; border-bottom: 1px solid #ddd }
td.n { text-align: right; font-variant-numeric: tabular-nums } pre { margin: 0; font-size: 12px } svg { background: #f6f6f6 }
"""
_MOST_BLOCKS = 200


def _bytes(n):
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"


def _curve(history, now):
    """Bytes of tensors after each event, counted back from what there is now: (microseconds, bytes) in order of time."""
    points, held = [], now
    for event in reversed(history):
        if event["action"] in ("alloc", "free_completed"):
            points.append((event["time_us"], held))
            held -= event["size"] if event["action"] == "alloc" else -event["size"]
    if points:
        points.append((points[-1][0], held))
    return points[::-1]


def _picture(points, width=900, height=220):
    if len(points) < 2:
        return "<p>No history: call record_memory_history() first.</p>"
    first, last = points[0][0], max(points[-1][0], points[0][0] + 1)
    most = max(n for _, n in points) or 1
    place = lambda t, n: f"{(t - first) / (last - first) * width:.1f},{height - n / most * (height - 10):.1f}"  # noqa: E731
    steps, before = [], None
    for t, n in points:
        if before is not None:
            steps.append(place(t, before))
        steps.append(place(t, n))
        before = n
    return (
        f'<svg width="{width}" height="{height}" role="img"><polyline fill="none" stroke="#1a5fb4" points="{" ".join(steps)}"/></svg>'
        f"<p>{(last - first) / 1e6:.3f} s, peak {_bytes(most)}</p>"
    )


def _row(*cells):
    return "<tr>" + "".join(f'<td class="n">{c}</td>' if isinstance(c, int) else f"<td>{c}</td>" for c in cells) + "</tr>"


def _stack(frames):
    return "<pre>" + html.escape("\n".join(f"{f['filename']}:{f['line']} {f['name']}" for f in frames)) + "</pre>"


def page(title, stats, segments, history):
    """Text of the page of one device: its memory_stats, segments and events."""
    now = stats["allocated_bytes.all.current"]
    facts = [("of tensors", now), ("peak", stats["allocated_bytes.all.peak"]), ("reserved", stats["reserved_bytes.all.current"])]
    largest = sorted(segments, key=lambda s: -s["total_size"])[:_MOST_BLOCKS]
    blocks = [
        _row(f"{s['address']:#x}", _bytes(s["total_size"]), s["blocks"][0]["state"], str(s["segment_pool_id"]), s["stream"], _stack(s["frames"]))
        for s in largest
    ]
    events = [_row(e["action"], f"{e['addr']:#x}", _bytes(e["size"]), e["stream"], _stack(e["frames"])) for e in history[-_MOST_BLOCKS:]]
    return "\n".join([
        "<!DOCTYPE html>", f'<html lang="en"><head><meta charset="utf-8"><title>Memory of {html.escape(title)}</title><style>{_STYLE}</style></head><body>',
        f"<h1>Memory of {html.escape(title)}</h1>", "<table>", *(_row(name, _bytes(n)) for name, n in facts), "</table>",
        "<h2>Bytes of tensors over time</h2>", _picture(_curve(history, now)),
        f"<h2>{len(segments)} blocks, the {len(largest)} largest</h2>", "<table><tr><th>address<th>size<th>state<th>pool<th>stream<th>allocated at", *blocks, "</table>",
        f"<h2>{len(history)} events, the last {len(events)}</h2>", "<table><tr><th>event<th>address<th>size<th>stream<th>at", *events, "</table>", "</body></html>", "",
    ])  # fmt: skip
