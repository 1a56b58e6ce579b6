"""TS2EPConverter: scripts and traces as exported programs.

The graph is interpreted while `export` records: values that are no tensors are Python's, loops are unrolled, and branches on tensors become
`torch.cond`.
"""

import inspect

import cresset
from cresset import nn

from ._script_interpreter import Interpreter, is_supported

__all__ = ["TS2EPConverter"]


def _nodes(block):
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _mirror(script, written, known):
    """An nn.Module with the tensors and attributes of a script module, which the graph's attributes are read from. Tensors that are assigned are buffers."""
    if script._c._id in known:
        return known[script._c._id]
    module = known[script._c._id] = nn.Module()
    for name, _, is_parameter, is_buffer in script._c._attributes():
        value = getattr(script, name)
        if isinstance(value, cresset.jit.ScriptModule):
            module.add_module(name, _mirror(value, written, known))
        elif is_parameter:
            module.register_parameter(name, value)
        elif is_buffer or isinstance(value, cresset.Tensor) and name in written:
            module.register_buffer(name, value)
        else:
            setattr(module, name, value)
    return module


class _Forward:
    """A function with the names of the graph's inputs that interprets it."""

    def __init__(self, graph, module):
        self.interpreter, self.first = Interpreter(graph), [] if module is None else [module]
        names = [value.debugName().partition(".")[0] for value in list(graph.inputs())[len(self.first) :]]
        names = [name if name.isidentifier() and names.count(name) == 1 else f"input_{at}" for at, name in enumerate(names)]
        self.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])

    def __call__(self, *args, **kwargs):
        return self.interpreter.run([*self.first, *self.__signature__.bind(*args, **kwargs).args])


class TS2EPConverter:
    """TS2EPConverter(script or trace, (inputs), {keyword inputs}).convert() is the ExportedProgram of a script module, script function or trace.

    Inputs that are no tensors are constants of the program, as sizes are; a branch on such a value is taken or not, a loop over such is unrolled.
    A branch on a tensor becomes torch.cond. Attributes that are tensors and that the graph assigns are buffers of the program.
    NotImplementedError where a loop's end depends on a tensor, or where a branch on one assigns attributes or changes lists from outside.
    """

    def __init__(self, ts_model, sample_args, sample_kwargs=None):
        if not isinstance(ts_model, (cresset.jit.ScriptModule, cresset.jit.ScriptFunction)):
            raise TypeError(f"TS2EPConverter: a script module, a script function or a trace was required; a {type(ts_model).__name__} was given.")
        self.ts_model, self.sample_args, self.sample_kwargs = ts_model, tuple(sample_args), dict(sample_kwargs or {})
        self.ts_graph = ts_model.inlined_graph

    def convert(self):
        """The ExportedProgram. It shares tensors with the script."""
        if isinstance(self.ts_model, cresset.jit.ScriptModule):
            written = {node.s("name") for node in _nodes(self.ts_graph) if node.kind() == "prim::SetAttr"}
            root = _mirror(self.ts_model, written, {})
            root.forward = _Forward(self.ts_graph, root)
        else:
            root = nn.Module()
            root.forward = _Forward(self.ts_graph, None)
        return cresset.export.export(root, self.sample_args, self.sample_kwargs)

    def explain(self, print_output=True):
        """What of the graph cannot be converted, as text, one line for each operation; "" where nothing is known to be in the way."""
        text = "\n".join(dict.fromkeys(f"{node.kind()}: {node.sourceRange().strip()}" for node in _nodes(self.ts_graph) if not is_supported(node)))
        if print_output:
            print(text or "TS2EPConverter: nothing of the graph is known to be in the way.")
        return text
