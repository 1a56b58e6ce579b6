"""Patterns of names: `*` stands for a part of one component, `**` for any number of components."""

import re

__all__ = ["GlobGroup"]


class GlobGroup:
    """The names that match one of `include` and none of `exclude` (a pattern or several). ValueError where `**` is not a whole component."""

    def __init__(self, include, *, exclude=(), separator="."):
        self._text = f"GlobGroup(include={include}, exclude={exclude})"
        self.include, self.exclude = self._glob_list(include, separator), self._glob_list(exclude, separator)
        self.separator = separator

    def __str__(self):
        return self._text

    __repr__ = __str__

    def matches(self, candidate):
        # With a separator in front, every component has one, and `**` is any number of such pairs.
        candidate = self.separator + candidate
        return any(p.fullmatch(candidate) for p in self.include) and not any(p.fullmatch(candidate) for p in self.exclude)

    @staticmethod
    def _glob_list(elems, separator="."):
        return [GlobGroup._glob_to_re(e, separator) for e in ([elems] if isinstance(elems, str) else elems)]

    @staticmethod
    def _glob_to_re(pattern, separator="."):
        between, inside = re.escape(separator), f"[^{re.escape(separator)}]*"

        def component(text):
            if "**" in text:
                if text != "**":
                    raise ValueError("** can only appear as an entire path segment")
                return f"(?:{between}{inside[:-1]}+)*"
            return between + inside.join(re.escape(part) for part in text.split("*"))

        return re.compile("".join(component(c) for c in pattern.split(separator)))
