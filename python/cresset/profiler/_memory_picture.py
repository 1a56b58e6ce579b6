"""A picture of memory over time: areas of categories on top of each other, as a page with nothing outside of it."""

import html

__all__ = ["page_of"]

_INCH, _LEFT, _BOTTOM, _TOP = 72, 90, 60, 40  # of the picture's margins


def _name(category):
    return "Unknown" if category is None else category.name


def _area(xs, lower, upper, color):
    """Between two stairs: sizes stay what they are until the next change."""
    there, back = [], []
    for i, (low, high) in enumerate(zip(lower, upper)):
        there += (f"{xs[i]:.1f},{high:.1f}", f"{xs[i + 1]:.1f},{high:.1f}")
        back += (f"{xs[i]:.1f},{low:.1f}", f"{xs[i + 1]:.1f},{low:.1f}")
    return f'<polygon fill="{color}" fill-opacity="0.7" points="{" ".join(there + back[::-1])}"/>'


def page_of(times, rows, colors, size, title):
    """The text of the page. `times` are microseconds, `rows` sizes in bytes behind a first number that is not used, in the order of `colors`, {category: its color}."""
    width, height = (int(n * _INCH) for n in size)
    largest = max((sum(row[1:]) for row in rows), default=0)
    duration = max(times[-1] - times[0], 1) if times else 1
    across = (width - 2 * _LEFT) / duration
    up = (height - _BOTTOM - _TOP) / max(largest, 1)
    ground = height - _BOTTOM
    parts = [f'<text x="{width / 2}" y="25" text-anchor="middle">{html.escape(title)} (largest: {largest / 2**30:.3f} GiB)</text>']
    if times:
        xs = [_LEFT + (t - times[0]) * across for t in times]
        xs.append(xs[-1])
        lower = [ground] * len(rows)
        for i, color in enumerate(colors.values(), 1):
            upper = [low - row[i] * up for low, row in zip(lower, rows)]
            if any(row[i] for row in rows):
                parts.append(_area(xs, lower, upper, color))
            lower = upper
    parts.append(f'<path fill="none" stroke="black" d="M{_LEFT},{_TOP} V{ground} H{width - _LEFT}"/>')
    for part in range(5):
        y, x = ground - part / 4 * (ground - _TOP), _LEFT + part / 4 * (width - 2 * _LEFT)
        parts.append(f'<text x="{_LEFT - 5}" y="{y + 5:.0f}" text-anchor="end">{largest * part / 4 / 2**20:.2f} MiB</text>')
        parts.append(f'<text x="{x:.0f}" y="{ground + 20}" text-anchor="middle">{duration * part / 4 / 1000:.3f} ms</text>')
    for i, (category, color) in enumerate(colors.items()):
        y = _TOP + 20 * i
        parts.append(f'<rect x="{width - _LEFT - 160}" y="{y}" width="14" height="14" fill="{color}"/>')
        parts.append(f'<text x="{width - _LEFT - 140}" y="{y + 12}">{_name(category)}</text>')
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">{"".join(parts)}</svg>'
    return f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{html.escape(title)}</title></head><body>{picture}</body></html>\n'
