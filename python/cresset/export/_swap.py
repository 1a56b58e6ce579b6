"""Programs in which modules are exchanged for others."""

import copy

from cresset import fx
from cresset.fx._codegen import _PyTreeCodeGen, _PyTreeInfo

from ._unlift import register_kinds
from .unflatten import unflatten

__all__ = ["_swap_modules"]


def _swap_modules(ep, modules_to_swap):
    """The program as a GraphModule that calls modules, of which those at the given paths are others: {path: module}.

    ValueError for a path whose signature the program does not keep (`preserve_module_call_signature` of export), as its calls would not fit the module.
    """
    kept = {entry.fqn for entry in ep.module_call_graph if entry.fqn and entry.signature is not None}
    for path in modules_to_swap:
        if path not in kept:
            raise ValueError(f"_swap_modules: the program does not keep the signature of {path!r}; it keeps those of {sorted(kept)}.")
    module = unflatten(ep)
    for path, other in modules_to_swap.items():
        owner, _, name = path.rpartition(".")
        setattr(module.get_submodule(owner), name, other)
    signature, graph = ep.module_call_graph[0].signature, copy.deepcopy(module.graph)
    register_kinds(signature.in_spec)
    names = signature.forward_arg_names or [n.name for n in graph.nodes if n.op == "placeholder"]
    graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(list(names), signature.in_spec, signature.out_spec)))
    result = fx.GraphModule(module, graph)
    result._in_spec, result._out_spec = signature.in_spec, signature.out_spec
    return result
