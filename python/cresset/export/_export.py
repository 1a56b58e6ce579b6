"""export: a module and example inputs become a program."""

import contextlib

import cresset
from cresset import compiler
from cresset.utils import _pytree as pytree

from ._dynamic import trace_sizes
from ._errors import invalid_input
from ._trace_program import argument_names, input_names
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, signature_of
from .graph_signature import ExportGraphSignature

__all__ = ["export"]


@contextlib.contextmanager
def exporting():
    """For a block compiler.is_exporting() is True."""
    compiler._exporting += 1
    try:
        yield
    finally:
        compiler._exporting -= 1


def export(mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, preserve_module_call_signature=(), prefer_deferred_runtime_asserts_over_guards=False):
    """The program that a module runs for such inputs, as an ExportedProgram. The module stays as it was, and nothing is computed.

    args, kwargs: example inputs; tensors in registered containers, numbers and strings, which are constants of the program.
    dynamic_shapes: which sizes may vary (see `Dim`), as the inputs are nested, or by the names of forward's arguments; all others are checked by the
    program's module. The code is then run at several sizes: what differs between the runs must follow from the sizes by a rule that export finds.
    UserError where it does not, or where other operators run. A branch on a size at which none of these runs looks is not seen: give Dim a min and
    a max that stay on one side of it.
    strict: taken for programs that pass it; the code is run in either case.
    preserve_module_call_signature: paths of modules that `unflatten` gives the signature of their forward, so that others can take their place; the
    module_call_graph has it. AttributeError where there is no such module.
    """
    del strict, prefer_deferred_runtime_asserts_over_guards
    if isinstance(mod, cresset.jit.ScriptModule):
        raise ValueError("Exporting a ScriptModule is not supported. Maybe try converting your ScriptModule to an ExportedProgram using TS2EPConverter.")
    if not isinstance(mod, cresset.nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise invalid_input(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    kwargs = {} if kwargs is None else kwargs
    if not isinstance(kwargs, dict):
        raise invalid_input(f"Expecting `kwargs` to be a dict of example keyword inputs, got {type(kwargs)}")
    names, preserved = input_names(mod, args, kwargs), tuple(preserve_module_call_signature)
    with exporting():
        traced, ranges = trace_sizes(mod, args, kwargs, names, dynamic_shapes, preserved)
    return _program(mod, args, kwargs, traced, ranges)


def _program(mod, args, kwargs, traced, ranges):
    in_spec = pytree.tree_structure((args, kwargs))
    state = {p: t for p, t in mod.named_parameters(remove_duplicate=False)}
    constants = dict(traced.constants)
    for spec in traced.inputs:
        if spec.persistent is not None:
            (state if spec.persistent else constants)[spec.target] = _at(mod, spec.target)
    signature = ModuleCallSignature([], [], in_spec, traced.out_spec, _forward_names(mod, args, kwargs))
    calls = [ModuleCallEntry("", signature), *_calls(mod, traced.calls)]
    root = cresset.nn.Module()
    for name, inner in traced.inner.items():
        setattr(root, name, inner)
    module = cresset.fx.GraphModule(root, traced.graph, "GraphModule")
    module.training = mod.training
    if isinstance(mod, cresset.fx.GraphModule) and "custom" in mod.meta:
        module.meta["custom"] = mod.meta["custom"]
    module.meta["called"], module.meta["values"] = traced.called, traced.samples
    return ExportedProgram(module, traced.graph, ExportGraphSignature(traced.inputs, traced.outputs), state, ranges, calls, (args, kwargs), constants)


def _calls(mod, preserved):
    """ModuleCallEntries of all modules by their paths, and of further calls of those that are preserved."""
    for path, _ in mod.named_modules(remove_duplicate=False):
        if path:
            yield ModuleCallEntry(path, signature_of(preserved.get(path)))
            yield from (ModuleCallEntry(name, signature_of(call)) for name, call in preserved.items() if name.startswith(f"{path}@"))


def _at(mod, path):
    for part in path.split("."):
        mod = getattr(mod, part)
    return mod


def _forward_names(mod, args, kwargs):
    names = []
    for name, value in argument_names(mod, args, kwargs).items():
        variadic = name not in kwargs and name in _variadic(mod)
        names += [f"{name}_{i}" for i in range(len(value))] if variadic else [name]
    return names


def _variadic(mod):
    import inspect

    return {n for n, p in inspect.signature(mod.forward).parameters.items() if p.kind is inspect.Parameter.VAR_POSITIONAL}
