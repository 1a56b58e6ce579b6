"""What a capture relied on: paths from a call's arguments to values, and checks of them, as one generated function."""

import contextlib
import linecache

__all__ = ["Guards"]

_ERRORS = "AttributeError, KeyError, IndexError, TypeError, ValueError, ZeroDivisionError"  # of paths that are no longer there, and of sizes


class Guards:
    """Lines of a function of (args, kwargs) in the order in which the capture read things.

    A path is a variable of that function. Checks call nothing of the user's: they compare types, identities and numbers.
    """

    def __init__(self):
        self._constants, self._kept = {}, []  # id -> name; what must live as long as its id counts
        self._namespace = {}
        self._reads, self._checked, self._inside = {}, set(), ""
        self.lines, self.reasons = [], []

    def constant(self, value):
        """A name for an object."""
        name = self._constants.get(id(value))
        if name is None:
            name = self._constants[id(value)] = f"c{len(self._constants)}"
            self._kept.append(value)
            self._namespace[name] = value
        return name

    def read(self, expression):
        """The variable of an expression of others."""
        name = self._reads.get(expression)
        if name is None:
            name = self._reads[expression] = f"v{len(self._reads)}"
            self.lines.append(f"{name} = {expression}")
        return name

    def check(self, condition, reason):
        """Later calls fail where the condition does not hold; `reason` says so."""
        if condition not in self._checked:
            self._checked.add(condition)
            self.lines.append(f"{self._inside}if not ({condition}): return {len(self.reasons)}")
            self.reasons.append(reason)

    @contextlib.contextmanager
    def unless(self, condition):
        """Checks in here are only made where the condition, which says as much as all of them at once, does not hold."""
        self.lines.append(f"if not {condition}:")
        self._inside = "  "
        try:
            yield
        finally:
            self._inside = ""
            self.lines.append("  pass")

    def build(self, results):
        """A function of (args, kwargs): a list of the variables `results`; where a check fails its number, or the error that reading raised."""
        body = "\n".join(f"    {line}" for line in self.lines)
        text = f"def fetch(args, kwargs):\n  try:\n{body}\n    return [{', '.join(results)}]\n  except ({_ERRORS}) as error:\n    return error\n"
        name = f"<guards {id(self):x}>"
        namespace = dict(self._namespace)
        exec(compile(text, name, "exec"), namespace)
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        return namespace["fetch"]

    def reason(self, failed):
        """What `fetch` gave in place of a list, in words."""
        return self.reasons[failed] if isinstance(failed, int) else f"{type(failed).__name__}: {failed}"
