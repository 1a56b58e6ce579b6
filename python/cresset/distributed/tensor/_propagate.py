"""From an operator and the specs of its arguments to what happens: the placements that the arguments are brought to, and those of the results.

Mesh dimensions are decided one by one: for each the cheapest strategy of the operator's rule that the sizes allow. Decisions are kept.
"""

from typing import NamedTuple

import cresset
from cresset.utils._pytree import tree_leaves, tree_map_only

from ._call import Call
from ._collective_utils import local_bytes, step_cost
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._rules import rule_of
from ._utils import compute_local_stride
from .placement_types import Shard, _StridedShard, local_shape_and_offset

__all__ = ["Decision", "propagate"]

# operator → the argument with the sizes of its result, of which each rank takes its part
SIZE_ARGUMENTS = {
    "view": "size", "_unsafe_view": "size", "reshape": "shape", "_reshape_alias": "size", "expand": "size", "new_empty": "size", "new_zeros": "size",
    "new_ones": "size", "new_full": "size", "new_empty_strided": "size", "slice_backward": "input_sizes", "select_backward": "input_sizes",
}  # fmt: skip


class Decision(NamedTuple):
    """`inputs`: the specs that tensors are brought to. `outputs`: a spec, a list of them and of None, or None. `local`: see Strategy, with its mesh dimensions.
    `arguments`: {name: value} that this rank's call has instead of the given ones.
    """

    inputs: list
    outputs: object
    local: object
    arguments: dict


def missing(call):
    """The error of an operator without a rule."""
    placements = ", ".join(str(spec) for spec in call.specs)
    return NotImplementedError(
        f"Operator {call.op} does not have a sharding strategy registered. Its tensors are {placements}: "
        "redistribute them to Replicate() and use to_local(), or register a rule for it."
    )


def _possible(call, strategy, mesh_dim, ranks, fixed):
    # Some ranks have nothing of a small dimension: it is divided where another argument has that already.
    small = not any(w.is_shard() and w == s.placements[mesh_dim] for s, w in zip(call.specs, strategy.inputs))
    for i, (spec, wanted) in enumerate(zip(call.specs, strategy.inputs)):
        present = spec.placements[mesh_dim]
        if wanted == present:
            continue
        if i in fixed:
            return False
        if wanted.is_shard() and spec.shape[wanted.dim] < ranks and small:
            return False
        if wanted.is_partial() and present.is_partial():
            return False
    return True


def _cost(call, strategy, mesh_dim, ranks, bytes_of):
    total = 0.0
    for i, wanted in enumerate(strategy.inputs):
        present = call.specs[i].placements[mesh_dim]
        if wanted != present:
            total += 0.0 if present.is_replicate() and wanted.is_partial() else step_cost(present, wanted, ranks, bytes_of[i])
    return total


def _first_output(strategy):
    return strategy.outputs[0] if isinstance(strategy.outputs, tuple) else strategy.outputs


def _choose(call, strategies, mesh_dim, fixed, bytes_of):
    ranks = call.mesh.shape[mesh_dim]
    best, lowest = None, float("inf")
    for strategy in strategies:
        if not _possible(call, strategy, mesh_dim, ranks, fixed):
            continue
        # What is written to in place has the placement of the result.
        if fixed and _first_output(strategy) is not None and any(call.specs[i].placements[mesh_dim] != _first_output(strategy) for i in fixed[:1]):
            continue
        cost = _cost(call, strategy, mesh_dim, ranks, bytes_of)
        if cost < lowest:
            best, lowest = strategy, cost
    if best is None:
        placements = ", ".join(str(spec) for spec in call.specs)
        if fixed:
            raise RuntimeError(
                f"{call.op}: in-place operations that require placement changes are not supported: what is written to stays as it is placed. The tensors are {placements}."
            )
        raise NotImplementedError(f"{call.op}: this combination of placements is not supported: {placements}.")
    return best


def _meta_outputs(op, call):
    """The results of the whole, as meta tensors."""
    tensors = [cresset.empty_strided(tuple(s.shape), tuple(s.stride), dtype=s.tensor_meta.dtype, device="meta") for s in call.specs]
    args, kwargs = call.filled(tensors)
    if "device" in kwargs:
        kwargs = kwargs | {"device": cresset.device("meta")}
    return op(*args, **kwargs)


def _meta(tensor):
    return TensorMeta(tensor.size(), tensor.stride(), tensor.dtype)


