"""known_failures.toml: verdicts that fail, grouped by reason. [reason] operator = [dtypes]."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

FILE = Path(__file__).resolve().parent / "known_failures.toml"
HEADER = """\
# Verdicts of replay.py that fail today, by reason. A listed verdict that passes is an error, as is one that fails unlisted.
# `python tests/conformance/replay.py --write-known` rewrites the file. Reasons that begin with "auto:" are chosen anew from
# the first difference; a verdict under any other reason keeps it.
"""
# The reason of a first difference, most general last.
AUTOMATIC = [
    (r"setup AttributeError", "auto: no such operator yet"),
    (r"raised NotImplementedError|raised RuntimeError: .*not implemented", "auto: an argument or dtype is not implemented"),
    (r"raised (TypeError|AttributeError)", "auto: a signature or an attribute is missing"),
    (r"raised", "auto: raises where PyTorch does not"),
    (r" no (error, want )?\w+(Error|Warning)?$", "auto: does not raise"),
    (r", want \w+$", "auto: raises another class"),
    (r"dtype:", "auto: another dtype"),
    (r"shape:|results, want|type:", "auto: another shape or kind of result"),
    (r"grad\d|backward", "auto: another gradient"),
    (r"", "auto: other values"),
]

Verdict = tuple[str, str]


def read(file: Path | None = None) -> dict[Verdict, str]:
    """The reason of each listed verdict of a file, by default known_failures.toml."""
    file = file or FILE
    if not file.exists():
        return {}
    groups = tomllib.loads(file.read_text())
    return {(op, dtype): reason for reason, operators in groups.items() for op, dtypes in operators.items() for dtype in dtypes}


def automatic(difference: str) -> str:
    return next(reason for pattern, reason in AUTOMATIC if re.search(pattern, difference))


def write(differences: dict[Verdict, str | None]) -> None:
    """Lists the verdicts that have a first difference; verdicts that were not replayed stay as they are."""
    reasons = read()
    for verdict, difference in differences.items():
        if difference is None:
            reasons.pop(verdict, None)
        elif reasons.get(verdict, "auto:").startswith("auto:"):
            reasons[verdict] = automatic(difference)
    groups: dict[str, dict[str, list[str]]] = {}
    for (operator, dtype), reason in sorted(reasons.items()):
        groups.setdefault(reason, {}).setdefault(operator, []).append(dtype)
    text = HEADER
    for reason, operators in sorted(groups.items()):
        text += f"\n[{json.dumps(reason)}]\n"
        text += "".join(f"{json.dumps(op)} = {json.dumps(dtypes)}\n" for op, dtypes in operators.items())
    FILE.write_text(text)
