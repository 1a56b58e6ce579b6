"""GraphModules that generate their forward on first use."""

import contextlib

from .graph_module import GraphModule, _deserialize_graph_module, _format_import_block, _forward_from_src

_use_lazy_graph_module_flag = False
_force_skip_lazy_graph_module_flag = False


@contextlib.contextmanager
def _force_skip_lazy_graph_module():
    """For a block, GraphModules are compiled at once."""
    global _force_skip_lazy_graph_module_flag
    before, _force_skip_lazy_graph_module_flag = _force_skip_lazy_graph_module_flag, True
    try:
        yield
    finally:
        _force_skip_lazy_graph_module_flag = before


@contextlib.contextmanager
def _use_lazy_graph_module(should_use):
    """For a block, traces make lazy GraphModules, or do not."""
    global _use_lazy_graph_module_flag
    before, _use_lazy_graph_module_flag = _use_lazy_graph_module_flag, should_use and not _force_skip_lazy_graph_module_flag
    try:
        yield
    finally:
        _use_lazy_graph_module_flag = before


def _get_graph_module_cls():
    return _LazyGraphModule if _use_lazy_graph_module_flag else GraphModule


def _make_graph_module(*args, graph_module_cls=None, **kwargs):
    return (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)


def reduce_lazy_graph_module(body, import_block):
    """A lazy GraphModule from what its pickle holds."""
    return _deserialize_graph_module(_forward_from_src(import_block + body["_code"], {}), body, _LazyGraphModule)


class _LazyGraphModule(GraphModule):
    """A GraphModule that generates its forward when it is called, or asked for its code."""

    @classmethod
    def from_graphmodule(cls, gm):
        """A lazy one with the graph of gm."""
        return gm if isinstance(gm, _LazyGraphModule) else _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm):
        """Generate the forward now, if gm is lazy."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def real_recompile(self):
        """Generate the forward if that is due."""
        if self._needs_recompile():
            self._real_recompile()

    @classmethod
    def _needs_recompile(cls):
        return cls.forward is cls._lazy_forward

    def _lazy_forward(self, *args, **kwargs):
        self.real_recompile()
        assert not self._needs_recompile()
        return self(*args, **kwargs)

    forward = _lazy_forward

    def _real_recompile(self):
        return super().recompile()

    @classmethod
    def recompile(cls):
        """The forward is to be generated anew, on next use."""
        cls.forward = cls._lazy_forward

    @property
    def code(self):
        """The source of forward."""
        self.real_recompile()
        return super().code

    def _graph_code(self):
        return self._real_recompile()

    def __reduce__(self):
        code = self._real_recompile()
        body = self.__dict__.copy()
        del body["_graph"]
        body["_graphmodule_cls_name"] = type(self).__name__
        return reduce_lazy_graph_module, (body, _format_import_block(code.globals))

    def __str__(self):
        self.real_recompile()
        return super().__str__()
