"""Which sizes of a program's inputs may vary."""

import dataclasses
import enum
import inspect
import re

import cresset
from cresset.utils import _pytree as pytree

from ._errors import UserError, UserErrorType, invalid_shapes
from ._sizes import int_oo

__all__ = ["AdditionalInputs", "Constraint", "Dim", "DimHint", "ShapesCollection", "dims", "refine_dynamic_shapes_from_suggested_fixes", "resolved"]


class _DimHintType(enum.Enum):
    AUTO = enum.auto()
    STATIC = enum.auto()
    DYNAMIC = enum.auto()


@dataclasses.dataclass(frozen=True)
class DimHint:
    """How to treat a size without a name: Dim.AUTO (may vary if it can), Dim.DYNAMIC (must be able to vary), Dim.STATIC; called, with a range."""

    type: _DimHintType
    min: int | None = None
    max: int | None = None

    def __call__(self, min=None, max=None):
        if self.type is _DimHintType.STATIC:
            raise AssertionError("DimHint: STATIC has no range.")
        if min is not None and min < 0 or max is not None and max < 0:
            raise AssertionError("min and max must be non-negative")
        if min is not None and max is not None and min >= max:
            raise AssertionError("min must be < max")
        return DimHint(self.type, min, max)

    def __repr__(self):
        limits = "".join(f", {k}={v}" for k, v in (("min", self.min), ("max", self.max)) if v is not None)
        return f"DimHint({self.type.name}{limits})"


class Dim:
    """A name for a size that may vary from `min` to `max`: Dim("batch", min=2, max=64). The same Dim at several places: these sizes are equal.

    `2 * n`, `n + 1`, `n - 1` are Dims of sizes that follow from n. AssertionError for bad names and ranges.
    """

    AUTO = DimHint(_DimHintType.AUTO)
    DYNAMIC = DimHint(_DimHintType.DYNAMIC)
    STATIC = DimHint(_DimHintType.STATIC)

    def __init__(self, name, *, min=None, max=None):
        self.min, self.max = 0 if min is None else min, int_oo if max is None else max
        if not self.max > self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.root, self.factor, self.offset = self, 1, 0

    def _derived(self, factor, offset):
        found = Dim.__new__(_DerivedDim)
        found.root, found.factor, found.offset = self.root, self.factor * factor, self.offset * factor + offset
        number = f"{found.factor}*{self.root.__name__}" if found.factor != 1 else self.root.__name__
        found.__name__ = number if not found.offset else f"{number} {'+' if found.offset > 0 else '-'} {abs(found.offset)}"
        return found

    def __add__(self, other):
        if type(other) is not int:
            raise NotImplementedError(f"Attempted to add {other} to {self.__name__}, where an integer was expected. (Only increasing linear operations with integer coefficients are supported.)")
        return self._derived(1, other)

    __radd__ = __add__

    def __sub__(self, other):
        if type(other) is not int:
            raise NotImplementedError(
                f"Attempted to subtract {other} from {self.__name__}, where an integer was expected. (Only increasing linear operations with integer coefficients are supported.)"
            )
        return self._derived(1, -other)

    def __rsub__(self, other):
        raise NotImplementedError(f"Attempted to negate {self.__name__}. (Only increasing linear operations with integer coefficients are supported.)")

    def __mul__(self, other):
        if type(other) is not int or other <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected. (Only increasing linear operations with integer coefficients are supported.)"
            )
        return self._derived(other, 0)

    __rmul__ = __mul__

    def _at(self, value):
        return self.factor * value + self.offset

    def __repr__(self):
        limits = "".join(f", {k}={v}" for k, v, usual in (("min", self.min, 2), ("max", self.max, int_oo)) if v != usual)
        return f"Dim('{self.__name__}'{limits})"


class _DerivedDim(Dim):
    fn = property(lambda self: self._at)
    min = property(lambda self: self._at(self.root.min))
    max = property(lambda self: int_oo if self.root.max is int_oo else self._at(self.root.max))

    def __repr__(self):
        return self.__name__


class Constraint:
    """The class of constraints of older programs; none are made."""


