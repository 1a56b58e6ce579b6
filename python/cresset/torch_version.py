"""TorchVersion: a version string that compares as a version, with strings and with tuples of numbers."""

__all__ = ["TorchVersion"]

_PATTERN = None
_WORDS = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


def _match(text):
    global _PATTERN
    if _PATTERN is None:
        import re

        _PATTERN = re.compile(
            r"\s*v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?(\d*))?"
            r"(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?(?:[-_.]?(dev)[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*",
            re.IGNORECASE,
        )
    return _PATTERN.fullmatch(text)


def _parts(text):
    """(epoch, release, pre, post, dev, local) of a version, None for what it has not; None when the text is none."""
    found = _match(text)
    if found is None:
        return None
    epoch, numbers, pre, pre_number, post_number, post, post_more, dev, dev_number, local = found.groups()
    before = None if pre is None else (_WORDS.get(pre.lower(), pre.lower()), int(pre_number or 0))
    after = int(post_number or post_more or 0) if post is not None or post_number is not None else None
    own = None if local is None else local.lower().replace("-", ".").replace("_", ".")
    return int(epoch or 0), tuple(int(n) for n in numbers.split(".")), before, after, None if dev is None else int(dev_number or 0), own


def _key(text):
    """What versions are ordered by (PEP 440); None when the text is none."""
    parts = _parts(text)
    if parts is None:
        return None
    epoch, numbers, before, post, dev, local = parts
    release = list(numbers)
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    if before is None:  # a development version stands in front of all others, a release behind its candidates
        before = ("", 0) if dev is not None and post is None else ("z", 0)
    own = () if local is None else tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in local.split("."))
    return epoch, tuple(release), before, -1 if post is None else post, float("inf") if dev is None else dev, local is not None, own


class _Ordered:
    """The comparisons of a class that has `_compare(other, name of the method)`."""

    __slots__ = ()

    def __lt__(self, other):
        return self._compare(other, "__lt__")

    def __le__(self, other):
        return self._compare(other, "__le__")

    def __gt__(self, other):
        return self._compare(other, "__gt__")

    def __ge__(self, other):
        return self._compare(other, "__ge__")

    def __eq__(self, other):
        return self._compare(other, "__eq__")

    def __ne__(self, other):
        return self._compare(other, "__ne__")


class TorchVersion(_Ordered, str):
    """A version: `TorchVersion("2.10.1") > "2.9"`, `>= (1, 6)`. A string that is no version compares as a string."""

    __slots__ = ()

    def _compare(self, other, how):
        if isinstance(other, (tuple, list)):
            other = ".".join(str(part) for part in other)
        if not isinstance(other, str):
            return NotImplemented
        mine, theirs = _key(str(self)), _key(other)
        if mine is None or theirs is None:
            return getattr(str, how)(self, str(other))
        return getattr(tuple, how)(mine, theirs)

    __hash__ = str.__hash__
