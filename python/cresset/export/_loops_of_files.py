"""map_impl, scan and associative_scan of .pt2 files as while_loop, which graphs of the IR have.

A loop carries its number, the carried tensors, and for each output a tensor of all steps, which each step writes one row of; the first step is in front of
the loop, so that the outputs' sizes are known.
"""

import io
import json
import zipfile

__all__ = ["with_loops"]

_OPERATORS = {f"torch.ops.higher_order.{name}": name for name in ("map_impl", "scan", "associative_scan")}


def _tensors(names):
    return {"as_tensors": [{"name": n} for n in names]}


def _of(name):
    return {"as_tensor": {"name": name}}


class _Nodes:
    """Nodes of one graph; names begin with the given one."""

    def __init__(self, prefix):
        self.prefix, self.found = prefix, []

    def add(self, target, arguments, outputs):
        """A node: {name of the parameter: argument}, or a list of arguments."""
        pairs = arguments.items() if isinstance(arguments, dict) else (("", a) for a in arguments)
        inputs = [{"name": name, "arg": a, "kind": 1} for name, a in pairs]
        self.found.append({"target": f"torch.ops.{target}", "inputs": inputs, "outputs": outputs, "metadata": {}, "name": f"{self.prefix}_{len(self.found)}"})

    def tensor(self, target, /, **arguments):
        """The name of the result of an operator."""
        name = f"{self.prefix}_v{len(self.found)}"
        self.add(target, arguments, [_of(name)])
        return name

    def call(self, graph, operands, count):
        """The names of the results of a graph: a condition with one branch twice."""
        names = [f"{self.prefix}_r{len(self.found)}_{i}" for i in range(count)]
        self.add("higher_order.cond", [{"as_bool": True}, {"as_graph": graph}, {"as_graph": graph}, _tensors(operands)], [_of(n) for n in names])
        return names

    def row(self, tensor, index):
        """Part of a tensor along its first dimension; index: the name of a tensor, None for the first."""
        if index is None:
            return self.tensor("aten.select.int", self=_of(tensor), dim={"as_int": 0}, index={"as_int": 0})
        rows = self.tensor("aten.index_select.default", self=_of(tensor), dim={"as_int": 0}, index=_of(index))
        return self.tensor("aten.squeeze.dim", self=_of(rows), dim={"as_int": 0})


def _names(argument):
    return [t["name"] for t in argument.get("as_tensors", ())]


