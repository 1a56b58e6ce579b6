"""dynamic_shapes as plain values: numbers and texts in lists, and what the names are."""

import dataclasses
import re

import cresset
from cresset.export._errors import invalid_shapes
from cresset.export.dynamic_shapes import Dim, DimHint
from cresset.utils import _pytree as pytree

__all__ = ["DynamicShapesSpec", "RootDim"]

_HINTS = {"_DimHint.AUTO": Dim.AUTO, "_DimHint.STATIC": Dim.STATIC, "_DimHint.DYNAMIC": Dim.DYNAMIC}


@dataclasses.dataclass
class RootDim:
    """The range of a Dim, and the texts of those that follow from it."""

    min: int
    max: int | None
    derived: list


@dataclasses.dataclass
class DynamicShapesSpec:
    """dynamic_shapes: nested as the inputs are, sizes by their texts. dims: {name: RootDim}."""

    dynamic_shapes: object
    dims: dict


def _size(dim, dims):
    if dim is None or dim is Dim.STATIC:
        return "_DimHint.STATIC"
    if isinstance(dim, DimHint):
        return f"_DimHint.{dim.type.name}"
    if isinstance(dim, Dim):
        root = dim.root
        known = dims.setdefault(root.__name__, RootDim(root.min, None if root.max == float("inf") else root.max, []))
        if dim is not root and dim.__name__ not in known.derived:
            known.derived.append(dim.__name__)
        return dim.__name__
    return dim


def _standard(value, spec, dims):
    if isinstance(value, cresset.Tensor):
        wanted = spec.get if isinstance(spec, dict) else (lambda d: spec[d]) if spec is not None else (lambda d: None)
        return [_size(wanted(d), dims) for d in range(value.dim())]
    if pytree.tree_is_leaf(value):
        return None
    if isinstance(value, dict):
        return {k: _standard(v, None if spec is None else spec[k], dims) for k, v in value.items()}
    children = pytree.tree_flatten(value, is_leaf=lambda x: x is not value)[0]
    specs = [None] * len(children) if spec is None else list(spec.values()) if isinstance(spec, dict) else list(spec)
    found = [_standard(v, s, dims) for v, s in zip(children, specs, strict=True)]
    return tuple(found) if isinstance(value, tuple) else found


def _dump_dynamic_shapes(dynamic_shapes, args, kwargs=None, to_dict=False):
    """The DynamicShapesSpec of dynamic_shapes for such inputs, or it as dicts. Sizes that nothing is said of are static."""
    values, dims = (*args, *(kwargs or {}).values()), {}
    specs = [None] * len(values) if dynamic_shapes is None else list(dynamic_shapes.values()) if isinstance(dynamic_shapes, dict) else list(dynamic_shapes)
    spec = DynamicShapesSpec(tuple(_standard(v, s, dims) for v, s in zip(values, specs, strict=True)), dims)
    return dataclasses.asdict(spec) if to_dict else spec


def _load_dynamic_shapes(spec, from_dict=False):
    """dynamic_shapes of a DynamicShapesSpec, or of dicts where from_dict. UserError for others, and for names that it does not explain."""
    if from_dict:
        if not isinstance(spec, dict):
            raise invalid_shapes(f"With from_dict=True, expected `spec` to be a dict, got {type(spec)}")
        spec = DynamicShapesSpec(spec["dynamic_shapes"], {name: RootDim(**facts) for name, facts in spec["dims"].items()})
    elif not isinstance(spec, DynamicShapesSpec):
        raise invalid_shapes(f"Expected `spec` to be a DynamicShapesSpec, got {type(spec)}")
    known = dict(_HINTS)
    for name, root in spec.dims.items():
        if type(root.min) is not int:
            raise invalid_shapes(f"Expected dims in `spec['dims']` to map `min` to an int, got {name}: {root.min}")
        base = known[name] = Dim(name, min=root.min, max=root.max)
        for text in root.derived:
            factor, _, sign, offset = re.fullmatch(r"(?:(\d+)\*)?(\w+)(?: ([+-]) (\d+))?", text).groups()
            known[text] = base._derived(int(factor or 1), int(f"{sign or ''}{offset or 0}"))

    def read(size):
        if not isinstance(size, str):
            return size
        if size not in known:
            raise invalid_shapes(f"Expected dims in `spec['dynamic_shapes']` to be tracked in `spec['dims']`, got {size} which is not in {spec.dims.keys()}")
        return known[size]

    return pytree.tree_map(read, spec.dynamic_shapes)
