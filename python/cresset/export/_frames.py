"""Calls of modules in a flat graph, as graphs of their own that call each other.

Each call is a frame. A node belongs to the innermost call that its meta["nn_module_stack"] names; what it takes from elsewhere becomes an input of the
frame, what others take from it an output. Tensors of the state are read where they are used.
"""

import dataclasses
import operator

import cresset
from cresset import fx
from cresset.fx import _pytree as fx_pytree
from cresset.utils import _pytree as pytree

from .graph_signature import ConstantArgument, InputKind, OutputKind

__all__ = ["Frame", "split"]


@dataclasses.dataclass(eq=False)
class Frame:
    """path: of the module; name: that of the call below its parent ("n@1" for the second call); accessor: the same from the root."""

    path: str
    name: str
    parent: "Frame | None"
    signature: object = None  # ModuleCallSignature, where it is preserved
    graph: fx.Graph = dataclasses.field(default_factory=fx.Graph)
    nodes: dict = dataclasses.field(default_factory=dict)  # {flat node: node of the graph}
    inputs: list = dataclasses.field(default_factory=list)  # flat nodes
    children: list = dataclasses.field(default_factory=list)
    attributes: dict = dataclasses.field(default_factory=dict)  # that the graph reads and that are no tensors: {name: value}
    shared: dict = dataclasses.field(default_factory=dict)  # tensors from elsewhere: {attribute: name in the state}
    reads: list = dataclasses.field(default_factory=list)  # the nodes that read tensors
    same_as: "Frame | None" = None  # an earlier call with the same graph, which is called in its place
    head: object = None  # the last placeholder
    target: str | None = None  # what the parent calls

    @property
    def accessor(self):
        return self.name if self.parent is None or not self.parent.accessor else f"{self.parent.accessor}.{self.name}"

    def within(self, other):
        """Is it the other frame, or below it?"""
        frame = self
        while frame is not None and frame is not other:
            frame = frame.parent
        return frame is other


