"""Operators on lists of tensors, as optimisers call them: each place of the lists is one pointwise call, and the ranks' parts go into one call again."""

import cresset

from ._dtensor_spec import DTensorSpec
from ._redistribute import redistribute_local_tensor
from ._state import dispatcher
from .placement_types import Replicate

__all__ = ["dispatch"]

# Reductions, of which each tensor has its own.
_EACH = {"_foreach_norm": lambda t, ord=2, dtype=None: cresset.linalg.vector_norm(t, ord, dtype=dtype), "_foreach_max": lambda t: cresset.max(t)}


def _lists(op, args, kwargs):
    """The arguments by name."""
    named = dict(zip((a.name for a in op._schema.arguments), args)) | kwargs
    return named, [n for n, v in named.items() if isinstance(v, (list, tuple)) and v and isinstance(v[0], cresset.Tensor)]


def _each(op, args, kwargs):
    return [_EACH[op._schema.name.split("::")[1]](tensor, *args[1:], **kwargs) for tensor in args[0]]


def _local(tensor, spec, dtensor_type):
    """This rank's part of a tensor under the placements of `spec`, the first list's tensor; a number's tensor as it is."""
    if not isinstance(tensor, dtensor_type):
        if tensor.numel() == 1 or spec is None:
            return tensor
        raise RuntimeError("got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed operators!")
    if spec is None or tensor._spec.placements == spec.placements:
        return tensor._local_tensor
    if tensor.dim() == 0 and tensor.shape != spec.shape:
        return tensor.full_tensor()
    return redistribute_local_tensor(tensor._local_tensor, tensor._spec, DTensorSpec(tensor._spec.mesh, spec.placements, tensor._spec.tensor_meta))


def _safe_spec(op, tensor, dtensor_type):
    """The spec that a place's tensors follow: terms of a sum are reduced first where the operator does not write to them."""
    if not isinstance(tensor, dtensor_type):
        return None
    spec = tensor._spec
    if any(p.is_partial() for p in spec.placements):
        if op._schema.name.endswith("_"):
            raise RuntimeError(f"{op}: in-place operations that require placement changes are not supported: {spec} has terms of a reduction.")
        return DTensorSpec(spec.mesh, tuple(Replicate() if p.is_partial() else p for p in spec.placements), spec.tensor_meta)
    return spec


def _check_meshes(op, tensors):
    """One mesh; with implicit replication slices of one root will do."""
    meshes = list(dict.fromkeys(t._spec.mesh for t in tensors))
    if len(meshes) > 1 and not (dispatcher._allow_implicit_replication and len({m._get_root_mesh() for m in meshes}) == 1):
        raise RuntimeError(f"{op}: DTensor does not support cross-mesh operation yet! Got meshes: {meshes[0]} {meshes[1]}. Please make sure all the arguments have the same DeviceMesh.")


def dispatch(op, args, kwargs, dtensor_type):
    """The results of an operator on lists of DTensors; those of `_foreach_…_` and `_fused_…_` are written in place."""
    name = op._schema.name.split("::")[1]
    if name in _EACH:
        return _each(op, args, kwargs)
    named, lists = _lists(op, args, kwargs)
    leading = named[lists[0]]
    _check_meshes(op, [t for key in lists for t in named[key] if isinstance(t, dtensor_type)])
    specs = [_safe_spec(op, tensor, dtensor_type) for tensor in leading]
    local = dict(named)
    for key in lists:
        value = named[key]
        local[key] = [_local(t, s, dtensor_type) for t, s in zip(value, specs)] if len(value) == len(leading) else [_local(t, None, dtensor_type) for t in value]
    for key, value in named.items():
        if isinstance(value, dtensor_type):
            local[key] = value.full_tensor()
    positional = [local[a.name] for a in op._schema.arguments[: len(args)]]
    result = op(*positional, **{k: local[k] for k in kwargs})
    if result is None or not op._schema.returns:
        return None
    return [t if s is None else dtensor_type(t, DTensorSpec(s.mesh, s.placements, s.tensor_meta._replace(dtype=t.dtype)), requires_grad=False) for t, s in zip(result, specs)]
