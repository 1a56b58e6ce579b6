"""Why a test failed, from the exception that ended it.

| cause | |
|---|---|
| wrong | a value, shape, dtype, flag or gradient differs: an assertion about a result failed |
| raises | an exception where PyTorch has a result, or a result where PyTorch raises |
| message | the right kind of outcome with another text: words of an error or warning, a printed graph |
| absent | a public name that does not exist, or a feature that is refused by name |
| private | a name with a leading underscore that does not exist |
| crash, hang | the process died; the test had no end |
"""

import re

CAUSES = ("wrong", "raises", "message", "absent", "private", "crash", "hang")

_NAMES = (
    r"has no attribute '([\w.]+)'",
    r"cannot import name '([\w.]+)'",
    r"No module named '([\w.]+)'",
    r"type object '[\w.]+' has no attribute '([\w.]+)'",
    r"name '([\w.]+)' is not defined",
)
_TEXT_ASSERTIONS = {"assertExpectedInline", "assertExpectedInlineMunged", "assertMultiLineEqual", "assertExpected", "assertExpectedGraph", "assertExpectedStripMangled"}
# (The subgraphs that PyTorch's executor differentiates are one of its ways to run a graph.)
_ABSENT_TEXTS = r"nodes' autodifferentiation|not part of Cresset|not implemented in Cresset|No operator|no such operator|Unknown builtin op"


def missing_name(failure):
    """The name that does not exist, when that is why the test failed."""
    message = failure.get("message", "")
    if failure.get("type") == "AbsentName":
        return message
    kinds = set(failure.get("mro", ()))
    if kinds & {"AttributeError", "ImportError", "NameError"} or re.search(r"has no attribute|object has no attribute", message):
        for pattern in _NAMES:
            match = re.search(pattern, message)
            if match:
                owner = failure.get("owner") or ""
                return f"{owner}.{match[1]}".lstrip(".")
    return None


def is_private(name):
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def cause(failure):
    """One of CAUSES for the answer of a test that did not pass."""
    outcome, message = failure["outcome"], failure.get("message", "")
    if outcome in ("crash", "hang"):
        return outcome
    if outcome == "skip":
        return "absent"
    name = missing_name(failure)
    if name:
        return "private" if is_private(name) else "absent"
    kinds = set(failure.get("mro", ()))
    if "NotImplementedError" in kinds or re.search(_ABSENT_TEXTS, message):
        match = re.search(r"(?:operator|op):? '?([\w:.]+)", message)
        return "private" if match and is_private(match[1].rpartition("::")[2]) else "absent"
    if "AssertionError" in kinds:
        functions = {frame[1] for frame in failure.get("frames", ())}
        if re.search(r'not raised|not triggered|did not raise', message):
            return "raises"
        if functions & _TEXT_ASSERTIONS or re.search(r'" does not match "|String comparison failed|not found in [\'"]|Regex didn\'t match', message):
            return "message"
        return "wrong"
    if kinds & {"GradcheckError"}:
        return "wrong"
    if re.search(r"Expected to (not )?find ", message):
        return "message"
    return "raises"
