"""ModuleTracker: which modules a program is in, in forward and in backward."""

import weakref

import cresset
from cresset._logging import logger_of
from cresset.autograd.graph import register_multi_grad_hook
from cresset.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from cresset.utils._pytree import tree_flatten

__all__ = ["ModuleTracker"]

_log = logger_of(__name__)


class ModuleTracker:
    """A context in which `parents` is the set of names of the modules that are running, "Global" among them; `is_bw` says whether backward runs.

    A name is the path from the outermost module that was called, which has its class's name.
    """

    def __init__(self):
        self.parents = {"Global"}
        self._known = weakref.WeakKeyDictionary()
        self._seen = weakref.WeakSet()

    def _name_of(self, module):
        if module not in self._known:
            self._known[module] = type(module).__name__
        name = self._known[module]
        if module not in self._seen:
            for child_name, child in module.named_children():
                self._known[child] = f"{name}.{child_name}"
                self._name_of(child)
            self._seen.add(module)
        return name

    @property
    def is_bw(self):
        """Is this called in a backward pass?"""
        return cresset._C._current_graph_task_id() != -1

    def _forget_later(self):
        # After a backward pass that ended inside of modules, whose inputs needed no gradient.
        cresset.autograd.Variable._execution_engine.queue_callback(lambda: self.parents.__init__({"Global"}))

    def _entering(self, name, backward):
        def enter(*_):
            if backward:
                self._forget_later()
            if name in self.parents:
                _log.info("this module was entered already: %s in %s", name, "backward" if backward else "forward")
            self.parents.add(name)

        return enter

    def _leaving(self, name, backward):
        def leave(*_):
            if name in self.parents:
                self.parents.discard(name)
            else:
                _log.info("a module is left that was not entered: %s", name)

        return leave

    @staticmethod
    def _graded(values):
        tensors = [a for a in tree_flatten(values)[0] if isinstance(a, cresset.Tensor) and a.requires_grad]
        return tensors if cresset.is_grad_enabled() else []

    def _before(self, module, inputs):
        name = self._name_of(module)
        self._entering(name, False)()
        if tensors := self._graded(inputs):
            register_multi_grad_hook(tensors, self._leaving(name, True))

    def _after(self, module, inputs, output):
        name = self._name_of(module)
        self._leaving(name, False)()
        if tensors := self._graded(output):
            register_multi_grad_hook(tensors, self._entering(name, True))

    def __enter__(self):
        self._handles = (register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after))
        return self

    def __exit__(self, *error):
        for handle in self._handles:
            handle.remove()
