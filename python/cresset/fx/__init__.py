"""Programs as graphs: trace a module, look at its graph, change it, get a module with generated Python source.

`symbolic_trace(module)` gives a `GraphModule`. docs/guide/fx.md shows how.
"""

from functools import partial as _partial

from cresset._submodules import submodule as _submodule

from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "symbolic_trace", "Tracer", "wrap", "Graph", "GraphModule", "Interpreter", "Transformer", "Node", "replace_pattern", "has_side_effect",
    "map_arg", "Proxy", "CodeGen", "PH", "ProxyableClassMeta",
]  # fmt: skip

__getattr__ = _partial(_submodule, __name__)
