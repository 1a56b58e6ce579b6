"""What an operator on DTensors does: decide placements (`_propagate.py`), bring the arguments there, run it on this rank's parts, wrap the results."""

import cresset
from cresset.utils._pytree import tree_flatten, tree_unflatten

from . import _foreach, _random
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._propagate import propagate
from ._redistribute import redistribute_local_tensor
from ._state import LIMIT, dispatcher
from .placement_types import Replicate

__all__ = ["dispatch"]


_VIEWS = ("view", "_unsafe_view", "_reshape_alias")


def _constant_key(value):
    """A hashable stand-in of an argument that is no tensor, with its type: 1, 1.0 and True differ."""
    if isinstance(value, (list, tuple)):
        return tuple(_constant_key(v) for v in value)
    return type(value), value


def _mesh_of(op, leaves, dtensor_type):
    mesh = None
    for leaf in leaves:
        if isinstance(leaf, dtensor_type):
            if mesh is None:
                mesh = leaf._spec.mesh
            elif leaf._spec.mesh != mesh:
                raise NotImplementedError(
                    f"{op}: DTensor does not support cross-mesh operation yet! Got meshes: {mesh} {leaf._spec.mesh}. Please make sure all the arguments have the same DeviceMesh."
                )
    return mesh


def _as_spec(op, tensor, mesh):
    """The spec of a plain tensor: whole on every rank, where that is safe or asked for.

    Inside of backward it comes from a formula (the zeros of a part that has no gradient), which makes the same on every rank.
    """
    if tensor.numel() == 1 or dispatcher._allow_implicit_replication or cresset._C._current_graph_task_id() != -1:
        return DTensorSpec(mesh, (Replicate(),) * mesh.ndim, TensorMeta(tensor.size(), tensor.stride(), tensor.dtype))
    raise RuntimeError(
        f"{op}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling distributed operators! "
        "Please see https://docs.pytorch.org/docs/main/distributed.tensor.html#mixed-tensor-and-dtensor-operations for more details."
    )


def _decide(op, leaves, specs, tree, mesh):
    key = op, mesh, tree, tuple(spec if spec is not None else _constant_key(leaf) for leaf, spec in zip(leaves, specs))
    try:
        found = dispatcher.decisions.get(key)
    except TypeError:  # an argument without a hash: a generator
        key, found = None, None
    if found is not None:
        dispatcher.hits += 1
    else:
        dispatcher.misses += 1
        args, kwargs = tree_unflatten([leaf if spec is None else spec for leaf, spec in zip(leaves, specs)], tree)
        found = propagate(op, args, kwargs, mesh)
        if key is not None:
            if len(dispatcher.decisions) > LIMIT:
                dispatcher.decisions.clear()
            dispatcher.decisions[key] = found
    return found


def _replaced(op, args, kwargs, arguments):
    args = list(args)
    for place, argument in enumerate(op._schema.arguments):
        if argument.name in arguments:
            if place < len(args) and not argument.kwarg_only:
                args[place] = arguments[argument.name]
            else:
                kwargs = kwargs | {argument.name: arguments[argument.name]}
    return args, kwargs


def _nothing(spec):
    """What a rank has that is not part of the mesh."""
    return cresset.zeros((0,) if spec.ndim else (), dtype=spec.tensor_meta.dtype)


def _wrap(dtensor_type, result, spec):
    if spec is None or not isinstance(result, cresset.Tensor):
        return result
    return dtensor_type(result, spec, requires_grad=False)


def dispatch(op, args, kwargs, dtensor_type):
    """The result of an operator of which at least one argument is a DTensor."""
    if op in dispatcher.handlers:
        return dispatcher.handlers[op](*args, **kwargs)
    if op._schema.name.startswith(("aten::_foreach_", "aten::_fused_")):
        return _foreach.dispatch(op, args, kwargs, dtensor_type)
    leaves, tree = tree_flatten((args, kwargs))
    mesh = _mesh_of(op, leaves, dtensor_type)
    specs = [
        leaf._spec if isinstance(leaf, dtensor_type) else (_as_spec(op, leaf, mesh) if isinstance(leaf, cresset.Tensor) else None) for leaf in leaves
    ]
    try:
        call, decision = _decide(op, leaves, specs, tree, mesh)
    except NotImplementedError:
        result = op.decompose(*args, **kwargs)
        if result is NotImplemented:
            raise
        return result
    here = mesh.get_coordinate() is not None
    locals_, wanted = [], iter(decision.inputs)
    for leaf, spec in zip(leaves, specs):
        if spec is None:
            continue
        local = leaf._local_tensor if isinstance(leaf, dtensor_type) else leaf
        target = next(wanted)
        locals_.append(local if not here or target.placements == spec.placements else redistribute_local_tensor(local, spec, target))
    if here:
        local_args, local_kwargs = call.filled(locals_)
        if decision.arguments:
            local_args, local_kwargs = _replaced(op, local_args, local_kwargs, decision.arguments)
        result = _run(op, local_args, local_kwargs, call, decision, specs)
    else:
        result = _absent(decision.outputs) if decision.outputs is not None else _neutral(op)
    return _results(op, leaves, call, decision, result, dtensor_type)


def _run(op, args, kwargs, call, decision, specs):
    if _random.is_random(op):
        spec = decision.outputs if isinstance(decision.outputs, DTensorSpec) else (decision.outputs or decision.inputs)[0]
        with _random.of_part(spec):
            return op(*args, **kwargs)
    if decision.local is not None:
        function, mesh_dims = decision.local
        return function(op, args, kwargs, call, mesh_dims)
    if call.name in _VIEWS and not args[0].is_contiguous():
        # Strides of a part can differ from those of the whole, for which the view was possible.
        return args[0].reshape(args[1])
    return op(*args, **kwargs)


def _absent(outputs):
    if isinstance(outputs, list):
        return [None if spec is None else _nothing(spec) for spec in outputs]
    return None if outputs is None else _nothing(outputs)


def _neutral(op):
    """What a rank outside of the mesh answers where an operator gives no tensor."""
    return True if op._schema.returns and str(op._schema.returns[0].type) == "bool" else None


def _results(op, leaves, call, decision, result, dtensor_type):
    written = call.written()
    outputs = decision.outputs
    if written and outputs is not None and op._schema.returns[0].alias_info is not None:
        tensors = [leaf for leaf in leaves if isinstance(leaf, cresset.Tensor)]
        changed = [tensors[i] for i in written]
        return changed[0] if len(op._schema.returns) == 1 else tuple(changed)
    if isinstance(outputs, list):
        wrapped = [_wrap(dtensor_type, r, s) for r, s in zip(result, outputs)]
        return type(result)(wrapped) if type(result) in (tuple, list) else tuple(wrapped)
    return _wrap(dtensor_type, result, outputs)
