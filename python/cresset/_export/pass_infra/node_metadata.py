"""What is noted at a node, without what follows from the node itself."""

__all__ = ["NodeMetadata"]

_OWN = frozenset({"val", "tensor_meta"})  # a node's own values


class NodeMetadata:
    """A copy of a node's meta as a pass hands it on: a mapping; "val" and "tensor_meta" are those of the node that is made."""

    def __init__(self, data):
        self.data = dict(data)

    def __getitem__(self, key):
        return self.data[key]

    def __setitem__(self, key, value):
        if key in _OWN:
            raise RuntimeError(f"Cannot override node key {key}.")
        self.data[key] = value

    def __contains__(self, key):
        return key in self.data

    def copy(self):
        """The same in another object."""
        return NodeMetadata(self.data)
