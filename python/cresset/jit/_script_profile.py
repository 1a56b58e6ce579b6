"""Where scripts spend their time, line by line."""

import weakref

from cresset import _C

__all__ = ["ScriptProfile"]

_TITLES = ("Line #", "Hits", "Time (ns)", "Line Contents")


def _without_margin(lines):
    margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    return [line[margin:] for line in lines]


def _table(text, first, counts):
    """The lines of a source, each behind its number, how often it ran, and for how long."""
    lines = _without_margin(text.splitlines())
    rows = [(str(n), *(str(c) for c in counts.get(n, ("", ""))), line) for n, line in enumerate(lines, first)]
    widths = [max(len(row[i]) for row in [_TITLES, *rows]) + 2 for i in range(3)]

    def row_of(cells):
        return "".join(cell.rjust(width) for cell, width in zip(cells, widths)) + " " + cells[3]

    rows = [row_of(row).rstrip() for row in rows]
    title = row_of(_TITLES)
    return "\n".join([title, "=" * max(len(title), *map(len, rows)), *rows]) + "\n"


class ScriptProfile:
    """Counts, between enable() and disable(), how often each line of scripts ran, and for how long. A line that calls a function is charged for
    what the function does outside of its own lines. Several profiles may count at once."""

    def __init__(self):
        self._profile = _C._jit_line_profile_new()
        weakref.finalize(self, _C._jit_line_profile_drop, self._profile)

    def enable(self):
        """Count from now on. Scripts run in a slower form while any profile counts."""
        _C._jit_line_profile_enable(self._profile)

    def disable(self):
        """Count no longer; what was counted stays."""
        _C._jit_line_profile_disable(self._profile)

    def dump_string(self):
        """A table for each source of which a line ran; "" where none did."""
        sources = _C._jit_line_profile_lines(self._profile)
        return "\n".join(_table(text, first, {n: (hits, time) for n, hits, time in lines}) for text, first, lines in sources)

    def dump(self):
        """Print the tables."""
        print(self.dump_string())
