"""Graphs as pictures, by Graphviz."""

import hashlib

import cresset

from .._annotations import parse_stack_trace as _parse
from ..node import _format_arg, _get_qualified_name

__all__ = ["FxGraphDrawer"]

_COLOR_MAP = {"placeholder": '"AliceBlue"', "call_module": "LemonChiffon1", "get_param": "Yellow2", "get_attr": "LightGrey", "output": "PowderBlue"}
_HASH_COLOR_MAP = ["CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1", "LavenderBlush1", "LightSkyBlue", "MistyRose1",
                   "MistyRose2", "PaleTurquoise2", "PeachPuff1", "Salmon", "Thistle1", "Thistle3", "Wheat1"]  # fmt: skip
_WEIGHT_TEMPLATE = {"fillcolor": "Salmon", "style": '"filled,rounded"', "fontcolor": "#000000"}


class FxGraphDrawer:
    """The graph of a GraphModule as a pydot.Dot: get_dot_graph(), get_main_dot_graph(), get_submod_dot_graph(name).

    ignore_getattr, ignore_parameters_and_buffers: these have no boxes of their own. RuntimeError without the package pydot.
    """

    def __init__(
        self, graph_module, name, ignore_getattr=False, ignore_parameters_and_buffers=False, skip_node_names_in_args=True, parse_stack_trace=False,
        dot_graph_shape=None, normalize_args=False,
    ):  # fmt: skip
        try:
            import pydot
        except ImportError as error:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite Python package manager."
            ) from error
        self._pydot, self._name = pydot, name
        self.dot_graph_shape, self.normalize_args = dot_graph_shape or "record", normalize_args
        self._skip_names, self._parse_stack_trace = skip_node_names_in_args, parse_stack_trace
        self._dot_graphs = {name: self._to_dot(graph_module, name, ignore_getattr, ignore_parameters_and_buffers)}
        for node in graph_module.graph.nodes:
            if node.op != "call_module":
                continue
            leaf = graph_module.get_submodule(node.target)
            if hasattr(leaf, "graph") and hasattr(leaf, "recompile"):
                key = f"{name}_{node.target}"
                self._dot_graphs[key] = self._to_dot(leaf, key, ignore_getattr, ignore_parameters_and_buffers)

    def get_dot_graph(self, submod_name=None):
        """The picture of the module, or of a submodule."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self):
        """The picture of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name):
        """The picture of a submodule that is a GraphModule."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self):
        """{name: picture}"""
        return self._dot_graphs

    def _style(self, node):
        style = {"shape": self.dot_graph_shape, "fillcolor": "#CAFFE3", "style": '"filled,rounded"', "fontcolor": "#000000"}
        if node.op in _COLOR_MAP:
            style["fillcolor"] = _COLOR_MAP[node.op]
        else:
            text = node._pretty_print_target(node.target)
            at = int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8], 16)
            style["fillcolor"] = _HASH_COLOR_MAP[at % len(_HASH_COLOR_MAP)]
        return style

    def _label(self, module, node):
        lines = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            leaf = module.get_submodule(node.target)
            lines.append(cresset.typename(leaf))
            constants = [f"{c}: {getattr(leaf, c)}" for c in getattr(leaf, "__constants__", ())]
            if constants:
                lines.append("\\n".join(constants))
        else:
            text = node.target if isinstance(node.target, str) else _get_qualified_name(node.target)
            lines.append(f"target={text}")
            for word, values in (("args", node.args), ("kwargs", node.kwargs)):
                if values:
                    lines.append(f"{word}={_format_arg(values)}")
        lines.append(f"num_users={len(node.users)}")
        meta = node.meta.get("tensor_meta")
        if hasattr(meta, "dtype"):
            lines += [f"dtype={meta.dtype}", f"shape={tuple(meta.shape)}", f"requires_grad={meta.requires_grad}", f"stride={tuple(meta.stride)}"]
        if self._parse_stack_trace and node.stack_trace:
            parsed = _parse(node.stack_trace)
            if parsed:
                lines.append(f"file={parsed[0]}:{parsed[1]}")
        text = "|".join(lines)
        for mark in "<>{}":
            text = text.replace(mark, "\\" + mark)
        return "{" + text + "}"

    def _to_dot(self, module, name, ignore_getattr, ignore_parameters):
        dot = self._pydot.Dot(name, rankdir="TB")
        for node in module.graph.nodes:
            if ignore_getattr and node.op == "get_attr":
                continue
            dot.add_node(self._pydot.Node(node.name, label=self._label(module, node), **self._style(node)))
            if node.op == "call_module" and not ignore_parameters:
                leaf = module.get_submodule(node.target)
                for path, value in [*leaf.named_parameters(), *leaf.named_buffers()]:
                    key = f"{node.name}.{path}"
                    label = f"{{{key}|op_code=get_parameter|{cresset.typename(value)}|shape={tuple(value.shape)}}}"
                    dot.add_node(self._pydot.Node(key, label=label, shape=self.dot_graph_shape, **_WEIGHT_TEMPLATE))
                    dot.add_edge(self._pydot.Edge(key, node.name))
        for node in module.graph.nodes:
            if ignore_getattr and node.op == "get_attr":
                continue
            for user in node.users:
                dot.add_edge(self._pydot.Edge(node.name, user.name))
        return dot
