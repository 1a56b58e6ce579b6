"""What one side answered beside what the other did."""

import math
import re

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")
_DURATION = re.compile(r"\(\d+\.\d+ ?s\)")
# Lines that say how long something took, or where it lies, are not results.
_IGNORED = re.compile(r"\bms\b|seconds|time\b|\bsec\b|it/s|/tmp/|Warning|warn|0x[0-9a-f]{6}|^\s*File |took|elapsed|^Ran \d+ test", re.IGNORECASE)


def printed(text, entry):
    """The lines of a program's output that have numbers, as named values: the words are the name."""
    ignored = re.compile(entry["ignore"]) if "ignore" in entry else None
    values = []
    for line in text.splitlines():
        line = _DURATION.sub("", re.sub(r"cresset|torch", "torch", line))
        if _IGNORED.search(line) or (ignored and ignored.search(line)):
            continue
        numbers = [float(n) for n in _NUMBER.findall(line)]
        if numbers or entry.get("words"):
            values.append([_NUMBER.sub("#", line).strip()[:200], numbers])
    return values


def _close(a, b, rtol, atol):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and not isinstance(a, bool):
        return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= atol + rtol * abs(b)
    return a == b


def _difference(have, want, rtol, atol):
    if isinstance(have, list) and isinstance(want, list):
        if len(have) != len(want):
            return f"{len(have)} values, PyTorch has {len(want)}"
        return next((d for a, b in zip(have, want) if (d := _difference(a, b, rtol, atol))), "")
    return "" if _close(have, want, rtol, atol) else f"{have!r}, PyTorch has {want!r}"


def first_difference(ours, theirs, entry):
    """A sentence, or "" where all values agree within the entry's rtol and atol."""
    rtol, atol = entry.get("rtol", 2e-3), entry.get("atol", 1e-4)
    for (name, have), (other, want) in zip(ours, theirs):
        if name != other:
            return f"{name!r} where PyTorch has {other!r}"
        if found := _difference(have, want, rtol, atol):
            return f"{name}: {found}"
    if len(ours) != len(theirs):
        longer = max(ours, theirs, key=len)[min(len(ours), len(theirs))][0]
        return f"{len(ours)} answers, PyTorch has {len(theirs)}; the first that one lacks: {longer}"
    return "" if theirs or entry.get("words") else "no values to compare"
