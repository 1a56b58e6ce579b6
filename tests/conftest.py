"""Totals of data-driven tests, printed as tables after the run (also with workers: they travel in the reports)."""

from collections import defaultdict

import pytest

PROPERTY = "count"


@pytest.fixture
def count(record_property):
    """count(table, line, **numbers) adds the numbers to the columns of a line of a table."""

    def add(table, line, **numbers):
        record_property(PROPERTY, [table, line, numbers])

    return add


def collect(reports):
    """{table: {line: {column: sum}}} of the reports of finished tests."""
    tables = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    for report in reports:
        if getattr(report, "when", None) != "call":
            continue
        for name, value in report.user_properties:
            if name == PROPERTY:
                table, line, numbers = value
                for column, number in numbers.items():
                    tables[table][line][column] += number
    return tables


def pytest_terminal_summary(terminalreporter):
    reports = [report for group in terminalreporter.stats.values() for report in group]
    for table, lines in sorted(collect(reports).items()):
        terminalreporter.write_sep("-", table)
        width = max(map(len, lines))
        for line in sorted(lines, key=lambda name: (name == "total", name)):
            numbers = "   ".join(f"{number:6} {column}" for column, number in lines[line].items())
            terminalreporter.write_line(f"{line:{width}}  {numbers}")
