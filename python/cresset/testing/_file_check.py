"""FileCheck: a text must contain given pieces in a given order."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any


@dataclass
class _Check:
    kind: str  # CHECK, CHECK-NOT, CHECK-SAME, CHECK-NEXT, CHECK-COUNT, CHECK-DAG, CHECK-SOURCE-HIGHLIGHTED, CHECK-REGEX
    text: str
    count: int = 0

    def __str__(self) -> str:
        kind = f"CHECK-COUNT-{self.count}" if self.kind == "CHECK-COUNT" else self.kind
        return f"{kind}: {self.text}"


_COMMENT = re.compile(r"^\s*#\s*(CHECK(?:-[A-Z]+)*(?:-\d+)?):\s*(.*?)\s*$", re.MULTILINE)
_KINDS = {"CHECK", "CHECK-NOT", "CHECK-SAME", "CHECK-NEXT", "CHECK-DAG", "CHECK-SOURCE-HIGHLIGHTED", "CHECK-REGEX"}


class FileCheck:
    """Checks that are run over a text, each behind the match of the one before.

    Add checks in order, then call `run`; every method that adds returns the object. A check that fails raises RuntimeError
    with the text and the place.
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []
        self._has_run = False

    def __del__(self) -> None:
        if not self._has_run and sys is not None and not sys.is_finalizing():
            print(self)

    def _add(self, kind: str, text: str, count: int = 0) -> FileCheck:
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, text: str) -> FileCheck:
        """The text occurs behind the last match."""
        return self._add("CHECK", text)

    def check_not(self, text: str) -> FileCheck:
        """The text does not occur between the matches before and behind this check."""
        return self._add("CHECK-NOT", text)

    def check_same(self, text: str) -> FileCheck:
        """The text occurs behind the last match in the same line."""
        return self._add("CHECK-SAME", text)

    def check_next(self, text: str) -> FileCheck:
        """The text occurs in the line behind the last match."""
        return self._add("CHECK-NEXT", text)

    def check_count(self, str: str, count: int, exactly: bool = False) -> FileCheck:
        """The text occurs `count` times behind the last match; with `exactly` not once more."""
        self._add("CHECK-COUNT", str, count)
        return self._add("CHECK-NOT", str) if exactly else self

    def check_dag(self, text: str) -> FileCheck:
        """Neighbouring checks of this kind match in any order."""
        return self._add("CHECK-DAG", text)

    def check_source_highlighted(self, text: str) -> FileCheck:
        """The text occurs and is marked with ~ in the line below."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", text)

    def check_regex(self, pattern: str) -> FileCheck:
        """A match of the regular expression occurs behind the last match."""
        return self._add("CHECK-REGEX", pattern)

    def run(self, checks_file: Any, test_file: Any = None, *, graph: Any = None) -> None:
        """Checks a text (anything with a str, such as a graph).

        With two arguments (the second is `test_file` or `graph`) the first holds the checks as comments: `# CHECK: ...`, `# CHECK-NEXT: ...`.
        """
        self._has_run = True
        text = checks_file
        tested = test_file if graph is None else graph
        if tested is not None:
            self._checks += _checks_in(str(checks_file))
            text = tested
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance of FileCheck! Check for bad input.")
        _Run(str(text), self._checks).run()

    def __repr__(self) -> str:
        state = "" if self._has_run else "You have not run this instance of FileCheck!\n"
        return state + "FileCheck checks:\n" + "".join(f"\t{c}\n" for c in self._checks)


def _checks_in(source: str) -> list[_Check]:
    checks = []
    for match in _COMMENT.finditer(source):
        name, text = match.groups()
        counted = re.fullmatch(r"CHECK-COUNT-(EXACTLY-)?(\d+)", name)
        if counted:
            checks.append(_Check("CHECK-COUNT", text, int(counted[2])))
            if counted[1]:
                checks.append(_Check("CHECK-NOT", text))
        elif name in _KINDS:
            checks.append(_Check(name, text))
        else:
            raise RuntimeError(f"FileCheck: a check such as CHECK-NEXT was required; '{name}' was given.")
    return checks


class _Run:
    def __init__(self, text: str, checks: list[_Check]) -> None:
        self.text = text
        self.checks = checks

    def fail(self, message: str, at: int, check: _Check, length: int = 0) -> None:
        line_end = self.text.find("\n", at)
        line_end = len(self.text) if line_end < 0 else line_end
        line_start = self.text.rfind("\n", 0, at) + 1
        mark = " " * (at - line_start) + "~" * max(length, 1) + " <--- HERE"
        shown = self.text[:line_end] + "\n" + mark + self.text[line_end:]
        raise RuntimeError(f"{message}\n{shown}\nFrom {check}\n")

    def find(self, check: _Check, start: int, end: int | None = None, at: int | None = None) -> tuple[int, int]:
        end = len(self.text) if end is None else end
        found = self.text.find(check.text, start, end)
        if found < 0:
            self.fail(f'Expected to find "{check.text}" but did not find it\nSearched string:', start if at is None else at, check,
                      len(check.text))
        return found, found + len(check.text)

    def refuse(self, checks: list[_Check], start: int, end: int) -> None:
        for check in checks:
            found = self.text.find(check.text, start, end)
            if found >= 0:
                self.fail(f'Expected to not find "{check.text}" but found it', found, check, len(check.text))

    def run(self) -> None:
        position = 0
        refused: list[_Check] = []  # CHECK-NOT in front of the next match
        i = 0
        while i < len(self.checks):
            check = self.checks[i]
            if check.kind == "CHECK-NOT":
                refused.append(check)
                i += 1
                continue
            if check.kind == "CHECK-DAG":
                group = [check]
                while i + len(group) < len(self.checks) and self.checks[i + len(group)].kind == "CHECK-DAG":
                    group.append(self.checks[i + len(group)])
                spans = self.dag(group, position)
                start, end = min(s for s, _ in spans), max(e for _, e in spans)
                i += len(group)
            else:
                start, end = self.one(check, position)
                i += 1
            self.refuse(refused, position, start)
            refused = []
            position = end
        self.refuse(refused, position, len(self.text))

    def dag(self, group: list[_Check], start: int) -> list[tuple[int, int]]:
        """The first occurrences; equal texts need occurrences of their own."""
        spans = []
        following: dict[str, int] = {}
        for check in group:
            span = self.find(check, following.get(check.text, start))
            following[check.text] = span[1]
            spans.append(span)
        return spans

    def one(self, check: _Check, position: int) -> tuple[int, int]:
        if check.kind == "CHECK":
            return self.find(check, position)
        if check.kind == "CHECK-COUNT":
            start, end = -1, position
            for _ in range(check.count):
                found, end = self.find(check, end)
                start = found if start < 0 else start
            return max(start, position), end
        if check.kind == "CHECK-REGEX":
            match = re.compile(check.text).search(self.text, position)
            if not match:
                self.fail(f'Expected to find regex "{check.text}" but did not find it\nSearched string:', position, check)
                raise AssertionError  # fail raises
            return match.span()
        if check.kind in ("CHECK-SAME", "CHECK-NEXT"):
            start, end = self.find(check, position)
            newline = _Check("CHECK-NOT", "\n")
            self.refuse([newline], self.find(newline, position, start)[1] if check.kind == "CHECK-NEXT" else position, start)
            return start, end
        return self.highlighted(check, position)

    def highlighted(self, check: _Check, position: int) -> tuple[int, int]:
        at = position
        while True:
            start, end = self.find(check, at)
            line_start = self.text.rfind("\n", 0, start) + 1
            line_end = self.text.find("\n", end)
            below = "" if line_end < 0 else self.text[line_end + 1:].split("\n", 1)[0]
            marked = below[start - line_start:end - line_start]
            around = below[:start - line_start][-1:] + below[end - line_start:][:1]
            if marked == "~" * len(check.text) and "~" not in around:
                return start, line_end + 1 + len(below)
            if self.text.find(check.text, end) < 0:
                self.fail(f'Expected to find "{check.text}" highlighted but it is not.', start, check, len(check.text))
            at = end
