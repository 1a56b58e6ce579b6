"""What programs that export modules ask."""

import cresset
from cresset.export._trace import _export
from cresset.utils._pytree import tree_map_only

__all__ = ["report_exportability"]


def _inputs_of_modules(mod, args, kwargs):
    """{path: (args, kwargs)} of the first calls of the module and of those in it that the call reaches."""
    found, hooks = {}, []

    def note(path):
        def hook(module, given, named):
            copies = tree_map_only(cresset.Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), (given, named))
            found.setdefault(path, copies)

        return hook

    try:
        for path, module in mod.named_modules():
            hooks.append(module.register_forward_pre_hook(note(path), with_kwargs=True))
        mod(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def report_exportability(mod, args, kwargs=None, *, strict=True, pre_dispatch=False):
    """{path: None, or the exception that its export raises} of a module, and where that cannot be exported, of the modules in it: of each that cannot,
    those in that one too. Paths are "" for the module itself; modules that its call does not reach are left out."""
    given = _inputs_of_modules(mod, args, {} if kwargs is None else kwargs)
    report = {}

    def visit(path, module):
        if path not in given:
            return
        try:
            _export(module, *given[path], strict=strict, pre_dispatch=pre_dispatch)
            report[path] = None
        except Exception as problem:
            report[path] = problem
            for name, child in module.named_children():
                visit(f"{path}.{name}" if path else name, child)

    visit("", mod)
    return report
