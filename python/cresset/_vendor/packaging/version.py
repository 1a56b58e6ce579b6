"""Versions as PEP 440 has them."""

from cresset.torch_version import _key, _Ordered, _parts

__all__ = ["InvalidVersion", "Version", "parse"]


class InvalidVersion(ValueError):
    """A text is no version."""


def parse(version):
    """The Version of a text; InvalidVersion where it is none."""
    return Version(version)


class Version(_Ordered):
    """A version that compares with others. InvalidVersion for a text that is none."""

    def __init__(self, version):
        parts = _parts(version)
        if parts is None:
            raise InvalidVersion(f"Invalid version: {version!r}")
        self._key = _key(version)
        self.epoch, self.release, self.pre, self.post, self.dev, self.local = parts

    @property
    def base_version(self):
        """Epoch and release."""
        return (f"{self.epoch}!" if self.epoch else "") + ".".join(map(str, self.release))

    @property
    def public(self):
        """The version without its local part."""
        text = self.base_version
        text += "".join(map(str, self.pre or ()))
        text += "" if self.post is None else f".post{self.post}"
        return text + ("" if self.dev is None else f".dev{self.dev}")

    def __str__(self):
        return self.public + ("" if self.local is None else f"+{self.local}")

    def __repr__(self):
        return f"<Version({str(self)!r})>"

    is_prerelease = property(lambda self: self.dev is not None or self.pre is not None)
    is_postrelease = property(lambda self: self.post is not None)
    is_devrelease = property(lambda self: self.dev is not None)
    major = property(lambda self: self.release[0])
    minor = property(lambda self: self.release[1] if len(self.release) > 1 else 0)
    micro = property(lambda self: self.release[2] if len(self.release) > 2 else 0)

    def __hash__(self):
        return hash(self._key)

    def _compare(self, other, how):
        return getattr(self._key, how)(other._key) if isinstance(other, Version) else NotImplemented
