"""Modules with engines: the lowered graph is partitioned, and what a backend's engine has becomes one; the rest stays with the interpreter.

    compiled = cresset.engine.compile(module, inputs=[cresset.lowering.Input((1, 3, 224, 224))])
    print(cresset.engine.report(compiled))
    compiled.save("out.cre")            # jit.load reads it
"""

from __future__ import annotations

import weakref

import cresset
from cresset import _C

_C._load_graph_part()

from cresset.lowering import _inputs, _settings

__all__ = ["backends", "check_method_operator_support", "compile", "partition", "report"]

_reports = weakref.WeakKeyDictionary()  # compiled module -> its partition's text


def _script(module):
    if isinstance(module, cresset.jit.ScriptFunction):
        raise TypeError("compile: a module was required; a ScriptFunction was given. Call it from a module's forward.")
    if isinstance(module, cresset.jit.ScriptModule):
        return module
    if isinstance(module, cresset.nn.Module):
        return cresset.jit.script(module)
    raise TypeError(f"compile: a module was required; got {type(module).__name__}.")


def _arguments(inputs, torch_executed_modules, options):
    specs = _inputs(inputs)
    return specs, _settings({**options, "torch_executed_modules": list(torch_executed_modules) or None}, inputs=specs)


def compile(module, inputs=None, *, method: str = "forward", backend: str = "cpu", min_block_size: int = 3, torch_executed_ops=(), torch_executed_modules=(),
            require_full_compilation: bool = False, **options):
    """A script module whose method calls engines of `backend`; `module` itself, scripted, where no engine came of it (with a warning).

    module: a module in evaluation mode, which is scripted unless it is a script or trace; it stays as it is.
    inputs: for each input an Input (or what Input() takes, a tensor, or None): the graph is typed with them. Sizes stay values: the result takes any.
    min_block_size: segments of fewer operators stay with the interpreter; not asked where the engine has the whole.
    torch_executed_ops, torch_executed_modules: operators ("aten::relu") and submodules (paths or classes) that stay with the interpreter.
    require_full_compilation: ValueError, naming operators and places, unless the whole is one engine. Other keywords are options of lowering.
    """
    script = _script(module)
    _, settings = _arguments(inputs, torch_executed_modules, options)
    handle, text, engines = _C._engine_compile(script, method, settings, backend, min_block_size, list(torch_executed_ops), require_full_compilation)
    compiled = cresset.jit._recursive.wrap_module(handle) if engines else script
    _reports[compiled] = text
    return compiled


def partition(module, inputs=None, *, method: str = "forward", backend: str = "cpu", min_block_size: int = 3, torch_executed_ops=(), torch_executed_modules=(),
              **options) -> str:
    """What compile() would do, as text: segments, and each node with its reason and place."""
    _, settings = _arguments(inputs, torch_executed_modules, options)
    return _C._engine_partition(_script(module), method, settings, backend, min_block_size, list(torch_executed_ops))


def report(compiled) -> str:
    """The partition that compile() made of a module. ValueError for other modules."""
    if compiled not in _reports:
        raise ValueError("report: a module that compile() gave was required.")
    return _reports[compiled]


def check_method_operator_support(module, method: str = "forward", *, backend: str = "cpu", inputs=None, **options) -> list[str]:
    """The operators of a method that the backend's engine does not have, "aten::sort (file:3:4)"; empty when it has all."""
    _, settings = _arguments(inputs, (), options)
    return _C._engine_missing(_script(module), method, settings, backend)


def backends() -> list[str]:
    """Names of the backends that build engines."""
    return _C._engine_builders()
