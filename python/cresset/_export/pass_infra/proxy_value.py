"""A value with the node that gives it."""

import cresset

__all__ = ["ProxyValue"]


class ProxyValue:
    """data: the value, a fake tensor, number or container; node: where the graph that is made has it, if anywhere."""

    def __init__(self, data, proxy):
        self._data, self.proxy_or_node = data, proxy

    @property
    def data(self):
        """The value."""
        return self._data

    @property
    def node(self):
        """Its node."""
        return self.proxy_or_node.node if isinstance(self.proxy_or_node, cresset.fx.Proxy) else self.proxy_or_node

    @property
    def proxy(self):
        """Its Proxy. RuntimeError where there is a node alone."""
        if not isinstance(self.proxy_or_node, cresset.fx.Proxy):
            raise RuntimeError(f"ProxyValue doesn't have attribute proxy. Attribute type: {type(self.proxy_or_node)}")
        return self.proxy_or_node

    def to_tensor(self):
        """The value, which is a tensor."""
        assert isinstance(self.data, cresset.Tensor)
        return self.data

    def is_tensor(self):
        """Is the value a tensor?"""
        return isinstance(self.data, cresset.Tensor)

    def __iter__(self):
        yield from self.data

    def __bool__(self):
        return bool(self.data)
