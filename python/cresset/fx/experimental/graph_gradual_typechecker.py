"""Types of the nodes of a graph, from the types of its placeholders, where sizes may be unknown (Dyn): errors of shape before anything runs.

GraphTypeChecker gives each node a type by the rule of its function or module; Refine gives unknown sizes names, and says which are the same.
"""

import functools
import math
import operator

import cresset
from cresset import nn
from cresset.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

from .refinement_types import Equality

__all__ = ["GraphTypeChecker", "Refine", "Var", "broadcast_types", "register_inference_rule", "register_refinement_rule"]

_INFERENCE_RULES, _REFINEMENT_RULES = {}, {}


def _register(rules, target):
    def keep(rule):
        if target in rules:
            raise RuntimeError(f"Rule already registered for target {target}!")
        rules[target] = rule
        return rule

    return keep


def register_inference_rule(call_target):
    """A decorator for rule(node) of a function, rule(node, module) of a class of modules: it gives the node its type, or raises TypeError."""
    return _register(_INFERENCE_RULES, call_target)


def register_refinement_rule(call_target):
    """A decorator for rule(node) of a function or of a class of modules: the list of Equality that it makes true."""
    return _register(_REFINEMENT_RULES, call_target)


# --- types


def _upper_bound(a, b):
    """The type that says what both say; TypeError where they contradict one another."""
    if a == Dyn:
        return b
    if b == Dyn:
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType) and is_consistent(a, b):
        return TensorType(tuple(d if is_more_precise(d, e) else e for d, e in zip(a.__args__, b.__args__)))
    if a == b:
        return a
    raise TypeError(f"Inconsistent types {a}, {b}")


def _of_rank(type, rank):
    """The type, with unknown sizes where nothing is known."""
    if type == Dyn:
        return TensorType((Dyn,) * rank)
    if not isinstance(type, TensorType):
        raise TypeError(f"Cannot match the type {type}")
    if len(type.__args__) != rank:
        raise TypeError(f"Cannot extend tensor. Tensor {type} has rank {len(type.__args__)}. It should have rank {rank}")
    return type


def broadcast_types(t1, t2):
    """Both types with the sizes that they have after broadcasting, where these are known; as they are where one is Dyn. TypeError for what is no tensor."""
    if t1 == Dyn or t2 == Dyn:
        return t1, t2
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        raise TypeError(f"Cannot broadcast types {t1} and {t2}")
    rank = max(len(t1.__args__), len(t2.__args__))
    a, b = ([*(1,) * (rank - len(t.__args__)), *t.__args__] for t in (t1, t2))
    for i, (x, y) in enumerate(zip(a, b)):
        if x == 1:
            a[i] = y
        elif y == 1:
            b[i] = x
    return TensorType(tuple(a)), TensorType(tuple(b))


def _pair(value):
    return value if isinstance(value, tuple) else (value, value)