class _Loop:
    """One node of a graph, taken apart."""

    def __init__(self, node):
        given = [i["arg"] for i in node["inputs"]]
        self.node, self.kind, self.body = node, _OPERATORS[node["target"]], given[0]["as_graph"]
        self.init, self.xs, self.others = ([], *map(_names, given[1:])) if self.kind != "scan" else map(_names, given[1:])
        graph = dict(self.body["graph"])
        graph["outputs"] = [o for o in graph["outputs"] if "as_none" not in o]
        self.body, self.results = {"name": self.body["name"], "graph": graph}, len(graph["outputs"])
        self.outputs = [o for o in node["outputs"] if "as_none" not in o]

    def step(self, nodes, carried, index):
        """(next carried tensors, outputs) of a step as nodes. Of associative_scan the first step's results are the first rows."""
        rows = [nodes.row(x, index) for x in self.xs]
        if self.kind == "associative_scan":
            results = rows if index is None else nodes.call(self.body, [*carried, *rows, *self.others], self.results)
            return results, results
        results = nodes.call(self.body, [*carried, *rows, *self.others], self.results)
        return results[: len(self.init)], results[len(self.init) :]

    def _graph(self, build):
        names = [*(f"c_{i}" for i in range(self.carries)), *self.xs, *self.others]
        nodes = _Nodes(f"{self.node['name']}_inner")
        outputs = build(nodes, names[0], names[1 : self.carries])
        found = {"inputs": list(map(_of, names)), "outputs": list(map(_of, outputs)), "nodes": nodes.found, "tensor_values": {}, "sym_int_values": {}}
        return {"as_graph": {"name": nodes.prefix, "graph": found}}

    def _size(self, nodes):
        name = f"{nodes.prefix}_size"
        nodes.add("aten.sym_size.int", {"self": _of(self.xs[0]), "dim": {"as_int": 0}}, [{"as_sym_int": {"as_name": name}}])
        return {"as_sym_int": {"as_name": name}}

    def _test(self, nodes, number, _):
        return [nodes.tensor("aten.lt.Scalar", self=_of(number), other=self._size(nodes))]

    def _pass(self, nodes, number, values):
        count = self.carries - 1 - len(self.rows)
        index = nodes.tensor("aten.unsqueeze.default", self=_of(number), dim={"as_int": 0})
        carried, outputs = self.step(nodes, values[:count], index)
        whole = []
        for buffer, out in zip(values[count:], outputs):
            row = nodes.tensor("aten.unsqueeze.default", self=_of(out), dim={"as_int": 0})
            whole.append(nodes.tensor("aten.index_copy_.default", self=_of(buffer), dim={"as_int": 0}, index=_of(index), source=_of(row)))
        return [nodes.tensor("aten.add.Scalar", self=_of(number), other={"as_int": 1}), *carried, *whole]

    def nodes(self):
        """The nodes in the place of the node."""
        nodes = _Nodes(self.node["name"])
        carried, self.rows = self.step(nodes, self.init, None)
        size, whole = self._size(nodes), []
        for row in self.rows:
            first = nodes.tensor("aten.unsqueeze.default", self=_of(row), dim={"as_int": 0})
            whole.append(nodes.tensor("aten.repeat_interleave.self_int", self=_of(first), repeats=size, dim={"as_int": 0}))
        start = nodes.tensor("aten.full.default", size={"as_ints": []}, fill_value={"as_int": 1}, dtype={"as_scalar_type": 5})
        begin = [start, *carried, *whole]
        self.carries = len(begin)
        ends = [f"{nodes.prefix}_end_{i}" for i in range(self.carries - len(self.outputs))]
        arguments = [self._graph(self._test), self._graph(self._pass), _tensors(begin), _tensors([*self.xs, *self.others])]
        nodes.add("higher_order.while_loop", arguments, [*map(_of, ends), *self.outputs])
        nodes.found[-1]["metadata"] = self.node["metadata"]
        return nodes.found


def _rewrite(graph):
    """Is anything in the graph, or in those in it, changed?"""
    changed, found = False, []
    for node in graph["nodes"]:
        for given in node["inputs"]:
            if "as_graph" in given["arg"]:
                changed |= _rewrite(given["arg"]["as_graph"]["graph"])
        if node["target"] in _OPERATORS:
            changed = True
            found += _Loop(node).nodes()
        else:
            found.append(node)
    graph["nodes"] = found
    return changed


def _rewritten(text):
    """The JSON of a program with loops, None where nothing is changed or it is none: what reads it then says what is wrong."""
    try:
        program = json.loads(text)
        return json.dumps(program).encode() if _rewrite(program["graph_module"]["graph"]) else None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
        return None


def with_loops(source):
    """A .pt2 file (bytes or a path) with loops for what the IR has no other form of: the source itself where there is nothing of it."""
    if not zipfile.is_zipfile(io.BytesIO(source) if isinstance(source, bytes) else source):
        return source
    with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
        entries = {n: None for n in archive.namelist()}
        for name in entries:
            if name.endswith(".json") and "/models/" in name and any(t.encode() in (text := archive.read(name)) for t in _OPERATORS):
                entries[name] = _rewritten(text)
        if not any(entries.values()):
            return source
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
            for name, text in entries.items():
                out.writestr(name, archive.read(name) if text is None else text)
    return buffer.getvalue()