def dims(*names, min=None, max=None):
    """A Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """dynamic_shapes by tensor: collection[tensor] = {0: Dim("batch")}, also collection[tensor][0] = …; for inputs that are nested deeply."""

    def __init__(self):
        self._shapes = {}

    def __setitem__(self, t, shape):
        if not isinstance(t, (cresset.Tensor, int)):
            raise AssertionError(f"Cannot assign shape to non-tensor or int type {type(t)}")
        if id(t) in self._shapes and self._shapes[id(t)][1] != shape:
            raise AssertionError(f"Shapes assigned to input is a mismatch, got {shape} and {self._shapes[id(t)][1]}")
        self._shapes[id(t)] = (t, shape)

    def __getitem__(self, t):
        return self._shapes.setdefault(id(t), (t, {}))[1]

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """The same as a structure like the inputs: {name of an argument: …}. ValueError for tensors that are no inputs."""
        from ._trace_program import argument_names

        found = set()

        def of(leaf):
            if id(leaf) not in self._shapes:
                return None
            found.add(id(leaf))
            return self._shapes[id(leaf)][1]

        result = {k: pytree.tree_map(of, v) for k, v in argument_names(m, args, kwargs or {}).items()}
        for key in self._shapes.keys() - found:
            raise ValueError(f"Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when passing them as args. Shapes: {self._shapes[key][1]}")
        return result


class AdditionalInputs:
    """dynamic_shapes from further examples of inputs: sizes that differ between them and the first are Dim.DYNAMIC."""

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None):
        """One more example."""
        if not isinstance(args, tuple):
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m, args, kwargs=None):
        """The structure like the inputs: {name of an argument: …}."""
        from ._trace_program import argument_names

        first, spec = pytree.tree_flatten(argument_names(m, args, kwargs or {}))
        shapes = [[None] * x.dim() if isinstance(x, cresset.Tensor) else None for x in first]
        for other_args, other_kwargs in self._examples:
            leaves, other_spec = pytree.tree_flatten(argument_names(m, other_args, other_kwargs or {}))
            if other_spec != spec:
                raise ValueError(f"AdditionalInputs: an input of the structure {other_spec} was given; {spec} was required.")
            for shape, a, b in zip(shapes, first, leaves):
                for d in range(len(shape or ())):
                    if a.shape[d] != b.shape[d]:
                        shape[d] = Dim.DYNAMIC
        return pytree.tree_unflatten([tuple(s) if s is not None else None for s in shapes], spec)

    def verify(self, ep):
        """Run the program with all examples."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **(kwargs or {}))


def refine_dynamic_shapes_from_suggested_fixes(msg, dynamic_shapes):
    """dynamic_shapes as the "Suggested fixes" of an error of export say. Reads `name = Dim('name', min=…, max=…)`, `name = 4` and `name = other`."""
    text = msg.partition("Suggested fixes:")[2]
    fixes, made = {}, {}
    for line in text.strip().splitlines():
        name, found, value = line.partition(" = ")
        if not found:
            break
        fixes[name.strip()] = value.strip()

    def dim(name):
        if name not in made:
            value = fixes.get(name)
            if value is None:
                return None
            if value.lstrip("-").isdigit():
                made[name] = int(value)
            elif value.startswith("Dim("):
                limits = dict(part.strip().split("=") for part in value[4:-1].split(",")[1:])
                made[name] = Dim(name, **{k: int(v) for k, v in limits.items()})
            else:
                factor, root, sign, offset = re.fullmatch(r"(?:(\d+)\*)?(\w+)(?: ([+-]) (\d+))?", value).groups()
                base = dim(root) or made.setdefault(root, known.get(root) or Dim(root))
                derived = factor or offset
                made[name] = base._derived(int(factor or 1), int(f"{sign or ''}{offset or 0}")) if derived and not isinstance(base, int) else base
        return made[name]

    known = {d.__name__: d for d in pytree.tree_leaves(dynamic_shapes) if isinstance(d, Dim)}

    def refined(spec):
        if isinstance(spec, dict):
            return {k: refined(v) for k, v in spec.items()}
        if isinstance(spec, (list, tuple)):
            return type(spec)(refined(v) for v in spec)
        if not isinstance(spec, Dim):
            return spec
        found = dim(spec.root.__name__)
        if found is None or spec.root is spec:
            return spec if found is None else found
        return spec.factor * found + spec.offset if isinstance(found, int) else found._derived(spec.factor, spec.offset)

    return refined(dynamic_shapes)


# --- reading -------------------------------------------------------------------------------------------------------------------


def resolved(mod, args, kwargs, dynamic_shapes, named):
    """{(number of the leaf, dimension): Dim or DimHint} of what may vary. named: the arguments by name, whose leaves are numbered."""
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    if isinstance(dynamic_shapes, dict):
        if set(dynamic_shapes) != set(named):
            inner = next(iter(named.values())) if len(named) == 1 else None
            if isinstance(inner, dict) and set(dynamic_shapes) == set(inner):
                advice = "Since here `inputs` is a list/tuple enclosing a single dict, maybe you just forgot to enclose `dynamic_shapes` in a list/tuple?"
            else:
                advice = "Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`."
            raise invalid_shapes(
                f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {list(named)} of `inputs`, but here they are "
                f"{list(dynamic_shapes)}. {advice}"
            )
        specs = [dynamic_shapes[k] for k in named]
    elif isinstance(dynamic_shapes, (list, tuple)):
        _same_length("`inputs`", named, "`dynamic_shapes`", dynamic_shapes)
        by_name = dict(zip(_as_declared(mod, named), dynamic_shapes))
        specs = [by_name[k] for k in named]
    else:
        raise invalid_shapes(f"Expecting `dynamic_shapes` to be a dict, a list or a tuple, got {type(dynamic_shapes)}")
    found, at = {}, 0
    declared = _as_declared(mod, named)
    for (name, value), spec in zip(named.items(), specs):
        place = f"['{name}']" if isinstance(dynamic_shapes, dict) else f"[{declared.index(name)}]"
        at = _read(value, spec, place, at, found)
    _check_definitions(found.values())
    return found