def _written(node):
    """The node that an operator in place writes to and gives back, or None."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or len(schema.returns) != 1 or not schema.arguments or not node.args:
        return None
    first, result = schema.arguments[0].alias_info, schema.returns[0].alias_info
    same = first is not None and result is not None and first.is_write and result.is_write
    return node.args[0] if same and isinstance(node.args[0], fx.Node) else None


def _stack(node):
    """[(key, path)] of the calls around a node below the root; a module that is not below the one before is taken for part of that."""
    found, above = [], ""
    for key, (path, _) in (node.meta.get("nn_module_stack") or {}).items():
        if path and (not above or path.startswith(above + ".")):
            found.append((key, path))
            above = path
    return found


class _Splitting:
    def __init__(self, program):
        self.program, self.flat, self.root = program, list(program.graph.nodes), Frame("", "", None)
        self.by_name = {n.name: n for n in self.flat}
        self.signatures = {e.fqn: e.signature for e in program.module_call_graph if e.fqn and e.signature is not None}
        self.state = self._state()
        for node in self.flat:  # what an operator in place gives is the tensor that it wrote to
            if node.op == "call_function" and (written := _written(node)) in self.state:
                self.state[node] = self.state[written]
        self.home, self.calls = {}, {}  # {flat node: its frame}, {key: frame}

    def _state(self):
        """{placeholder: names of its tensor, its own first}: what the program reads from the module and its constants. Written nodes come later."""
        tensors = {**self.program.state_dict, **self.program.constants}
        names = {}
        for name, tensor in tensors.items():
            names.setdefault(id(tensor), []).append(name)
        found = {}
        for spec in self.program.graph_signature.input_specs:
            if spec.kind is not InputKind.USER_INPUT:
                others = names[id(tensors[spec.target])]
                found[self.by_name[spec.arg.name]] = [spec.target, *(n for n in others if n != spec.target)]
        return found

    # --- which node is in which frame

    def assign(self):
        """Frames of all nodes. A call whose nodes do not stand together ends where others begin; what comes later belongs to the calls around it."""
        open_frames, ended = [self.root], set()
        for node in self.flat:
            if node.op != "call_function":
                continue
            if "nn_module_stack" not in node.meta:  # arithmetic of sizes
                self.home[node] = self.root
                continue
            stack, depth = _stack(node), 0
            while depth < len(stack) and depth + 1 < len(open_frames) and self.calls.get(stack[depth][0]) is open_frames[depth + 1]:
                depth += 1
            ended.update(map(id, open_frames[depth + 1 :]))
            del open_frames[depth + 1 :]
            for key, path in stack[depth:]:
                frame = self.calls.get(key)
                if frame is None:
                    frame = self.calls[key] = self._frame(key, path, open_frames[-1])
                if id(frame) in ended or frame.parent is not open_frames[-1]:
                    break
                open_frames.append(frame)
            self.home[node] = open_frames[-1]

    def _frame(self, key, path, parent):
        _, at, number = key.rpartition("@")
        suffix = f"@{number}" if at and number.isdigit() else ""
        frame = Frame(path, (path[len(parent.path) + 1 :] if parent.path else path) + suffix, parent, self.signatures.get(path + suffix))
        parent.children.append(frame)
        return frame

    # --- the graphs

    def run(self):
        self.assign()
        for node in self.flat:
            if node.op == "placeholder" and node not in self.state:
                self.root.nodes[node] = self.root.head = self.root.graph.node_copy(node)
        current = self.root
        for node in self.flat:
            home = self.home.get(node)
            if home is None:
                continue
            if "nn_module_stack" in node.meta:
                while not home.within(current):
                    current = self._close(current)
                for frame in self._below(current, home):
                    self._open(frame)
                current = home
            home.nodes[node] = home.graph.node_copy(node, lambda n, home=home: self.value(home, n))
        while current is not self.root:
            current = self._close(current)
        self._output()
        return self.root

    def _below(self, outer, inner):
        found = []
        while inner is not outer:
            found.append(inner)
            inner = inner.parent
        return reversed(found)

    def _at_head(self, frame, make):
        """A node behind the placeholders."""
        if frame.head is None:
            first = next(iter(frame.graph.nodes), None)
            with frame.graph.inserting_before(first):
                frame.head = make()
        else:
            with frame.graph.inserting_after(frame.head):
                frame.head = make()
        return frame.head

    def value(self, frame, node):
        """The node of a frame's graph for a node of the flat one."""
        if node in frame.nodes:
            return frame.nodes[node]
        if node.op == "get_attr":  # a graph of a branch
            frame.attributes[node.target] = getattr(self.program.graph_module, node.target)
            new = frame.graph.create_node("get_attr", node.target)
        elif node in self.state and (name := self._name_below(frame, node)) is not None:
            new = self._read(frame, name)
        elif frame.parent is None:
            raise NotImplementedError(f"unflatten: {node.name} is used before the call that makes it has ended.")
        elif frame.signature is not None:
            return self._in_signature(frame, node)
        else:
            new = self._placeholder(frame, node)
        new.meta = dict(node.meta)
        frame.nodes[node] = new
        return new

    def _read(self, frame, name):
        """An attribute, behind all placeholders."""
        last = next((n for n in reversed(list(frame.graph.nodes)) if n.op == "placeholder"), None)
        at = frame.reads[-1] if frame.reads else last
        with frame.graph.inserting_after(at) if at is not None else frame.graph.inserting_before(next(iter(frame.graph.nodes), None)):
            new = frame.graph.create_node("get_attr", name, name=name.replace(".", "_"))
        frame.reads.append(new)
        return new

    def _name_below(self, frame, node):
        prefix = f"{frame.path}." if frame.path else ""
        return next((name[len(prefix) :] for name in self.state[node] if name.startswith(prefix)), None)

    def _placeholder(self, frame, node):
        frame.inputs.append(node)
        return self._at_head(frame, lambda: frame.graph.create_node("placeholder", node.name, name=node.name))

    def _in_signature(self, frame, node):
        """What a frame with its own signature takes from elsewhere: a tensor of the state, or a size that follows from its inputs."""
        if node in self.state:
            target = self.state[node][0]
            name = "_shared_" + target.replace(".", "_")
            frame.shared[name] = target
            new = self._read(frame, name)
            new.meta = dict(node.meta)
        elif node.op == "call_function" and "nn_module_stack" not in node.meta:
            new = frame.graph.node_copy(node, lambda n: self.value(frame, n))
        else:
            raise NotImplementedError(
                f"unflatten: the module {frame.path} uses {node.name}, which is no input of its call, so its signature cannot be preserved. "
                "Leave it out of preserve_module_call_signature."
            )
        frame.nodes[node] = new
        return new

    def _spec(self, frame, spec):
        number = sum(name.startswith("_spec_") for name in frame.attributes)
        frame.attributes[f"_spec_{number}"] = spec
        return frame.graph.create_node("get_attr", f"_spec_{number}")

    def _item(self, frame, node, i):
        return frame.graph.call_function(operator.getitem, (node, i))

    def _open(self, frame):
        signature = frame.signature
        if signature is None:
            return
        args_spec, kwargs_spec = signature.in_spec.children_specs
        args = tuple(frame.graph.placeholder(f"_positional_arg_{i}") for i in range(args_spec.num_children))
        kwargs = {name: frame.graph.placeholder(name) for name in kwargs_spec.context}
        flat = frame.graph.call_function(fx_pytree.tree_flatten_spec, ((args, kwargs), self._spec(frame, signature.in_spec)))
        for i, argument in enumerate(signature.inputs):
            node = None if isinstance(argument, ConstantArgument) else self.by_name.get(argument.name)
            if node is not None:
                frame.nodes[node] = self._item(frame, flat, i)
                frame.nodes[node].meta["val"] = node.meta.get("val")

    # --- the end of a call

    def _close(self, frame):
        """Its outputs, and the call in the parent's graph. The parent."""
        parent = frame.parent
        made = [n for n in frame.nodes if n not in self.state and n.op == "call_function" and self.home[n].within(frame)]
        used = [n for n in made if any(u.op == "output" or not self.home[u].within(frame) for u in n.users)]
        if frame.signature is None:
            self._plain_call(frame, parent, used)
        else:
            self._call_with_signature(frame, parent, used)
        return parent

    def _plain_call(self, frame, parent, used):
        inner = [frame.nodes[n] for n in used]
        frame.graph.output(inner[0] if len(inner) == 1 else tuple(inner))
        frame.same_as = next((f for f in parent.children if f is not frame and f.target and f.same_as is None and f.path == frame.path and _same(f, frame)), None)
        frame.target = frame.same_as.target if frame.same_as else frame.name
        args = tuple(self.value(parent, n) for n in frame.inputs)
        call = parent.graph.create_node("call_module", frame.target, args, {}, name=frame.name.replace(".", "_").replace("@", "_"))
        values = [n.meta.get("val") for n in used]
        call.meta["val"] = values[0] if len(used) == 1 else tuple(values)
        for i, node in enumerate(used):
            parent.nodes[node] = call if len(used) == 1 else self._item(parent, call, i)
            parent.nodes[node].meta["val"] = values[i]

    def _call_with_signature(self, frame, parent, used):
        signature = frame.signature
        outputs = [None if isinstance(a, ConstantArgument) else self.by_name.get(a.name) for a in signature.outputs]
        missing = [n.name for n in used if n not in outputs]
        if missing:
            raise NotImplementedError(
                f"unflatten: {', '.join(missing)} of the module {frame.path} is used outside of it and is no output of its call, so its signature cannot be "
                "preserved. Leave it out of preserve_module_call_signature."
            )
        leaves = [a.value if n is None and isinstance(a, ConstantArgument) else n and self.value(frame, n) for a, n in zip(signature.outputs, outputs)]
        spec = self._spec(frame, signature.out_spec)
        frame.graph.output(frame.graph.call_function(pytree.tree_unflatten, (tuple(leaves), spec)))
        frame.target = frame.name.rpartition("@")[0] or frame.name
        given = []
        for argument in signature.inputs:
            node = None if isinstance(argument, ConstantArgument) else self.by_name.get(argument.name)
            given.append(argument.value if isinstance(argument, ConstantArgument) else node and self.value(parent, node))
        both = parent.graph.call_function(pytree.tree_unflatten, (given, self._spec(parent, signature.in_spec)))
        args_spec, kwargs_spec = signature.in_spec.children_specs
        args, kwargs = self._item(parent, both, 0), self._item(parent, both, 1)
        args = tuple(self._item(parent, args, i) for i in range(args_spec.num_children))
        kwargs = {name: self._item(parent, kwargs, name) for name in kwargs_spec.context}
        call = parent.graph.create_node("call_module", frame.target, args, kwargs, name=frame.name.replace(".", "_").replace("@", "_"))
        flat = parent.graph.call_function(fx_pytree.tree_flatten_spec, (call, self._spec(parent, signature.out_spec)))
        for i, node in enumerate(outputs):
            if node is not None and node not in self.state:
                parent.nodes[node] = self._item(parent, flat, i)
                parent.nodes[node].meta["val"] = node.meta.get("val")

    def _output(self):
        """The output of the root: the user's; new values of the state and of inputs are written in front of it."""
        output, results, by_target = self.flat[-1], [], {}
        for placeholder, names in self.state.items():
            by_target.update(dict.fromkeys(names, placeholder))
        for spec, value in zip(self.program.graph_signature.output_specs, output.args[0]):
            new = self.value(self.root, value) if isinstance(value, fx.Node) else value
            if spec.kind is OutputKind.USER_OUTPUT:
                results.append(new)
            else:
                written = self.by_name[spec.target] if spec.kind is OutputKind.USER_INPUT_MUTATION else by_target[spec.target]
                copied = self.root.graph.call_function(cresset.ops.aten.copy_.default, (self.value(self.root, written), new))
                copied.meta["val"] = written.meta.get("val")
        self.root.graph.output(tuple(results))


def _form(frame):
    """What two calls of a module have to have in common to be one: everything but names."""
    numbers, found = {}, []
    for node in frame.graph.nodes:
        numbers[node] = len(numbers)
        target = None if node.op == "placeholder" else node.target
        if node.op == "call_module":
            child = next(f for f in frame.children if f.target == node.target)
            target = child.path, _form(child)
        found.append((node.op, target, pytree.tree_map(lambda a: numbers[a] if isinstance(a, fx.Node) else a, (node.args, dict(node.kwargs)))))
    return found


def _same(one, other):
    plain = not one.attributes and not other.attributes
    return plain and one.signature is None and other.signature is None and repr(_form(one)) == repr(_form(other))


def split(program):
    """The root Frame of an ExportedProgram."""
    return _Splitting(program).run()
