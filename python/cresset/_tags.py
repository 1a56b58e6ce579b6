"""Tags: promises that operators make about themselves."""

import enum

from ._C import _tag_names

__all__ = ["Tag"]


class _Named(str, enum.Enum):
    def __int__(self):
        return list(type(self)).index(self)

    def __str__(self):
        return f"Tag.{self.name}"

    def __repr__(self):
        return f"<Tag.{self.name}: {int(self)}>"


Tag = _Named("Tag", {name: name for name in _tag_names}, module=__name__)
Tag.__doc__ = "A property of an operator; equal to its name."


def as_tag(name):
    """The Tag of a name; names of other tags stay strings."""
    return Tag.__members__.get(name, name)


def name_of(tag):
    """The text by which the dispatcher keeps a tag."""
    return tag.value if isinstance(tag, Tag) else str(tag)
