"""Norms of running statistics behind convolutions become part of their weights, in the graphs of a module and of its submodules."""

import re

import cresset
from cresset.nn.utils.fusion import fuse_conv_bn_weights

from ._script_graph import kind_of, modules_by_class, nodes_below

__all__ = ["fuse_conv_bn"]

_NORM_OF = {f"Conv{n}d": f"BatchNorm{n}d" for n in (1, 2, 3)}
_FOLDED = "_folded_bias_0"


def _class_of(module):
    """The name of a layer of nn, without the part that tells scripts apart; "" for other classes."""
    name = re.sub(r"\.___torch_mangle_\d+", "", module._type().qualified_name())
    return name.rpartition(".")[2] if ".nn.modules." in name else ""


def _called(value, owner):
    """(name, submodule) whose forward gives a value, or None."""
    node = value.node()
    if node.kind() != "prim::CallMethod" or node.s("name") != "forward" or kind_of(node.inputsAt(0)) != "prim::GetAttr":
        return None
    name = node.inputsAt(0).node().s("name")
    module = getattr(owner.getattr(name), "_c", None) if kind_of(node.inputsAt(0).node().inputsAt(0)) == "prim::Param" else None
    return None if module is None else (name, module)


def _pairs_in(graph, owner):
    """[(call of the norm, name of the convolution, name of the norm), …] of one method."""
    found = []
    for node in nodes_below(graph):
        norm = _called(node.output(), owner) if node.kind() == "prim::CallMethod" else None
        conv = None if norm is None or node.inputsSize() < 2 else _called(node.inputsAt(1), owner)
        if conv is None or len(node.inputsAt(1).uses()) != 1 or _NORM_OF.get(_class_of(conv[1])) != _class_of(norm[1]):
            continue
        found.append((node, conv[0], norm[0]))
    return found


def fuse_conv_bn(model):
    """Change the module, which nothing else has: its norms in training stay as they are."""
    classes = modules_by_class(model._c)
    for modules in classes.values():
        if not modules[0]._has_method("forward"):
            continue
        for call, conv_name, norm_name in _pairs_in(modules[0]._get_method("forward").graph, modules[0]):
            pairs = [(module.getattr(conv_name)._c, module.getattr(norm_name)._c) for module in modules]
            if any(norm.getattr("training") or norm.getattr("running_mean") is None for _, norm in pairs):
                continue
            for conv, norm in pairs:
                _fold(conv, norm, classes)
            call.output().replaceAllUsesWith(call.inputsAt(1))
            call.destroy()


def _fold(conv, norm, classes):
    of = lambda module, name: module.getattr(name) if module.hasattr(name) else None  # noqa: E731
    weight, bias = fuse_conv_bn_weights(
        conv.getattr("weight"), of(conv, "bias"), norm.getattr("running_mean"), norm.getattr("running_var"), _eps_of(norm), of(norm, "weight"), of(norm, "bias")
    )
    conv.setattr("weight", weight)
    if of(conv, "bias") is not None:
        conv.setattr("bias", bias)
        return
    _take_bias(conv, classes)
    conv.setattr(_FOLDED, bias.detach())


def _eps_of(norm):
    if norm.hasattr("eps"):
        return norm.getattr("eps")
    graph = norm._get_method("forward").graph  # of a trace
    return next(node.inputsAt(7).toIValue() for node in nodes_below(graph) if node.kind() == "aten::batch_norm")


def _take_bias(conv, classes):
    """A convolution without a bias has one from now on, and all of its class: zeros at first."""
    if conv.hasattr(_FOLDED):
        return
    of_type = cresset._C.TensorType.get()
    for module in classes[conv._type().qualified_name()]:
        weight = module.getattr("weight")
        module._register_attribute(_FOLDED, of_type, weight.new_zeros(weight.shape[0]).detach())
    graph = conv._get_method("forward").graph
    for node in list(nodes_below(graph)):
        position = 3 if node.kind() == "prim::CallMethod" and node.s("name") == "_conv_forward" else 2 if "conv" in node.kind() else None
        if position is not None:
            got = graph.create("prim::GetAttr", [next(iter(graph.inputs()))])
            got.s_("name", _FOLDED)
            got.insertBefore(node)
            got.output().setType(of_type)
            node.replaceInput(position, got.output())