def _check_definitions(dims):
    """Dims of one name are one size, so that they must have one range."""
    known = {}
    for dim in dims:
        if isinstance(dim, Dim):
            root = dim.root
            other = known.setdefault(root.__name__, root)
            if (other.min, other.max) != (root.min, root.max):
                raise UserError(UserErrorType.INVALID_INPUT, f"Found different definitions {other} and {root} for the same symbolic dimension {root.__name__}!")


def _as_declared(mod, named):
    """The arguments' names in the order of forward's parameters, whatever the order of the call; those of **kwargs last."""
    declared = [name for name in inspect.signature(mod.forward).parameters if name in named]
    return declared + [name for name in named if name not in declared]


def _same_length(what, values, other, specs):
    if len(values) != len(specs):
        raise invalid_shapes(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: {what} has {len(values)} elements, but {other} has {len(specs)} elements")


def _read(value, spec, path, at, found):
    if spec is None or not _is_node(value):
        if isinstance(value, cresset.Tensor):
            _read_tensor(value, spec, path, at, found)
        elif spec is not None and not _is_node(value) and not isinstance(value, int):
            raise invalid_shapes(f"Cannot associate shape {spec} specified at `dynamic_shapes{path}` to non-tensor type {type(value)} at `inputs{path}` (expected None)")
        return at + len(pytree.tree_leaves(value))
    children, kind = _children(value)
    if type(spec) is type(value) and not isinstance(spec, (dict, list, tuple)):
        spec = _children(spec)[0]
    if dataclasses.is_dataclass(value) and isinstance(spec, dict):
        spec = [spec[f.name] if f.name in spec else None for f in dataclasses.fields(value) if getattr(value, f.name) is not None]
    if isinstance(spec, dict) and isinstance(children, dict):
        if set(spec) != set(children):
            raise invalid_shapes(
                f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{path}` has keys {list(children)}, but `dynamic_shapes{path}` has keys {list(spec)}"
            )
        pairs = [(f"[{k!r}]", children[k], spec[k]) for k in children]
    elif isinstance(spec, (list, tuple)) and not (type(value) in (list, tuple) and type(spec) is not type(value)):
        values = list(children.values()) if isinstance(children, dict) else children
        _same_length(f"`inputs{path}`", values, f"`dynamic_shapes{path}`", spec)
        pairs = [(f"[{i}]", v, s) for i, (v, s) in enumerate(zip(values, spec))]
    else:
        other = f"a {type(spec)}" if isinstance(spec, (dict, list, tuple)) else "not"
        raise invalid_shapes(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{path}` is a {kind}, but `dynamic_shapes{path}` is {other}")
    for step, child, child_spec in pairs:
        at = _read(child, child_spec, path + step, at, found)
    return at


def _is_node(value):
    return not pytree.tree_is_leaf(value)


def _children(value):
    if isinstance(value, dict):
        return value, type(value)
    if dataclasses.is_dataclass(value):
        leaves = pytree.tree_flatten(value, is_leaf=lambda x: x is not value)[0]
        return leaves, type(value)
    return list(pytree.tree_flatten(value, is_leaf=lambda x: x is not value)[0]), type(value)


def _read_tensor(tensor, spec, path, at, found):
    if spec is None:
        return
    if isinstance(spec, dict):
        items = spec.items()
    elif isinstance(spec, (list, tuple)):
        if len(spec) != tensor.dim():
            raise invalid_shapes(
                f"Expected dynamic shape spec {spec} specified at `dynamic_shapes{path}` to have the same length as the actual tensor shape {tensor.shape} at "
                f"`inputs{path}` (expected {tensor.dim()}, but got {len(spec)} instead)"
            )
        items = enumerate(spec)
    else:
        raise invalid_shapes(
            f"Unexpected input tensor shape {spec} specified at `dynamic_shapes{path}` (expected either a list/tuple of dimensions, or a dict mapping indices to dimensions, "
            "where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
        )
    for d, dim in items:
        if not -tensor.dim() <= d < tensor.dim():
            raise IndexError(f"export: dynamic_shapes{path} names the dimension {d} of a tensor of {tensor.dim()} dimensions.")
        if isinstance(dim, int) and not isinstance(dim, bool):
            if dim != tensor.shape[d]:
                raise invalid_shapes(f"Static shape constraint of {dim} does not match input size of {tensor.shape[d]}, for `inputs{path}.shape[{d}]`")
        elif isinstance(dim, (Dim, DimHint)):
            if dim is not Dim.STATIC:
                found[at, d % tensor.dim()] = dim
        elif dim is not None:
            raise invalid_shapes(
                f"Unexpected dimension mapping for index {d} in tensor shape spec {spec} specified at `dynamic_shapes{path}` (expected None, an int, a Dim, "
                f"Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC, but got {dim!r} instead)"
            )
