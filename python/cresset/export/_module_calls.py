"""Which modules a program calls: their paths, and what calls of chosen ones take and give."""

import contextlib
import copy

import cresset
from cresset.utils import _pytree as pytree

__all__ = ["ModuleCall", "ModuleStack", "by_their_paths"]


class ModuleCall:
    """One call of a module. inputs, outputs: leaves of ((args), {kwargs}) and of the result: nodes, or what is no tensor."""

    def __init__(self, inputs, in_spec):
        self.inputs, self.in_spec, self.outputs, self.out_spec = inputs, in_spec, None, None

    def nodes(self):
        """The nodes among the inputs and outputs."""
        return [leaf for leaf in (*self.inputs, *self.outputs) if isinstance(leaf, cresset.fx.Node)]

    def changed(self, change):
        """The call with other leaves."""
        new = copy.copy(self)
        new.inputs, new.outputs = list(map(change, self.inputs)), list(map(change, self.outputs))
        return new


def _twin(module):
    """Another object with the module's attributes. Its own are only submodules, so that these can have twins too."""
    twin = object.__new__(type(module))
    if module._modules:
        twin.__dict__.update(module.__dict__, _modules={name: child and _twin(child) for name, child in module._modules.items()})
    else:
        twin.__dict__ = module.__dict__
    return twin


@contextlib.contextmanager
def by_their_paths(root):
    """For a block a module with several paths is another object at each of them, over the same attributes: a call tells by which path it was reached."""
    seen, changed = set(), []

    def visit(module):
        seen.add(id(module))
        for name, child in module._modules.items():
            if child is None:
                continue
            if id(child) in seen:
                changed.append((module, name, child))
            else:
                visit(child)

    visit(root)
    for module, name, child in changed:
        module._modules[name] = _twin(child)
    try:
        yield
    finally:
        for module, name, child in changed:
            module._modules[name] = child


class ModuleStack:
    """Which modules' forward runs: {key: (path, name of the class)} as meta["nn_module_stack"] has it; keys of a path's second call end with @1.

    preserved: paths whose calls are kept in `calls` ({path, from the second call on with @number: ModuleCall}). leaf: what stands for a leaf there.
    """

    def __init__(self, root, preserved, leaf):
        self._root, self._preserved, self._leaf = root, frozenset(preserved), leaf
        self._counts, self._open, self.stack, self.calls = {}, [], [], {}

    def current(self):
        """meta["nn_module_stack"] of a node made now."""
        return dict(self.stack)

    def path(self):
        """That of the module whose forward runs; "" for the program's own."""
        return self.stack[-1][1][0] if self.stack else ""

    def _before(self, module, args):
        path = self._paths.get(id(module))
        if path is None:
            return
        count = self._counts[path] = self._counts.get(path, -1) + 1
        suffix = f"@{count}" if count else ""
        kind = type(module)
        self.stack.append((f"L__self__{path}{suffix}", (path, f"{kind.__module__}.{kind.__qualname__}")))

    def _after(self, module, args, result):
        if id(module) in self._paths and self.stack:
            self.stack.pop()

    def _enter(self, module, args, kwargs):
        path = self._paths.get(id(module))
        if path in self._preserved:
            leaves, spec = pytree.tree_flatten((args, kwargs))
            count = self._counts[path]
            self.calls[f"{path}@{count}" if count else path] = call = ModuleCall(list(map(self._leaf, leaves)), spec)
            self._open.append(call)

    def _leave(self, module, args, kwargs, result):
        if self._paths.get(id(module)) in self._preserved:
            call, (leaves, call.out_spec) = self._open.pop(), pytree.tree_flatten(result)
            call.outputs = list(map(self._leaf, leaves))

    @contextlib.contextmanager
    def watching(self):
        """For a block calls of modules are noted. RuntimeError for a path to preserve at which there is no module."""
        hooks, known = cresset.nn.modules.module, {}
        with by_their_paths(self._root), contextlib.ExitStack() as handles:  # taken away also where a path has no module
            handles.callback(hooks.register_module_forward_pre_hook(self._before).remove)
            handles.callback(hooks.register_module_forward_hook(self._after, always_call=True).remove)
            modules = list(self._root.named_modules(remove_duplicate=False))
            self._paths = {id(m): path for path, m in reversed(modules)}
            for path in self._preserved:
                module = self._root.get_submodule(path)
                if known.setdefault(id(module._forward_pre_hooks), path) == path:  # twins share their hooks
                    handles.callback(module.register_forward_pre_hook(self._enter, with_kwargs=True).remove)
                    handles.callback(module.register_forward_hook(self._leave, with_kwargs=True).remove)
            yield
