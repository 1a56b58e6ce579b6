"""Compare: measurements as a table, one row a task, one column a description."""

import collections
import enum
import itertools
import operator

from . import common

__all__ = ["Colorize", "Compare"]

_BEST, _BAD, _VERY_BAD, _END = (f"\033[{n}m" for n in ("92m\033[1", "2m\033[91", "31m\033[1", "0m\033[0"))


class Colorize(enum.Enum):
    """Which cells a colour compares with each other."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _shade(value, best):
    """PyTorch's colours: up to a tenth more than the best, more than twice and more than five times of it."""
    if value <= best * 1.1:
        return _BEST
    return _VERY_BAD if value > best * 5 else _BAD if value > best * 2 else ""


class Compare:
    """A table of measurements: `print()`, `str()`, `extend_results`; with `trim_significant_figures`, `colorize`, `highlight_warnings`."""

    def __init__(self, results):
        self._results = []
        self.extend_results(results)
        self._trim, self._colorize, self._warn = False, Colorize.NONE, False

    def __str__(self):
        return "\n".join(self._render())

    def extend_results(self, results):
        """Add measurements; ValueError for anything else."""
        for r in results:
            if not isinstance(r, common.Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Show only digits that mean something."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Colour the cells by how they compare within their column, or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self):
        """Mark measurements that scatter much."""
        self._warn = True

    def print(self):
        """Print the table."""
        print(str(self))

    def _render(self):
        results = common.Measurement.merge(self._results)
        groups = collections.OrderedDict()
        for m in results:
            groups.setdefault(m.label, []).append(m)
        return [self._table(group) for group in groups.values()]

    def _table(self, results):
        results = sorted(results, key=operator.attrgetter("num_threads"))
        unit, scale = common.select_unit(min(r.median for r in results))
        columns = common.ordered_unique([(r.env if len({x.env for x in results}) > 1 else "", r.description or "") for r in results])
        rows = common.ordered_unique([(r.num_threads, r.as_row_name) for r in results])
        cell = {}
        for r in results:
            cell[(r.num_threads, r.as_row_name), (r.env if len({x.env for x in results}) > 1 else "", r.description or "")] = r

        digits = {}
        for column in columns:
            # As many places as the least certain number of the column means, so that points lie under each other.
            found = [cell[row, column] for row in rows if (row, column) in cell]
            wanted = [self._places(m.median / scale, m.significant_figures) for m in found]
            digits[column] = min(wanted, default=1) if self._trim else 1

        def text(m, places):
            value = m.median / scale
            if self._trim:
                value = common.trim_sigfig(value, m.significant_figures)
            return f"{value:.{places}f}"

        marks = {key: f" (! {m.iqr / m.median * 100:.0f}%)" if self._warn and m.has_warnings else "" for key, m in cell.items()}
        room = {c: max((len(mark) for (_, column), mark in marks.items() if column == c), default=0) for c in columns}
        cells = {key: text(m, digits[key[1]]) + marks[key].ljust(room[key[1]]) for key, m in cell.items()}
        names = {row: "      " + row[1] for row in rows}
        heads = {column: " ".join(part for part in column if part) for column in columns}
        width = max(map(len, names.values()))
        numbers = {c: max((len(t) for (_, col), t in cells.items() if col == c), default=0) for c in columns}
        widths = {c: max(len(heads[c]), numbers[c]) for c in columns}
        lines = [" " * width + "  |  " + "  |  ".join(heads[c].center(widths[c]) for c in columns)]
        body = []
        for threads, group in itertools.groupby(rows, key=lambda row: row[0]):
            body.append(threads)
            for row in group:
                shown = []
                for c in columns:
                    plain = cells.get((row, c), "").rjust(numbers[c]).center(widths[c])
                    shown.append(self._coloured(plain, row, c, cell, rows, columns))
                body.append(names[row].ljust(width) + "  |  " + "  |  ".join(shown))
        total = max(len(lines[0]), 20)
        label = results[0].label or results[0].stmt.replace("\n", " ")[: total - 8]
        lines = ["[" + f" {label} ".center(total - 2, "-") + "]", *lines]
        for entry in body:
            lines.append(entry if isinstance(entry, str) else f"{entry} threads: ".ljust(total, "-"))
        lines += ["", f"Times are in {common.unit_to_english(unit)}s ({unit}).", ""]
        if self._warn:
            lines[-1:] = ["(! XX%) Measurement has high variance, where XX is the IQR / median * 100.", ""]
        return "\n".join(lines)

    @staticmethod
    def _places(value, figures):
        import math

        return max(figures - int(math.ceil(math.log10(value))), 0) if value > 0 else 0

    def _coloured(self, text, row, column, cell, rows, columns):
        m = cell.get((row, column))
        if m is None or self._colorize is Colorize.NONE:
            return text
        if self._colorize is Colorize.COLUMNWISE:
            others = [cell[r, column].median for r in rows if (r, column) in cell]
        else:
            others = [cell[row, c].median for c in columns if (row, c) in cell]
        shade = _shade(m.median, min(others))
        return f"{shade}{text}{_END}" if shade else text