def _local_arguments(call, outputs):
    resampled = call.name.lstrip("_").startswith("upsample") and call.name.endswith("_backward")
    name = "input_size" if resampled else SIZE_ARGUMENTS.get(call.name)
    if name is None or not isinstance(outputs, DTensorSpec) or call.argument(name) is None:
        return {}
    coordinate = call.mesh.get_coordinate()
    if coordinate is None:
        return {}
    sizes = local_shape_and_offset(outputs.shape, call.mesh.shape, outputs.placements, coordinate)[0]
    found = {name: list(sizes)}
    if call.argument("stride") is not None:
        found["stride"] = list(compute_local_stride(call.argument("stride"), call.mesh, outputs.placements))
    return found


def _without_strides(spec):
    """A spec of its own for each tensor, so that rules know arguments apart; rules see strided divisions as plain ones."""
    return DTensorSpec(spec.mesh, tuple(Shard(p.dim) if isinstance(p, _StridedShard) else p for p in spec.placements), spec.tensor_meta)


def _with_strides(strategy, mesh_dim, specs, given):
    """A strategy that leaves a strided division as it is has strided ones everywhere."""
    factor = next(
        (
            g.placements[mesh_dim].split_factor
            for s, g, wanted in zip(specs, given, strategy.inputs)
            if isinstance(g.placements[mesh_dim], _StridedShard) and wanted == s.placements[mesh_dim]
        ),
        None,
    )
    if factor is None:
        return strategy

    def strided(placement):
        return _StridedShard(placement.dim, split_factor=factor) if isinstance(placement, Shard) else placement

    outputs = strategy.outputs
    outputs = tuple(strided(p) for p in outputs) if isinstance(outputs, tuple) else strided(outputs)
    return strategy._replace(outputs=outputs, inputs=tuple(strided(p) for p in strategy.inputs))


def propagate(op, args, kwargs, mesh):
    """The Decision for a call with specs in the place of tensors. NotImplementedError for an operator without a rule."""
    call = Call(op, *tree_map_only(DTensorSpec, _without_strides, (args, kwargs)), mesh)
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, DTensorSpec)]
    rule = rule_of(op)
    if rule is None:
        raise missing(call)
    strategies, fixed = rule(call), call.written()
    bytes_of = [local_bytes(spec) for spec in call.specs]
    chosen = [_choose(call, strategies, m, fixed, bytes_of) for m in range(mesh.ndim)]
    chosen = [_with_strides(s, m, call.specs, given) for m, s in enumerate(chosen)]
    inputs = [
        DTensorSpec(mesh, tuple(chosen[m].inputs[i] for m in range(mesh.ndim)), spec.tensor_meta) for i, spec in enumerate(call.specs)
    ]
    locals_ = {}
    for mesh_dim, strategy in enumerate(chosen):
        if strategy.local is not None:
            locals_.setdefault(strategy.local, []).append(mesh_dim)
    if len(locals_) > 1:
        raise NotImplementedError(f"{op}: this combination of placements is not supported: " + ", ".join(str(spec) for spec in call.specs) + ".")
    outputs = _output_specs(op, call, chosen, mesh)
    if fixed and isinstance(outputs, DTensorSpec) and tuple(outputs.shape) != tuple(call.specs[fixed[0]].shape):
        raise RuntimeError(f"{op}: a DTensor does not change its sizes in place: from {tuple(call.specs[fixed[0]].shape)} to {tuple(outputs.shape)}. Use the form that gives a new tensor.")
    local = next(iter(locals_.items())) if locals_ else None
    return call, Decision(inputs, outputs, local, _local_arguments(call, outputs))


def _output_specs(op, call, chosen, mesh):
    if not op._schema.returns or all(s.outputs is None for s in chosen):
        return None
    results = _meta_outputs(op, call)
    if isinstance(results, cresset.Tensor):
        return DTensorSpec(mesh, tuple(_first_output(s) for s in chosen), _meta(results))
    if not isinstance(results, (tuple, list)):
        return None
    specs = []
    for i, result in enumerate(results):
        placements = tuple(s.outputs[i] if isinstance(s.outputs, tuple) else s.outputs for s in chosen)
        known = isinstance(result, cresset.Tensor) and all(p is not None for p in placements)
        specs.append(DTensorSpec(mesh, placements, _meta(result)) if known else None)
    return specs