def _window(size, module, which):
    """How many places a window of a convolution or of a pool has along one of the last two dimensions."""
    kernel, stride, padding, dilation = (_pair(getattr(module, name))[which] for name in ("kernel_size", "stride", "padding", "dilation"))
    if size == Dyn or not isinstance(padding, int):
        return Dyn
    steps = size + 2 * padding - dilation * (kernel - 1) - 1
    if getattr(module, "ceil_mode", False):
        count = -(-steps // stride) + 1
        return count - 1 if (count - 1) * stride >= size + padding else count  # no window begins in the padding behind
    return steps // stride + 1


# --- rules of functions


@register_inference_rule(cresset.add)
@register_inference_rule(operator.add)
def _add(n):
    a, b = n.args
    if not isinstance(a, cresset.fx.Node) or not isinstance(b, cresset.fx.Node):
        node = a if isinstance(a, cresset.fx.Node) else b
        n.type = _upper_bound(n.type, node.type)
        return n.type
    t1, t2 = a.type, b.type
    if t1 is int and isinstance(t2, TensorType) or t2 is int and isinstance(t1, TensorType):
        n.type = t2 if t1 is int else t1
        return n.type
    wide1, wide2 = broadcast_types(t1, t2)
    n.meta["broadcast"] = wide1 != t1 or wide2 != t2
    if n.meta["broadcast"]:
        n.meta[str(a)], n.meta[str(b)] = wide1, wide2
    if not is_consistent(wide1, wide2):
        raise TypeError(f"Cannot add arguments {a} ({a.type}) and {b} ({b.type}) in node {n}. Types should match ")
    if isinstance(wide1, TensorType) and isinstance(wide2, TensorType):
        n.type = TensorType(tuple(d if d == e else Dyn for d, e in zip(wide1.__args__, wide2.__args__)))
    else:
        n.type = Dyn
    return n.type


@register_inference_rule(getattr)
def _getattr(n):
    name = n.args[1]
    n.type = cresset.device if name == "device" else Dyn
    return n.type


@register_inference_rule(cresset.transpose)
def _transpose(n):
    type, first, second = n.args[0].type, *n.args[1:3]
    if type == Dyn:
        n.type = Dyn
        return n.type
    if isinstance(type, TensorType):
        sizes, rank = list(type.__args__), len(type.__args__)
        if -rank <= first < rank and -rank <= second < rank:
            sizes[first], sizes[second] = sizes[second], sizes[first]
            n.type = _upper_bound(n.type, TensorType(sizes))
            return n.type
    raise TypeError(f"Cannot transpose {first} and {second} in type {type} for node {n}")


@register_inference_rule(cresset.reshape)
def _reshape(n):
    type, wanted = n.args[0].type, n.args[1]
    made = TensorType([Dyn if size == -1 else size for size in wanted])
    n.type = _upper_bound(made, n.type)
    if type == Dyn:
        return n.type
    if isinstance(type, TensorType):
        have, want = (math.prod(d for d in t.__args__ if d != Dyn) for t in (type, made))
        free = sum(d == Dyn for d in type.__args__), sum(d == Dyn for d in made.__args__)
        if have == want if free == (0, 0) else have % want == 0 if free[0] == 0 else want % have == 0 if free[1] == 0 else want % have == 0 or have % want == 0:
            return n.type
    raise TypeError(f"Cannot reshape in node {n} from {type} to {made}")


@register_inference_rule(cresset.flatten)
def _flatten(n):
    type = n.args[0].type
    start, end = _ends_of_flatten(n)
    if type == Dyn:
        n.type = Dyn if n.type is None else n.type
        return n.type
    if not isinstance(type, TensorType):
        return n.type
    sizes, rank = type.__args__, len(type.__args__)
    first, last = start + rank if start < 0 else start, end + rank if end < 0 else end
    if not 0 <= first <= last < rank:
        raise TypeError(f"Incompatible dimensions {start}, {end} in type {type}")
    between = sizes[first : last + 1]
    one = Dyn if any(d == Dyn for d in between) else math.prod(between)
    n.type = _upper_bound(TensorType((*sizes[:first], one, *sizes[last + 1 :])), n.type)
    return n.type


def _ends_of_flatten(n):
    given = [*n.args[1:], *(None,) * (3 - len(n.args))]
    start = n.kwargs.get("start_dim", 0) if given[0] is None else given[0]
    return start, n.kwargs.get("end_dim", -1) if given[1] is None else given[1]


# --- rules of modules


@register_inference_rule(nn.ReLU)
def _relu(n, module):
    type = n.args[0].type
    if isinstance(type, TensorType):
        n.type = _upper_bound(type, n.type)
    return n.type


@register_inference_rule(nn.BatchNorm2d)
def _batch_norm(n, module):
    n.args[0].type = input = _of_rank(n.args[0].type, 4)
    mine = _of_rank(n.type, 4)
    channels = TensorType((Dyn, module.num_features, Dyn, Dyn))
    if not (is_consistent(input, mine) and is_consistent(input, channels) and is_consistent(mine, channels)):
        raise TypeError(f"Cannot apply {module} with input type {input} and existing type {n.type} on {n}")
    n.type = _upper_bound(input, mine)
    return n.type


@register_inference_rule(nn.Conv2d)
def _conv(n, module):
    n.args[0].type = input = _of_rank(n.args[0].type, 4)
    _of_rank(n.type, 4)
    if not is_consistent(input.__args__[1], module.in_channels):
        raise TypeError(f"Cannot apply {module} with input type {input} and existing type {n.type} on {n}")
    batch, _, *image = input.__args__
    if module.padding != "same":
        image = [_window(size, module, i) for i, size in enumerate(image)]
    n.type = _upper_bound(TensorType((batch, module.out_channels, *image)), n.type)
    return n.type


def _of_images(n, sizes_of, refusal):
    type = n.args[0].type
    if isinstance(type, TensorType):
        if len(type.__args__) not in (3, 4):
            raise TypeError(refusal(type))
        n.type = _upper_bound(TensorType((*type.__args__[:-2], *sizes_of(type.__args__[-2:]))), n.type)
    return n.type


@register_inference_rule(nn.MaxPool2d)
def _max_pool(n, module):
    return _of_images(n, lambda image: [_window(size, module, i) for i, size in enumerate(image)], lambda type: f"Wrong size {type} for {module}")


@register_inference_rule(nn.AdaptiveAvgPool2d)
def _adaptive_pool(n, module):
    def sizes(image):
        return [have if want is None else want for have, want in zip(image, _pair(module.output_size))]

    return _of_images(n, sizes, lambda type: f"Tensor ranks must be 3 or 4. Got {type}")


@register_inference_rule(nn.Linear)
def _linear(n, module):
    type = n.args[0].type
    if isinstance(type, TensorType):
        if len(type.__args__) < 2:
            raise TypeError(f"Type {type} must have rank 2 or more.")
        if not is_consistent(type.__args__[-1], module.in_features):
            raise TypeError(f"Inconsistent {module.in_features} and {type.__args__[-1]} in {module}")
        n.type = _upper_bound(TensorType((*type.__args__[:-1], module.out_features)), n.type)
    return n.type


# --- graphs


class GraphTypeChecker:
    """Gives the nodes of a traced module their types."""

    def __init__(self, env, traced):
        self.env, self.traced = env, traced

    def type_check(self):
        """True when every node has a type that fits; TypeError for one that does not, RuntimeError for a node without rule."""
        for node in self.traced.graph.nodes:
            self.type_check_node(node)
        return True

    def type_check_node(self, n):
        """The type of one node, from those of the nodes before it."""
        if n.type is None:
            n.type = Dyn
        if n.op == "get_attr":
            found = functools.reduce(getattr, n.target.split("."), self.traced)
            n.type = _upper_bound(TensorType(tuple(found.shape)), n.type) if isinstance(found, cresset.Tensor) else n.type
        elif n.op == "call_function":
            if n.target not in _INFERENCE_RULES:
                raise RuntimeError(f"No inference rule registered for target {n.target}!")
            return _INFERENCE_RULES[n.target](n)
        elif n.op == "call_module":
            module = self.traced.get_submodule(n.target)
            if type(module) not in _INFERENCE_RULES:
                raise RuntimeError(f"No inference rule registered for class {type(module)}!")
            return _INFERENCE_RULES[type(module)](n, module)
        elif n.op == "output":
            n.type = cresset.fx.node.map_arg(n.args[0], lambda node: node.type)
        elif n.op == "call_method":
            raise NotImplementedError(f"Method {n.op} not yet implemented")
        return n.type


class Var:
    """A size, or a type, that is not known."""

    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"~{self.number}"

    def __eq__(self, other):
        return isinstance(other, Var) and other.number == self.number

    def __hash__(self):
        return hash((Var, self.number))


class Refine:
    """Names what is unknown in the types of a graph that was checked; `constraints` says which sizes are the same."""

    def __init__(self, traced):
        self.constraints, self.traced, self._count = [], traced, 0

    def refine(self):
        """Names for all nodes; True."""
        for node in self.traced.graph.nodes:
            self.refine_node(node)
        return True

    def _named(self, type):
        if type == Dyn:
            self._count += 1
            return Var(self._count - 1)
        if isinstance(type, TensorType):
            return TensorType(tuple(map(self._named, type.__args__)))
        return type

    def refine_node(self, n):
        """Names for one node, and what they are equal to."""
        if n.op == "output":
            n.type = cresset.fx.node.map_arg(n.args[0], lambda node: node.type)
            return n.type
        n.type = self._named(Dyn if n.type is None else n.type)
        rule = _REFINEMENT_RULES.get(type(self.traced.get_submodule(n.target)) if n.op == "call_module" else n.target if n.op == "call_function" else None)
        if rule is not None:
            self.constraints += rule(n)
        return n.type


def _same(count=None):
    """The first sizes of input and result are the same: all, or as many as `count` says."""

    def rule(n):
        input, made = n.args[0].type, n.type
        if not (isinstance(input, TensorType) and isinstance(made, TensorType)):
            return []
        number = len(input.__args__) if count is None else count + len(input.__args__) if count < 0 else count
        return [Equality(a, b) for a, b in zip(input.__args__[:number], made.__args__)]

    return rule


for _target, _count in ((nn.ReLU, None), (nn.BatchNorm2d, None), (nn.MaxPool2d, -2), (nn.AdaptiveAvgPool2d, -2), (nn.Conv2d, 1), (nn.Linear, -1)):
    register_refinement_rule(_target)(_same(_count))


@register_refinement_rule(cresset.flatten)
def _flattened(n):
    input, made = n.args[0].type, n.type
    if not (isinstance(input, TensorType) and isinstance(made, TensorType)):
        return []
    start, end = (d + len(input.__args__) if d < 0 else d for d in _ends_of_flatten(n))
    pairs = [*zip(input.__args__[:start], made.__args__), *zip(input.__args__[end + 1 :], made.__args__[start + 1 :])]
    return [Equality(a, b) for a, b in pairs]


@register_refinement_rule(cresset.add)
@register_refinement_rule(operator.add)
def _added(n):
    """Sizes that both have, or that one has and the other takes. One that is unknown beside a number may be that number, or 1."""
    types = [a.type for a in n.args if isinstance(a, cresset.fx.Node)]
    if len(types) != 2 or not all(isinstance(t, TensorType) for t in (*types, n.type)):
        return []
    rank = len(n.type.__args__)
    a, b = ([*(1,) * (rank - len(t.__args__)), *t.__args__] for t in types)
    pairs = [(x if y == 1 else y, size) for x, y, size in zip(a, b, n.type.__args__) if x == y or 1 in (x, y)]
    return [Equality(size, made) for size, made in pairs]
