"""Constants of a graph as its inputs."""

import collections.abc

import cresset
from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode, maybe_get_fake_mode
from cresset.export.graph_signature import CustomObjArgument, InputKind, InputSpec, TensorArgument
from cresset.fx.experimental.proxy_tensor import is_fake_object

__all__ = ["ConstantAttrMap", "lift_constants_pass"]


class ConstantAttrMap(collections.abc.MutableMapping):
    """{tensor or object of a C++ class: its paths}, by identity. `add` gives a key one more path."""

    def __init__(self):
        self._found = {}  # {id: (key, paths)}

    def __getitem__(self, key):
        if id(key) not in self._found:
            raise KeyError(key)
        return self._found[id(key)][1]

    def __setitem__(self, key, value):
        raise NotImplementedError(
            "Directly setting values for ConstantAttrMap is not supported, please use add(key, value) instead.\nThe same key can be mapped to multiple values, for handling constant aliasing."
        )

    def add(self, key, value):
        """The key is at this path too. TypeError for other keys."""
        if not isinstance(key, (cresset.Tensor, cresset.ScriptObject)) and not is_fake_object(key):
            raise TypeError(f"Expected key to be a tensor or ScriptObject, got {type(key)}")
        self._found.setdefault(id(key), (key, []))[1].append(value)

    def __delitem__(self, key):
        del self._found[id(key)]

    def __iter__(self):
        return (key for key, _ in self._found.values())

    def __len__(self):
        return len(self._found)

    def __contains__(self, key):
        return id(key) in self._found


def _attribute(module, target):
    for part in target.split("."):
        module = getattr(module, part)
    return module


def _inside(node):
    """The path of the innermost module around a node, with a dot behind it."""
    stack = node.meta.get("nn_module_stack")
    path = list(stack.values())[-1][0] if stack else ""
    return f"{path}." if path else ""


def lift_constants_pass(gm, graph_signature, constant_attrs):
    """{path: constant} of the tensors and objects of C++ classes that the graph reads from its module; they become inputs of the graph, in front of the
    user's, and the module and the signature are changed accordingly. constant_attrs: a ConstantAttrMap with the paths that constants have in the
    module that was exported; others are called lifted_tensor_0, lifted_custom_0, … below the module that reads them."""
    users = [spec.arg.name for spec in graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    nodes = {n.name: n for n in gm.graph.nodes}
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    first = nodes[users[0]] if users else next((n for n in gm.graph.nodes if n.op != "placeholder"), None)
    at = next((i for i, s in enumerate(graph_signature.input_specs) if s.kind is InputKind.USER_INPUT), len(placeholders))
    mode = maybe_get_fake_mode([n.meta.get("val") for n in placeholders]) or FakeTensorMode(allow_non_fake_inputs=True)
    constants, lifted, counts = {}, {}, {"tensor": 0, "custom": 0}
    for node in [n for n in gm.graph.nodes if n.op == "get_attr"]:
        value = _attribute(gm, node.target)
        is_tensor = isinstance(value, cresset.Tensor)
        if not is_tensor and not isinstance(value, cresset.ScriptObject) and not is_fake_object(value):
            continue  # a graph
        if id(value) in lifted:
            node.replace_all_uses_with(lifted[id(value)][1])
            gm.graph.erase_node(node)
            continue
        word = "tensor" if is_tensor else "custom"
        if constant_attrs is not None and value in constant_attrs:
            paths = constant_attrs[value]
            name = paths[0].replace(".", "_")
        else:
            name = f"lifted_{word}_{counts[word]}"
            paths = [_inside(node) + name]
            counts[word] += 1
        with gm.graph.inserting_before(first):
            new = gm.graph.placeholder(name)
        new.meta.update({k: v for k, v in node.meta.items() if k not in ("val", "tensor_meta")})
        if is_tensor:
            new.meta["val"] = value if isinstance(value, FakeTensor) else mode.from_tensor(value) if _holds_fakes(placeholders) else value
            spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(new.name), paths[0])
        else:
            name_of_class = value.script_class_name if is_fake_object(value) else value._type().qualified_name()
            new.meta["val"] = CustomObjArgument(new.name, name_of_class)
            spec = InputSpec(InputKind.CUSTOM_OBJ, CustomObjArgument(new.name, name_of_class), paths[0])
        lifted[id(value)] = value, new
        node.replace_all_uses_with(new)
        gm.graph.erase_node(node)
        graph_signature.input_specs.insert(at, spec)
        at += 1
        constants.update(dict.fromkeys(paths, value))
    gm.recompile()
    return constants


def _holds_fakes(placeholders):
    return any(isinstance(n.meta.get("val"), FakeTensor) for n in placeholders)
