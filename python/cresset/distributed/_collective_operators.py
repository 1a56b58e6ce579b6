"""Collectives as operators: the namespaces `_c10d_functional`, `_c10d_functional_autograd` and, with older arguments, `c10d_functional`.

An operator begins a collective and returns its result at once; `wait_tensor` waits for it. What is under way is known by the storage of the
result: `_pending` keeps it, so that no other storage takes its address, until somebody waits or it has come by itself.
Every operator has a Meta kernel and, where its reduction has one, a gradient: the collective that goes the other way.
"""

import threading
from importlib import import_module

import cresset
from cresset import _C_distributed as _C
from cresset.library import Library, register_autograd

from ._reductions import reduction
from ._world import _resolve_process_group, current

# --- what is under way

_PRUNE_ABOVE = 64  # results that nobody waits for: those that have come are forgotten when there are so many

_pending, _lock = {}, threading.Lock()


def _key(tensor):
    return tensor.untyped_storage()._cdata


def _begin(work, results):
    """Remember the work of these results."""
    if work is None:
        return
    if cresset.is_inference_mode_enabled():
        work.wait()
        return
    with _lock:
        if len(_pending) > _PRUNE_ABOVE:
            for key in [k for k, (w, _) in _pending.items() if w.is_completed()]:
                del _pending[key]
        for tensor in results:
            _pending[_key(tensor)] = work, tensor


def wait(tensor):
    """Wait until the tensor's collective, if there is one under way, is done."""
    if not _pending:
        return
    with _lock:
        found = _pending.pop(_key(tensor), None)
    if found is not None:
        found[0].wait()


def _group(name):
    """The group of a name, or a group itself."""
    return _resolve_process_group(name) if isinstance(name, str) else name


def _options(kind, **values):
    opts = kind()
    opts.asyncOp = not cresset.is_inference_mode_enabled()  # whose tensors other threads do not write to
    for name, value in values.items():
        setattr(opts, name, value)
    return opts


# --- kernels

def _all_reduce_(input, reduce_op, group_name):
    return all_reduce_coalesced_([input], reduce_op, group_name)[0]


def all_reduce_coalesced_(inputs, reduce_op, group_name):
    group, op = _group(group_name), reduction(reduce_op)
    for tensor in inputs:
        _begin(group.allreduce([tensor], _options(_C.AllreduceOptions, reduceOp=op)), [tensor])
    return inputs


def _fresh(tensor):
    return tensor.clone(memory_format=cresset.contiguous_format)


def _all_reduce(input, reduce_op, group_name):
    return _all_reduce_(_fresh(input), reduce_op, group_name)


def _all_reduce_coalesced(inputs, reduce_op, group_name):
    return all_reduce_coalesced_([_fresh(t) for t in inputs], reduce_op, group_name)


def _gathered(input, group_size):
    return input.new_empty((input.shape[0] * group_size if input.dim() else group_size, *input.shape[1:]))


def _scattered(input, group_size):
    if input.dim() == 0 or input.shape[0] % group_size:
        raise RuntimeError(f"reduce_scatter_tensor: the first dimension of the input, of sizes {tuple(input.shape)}, must be a multiple of {group_size}.")
    return input.new_empty((input.shape[0] // group_size, *input.shape[1:]))


def _all_gather_into_tensor_out(input, group_size, group_name, *, out):
    group = _group(group_name)
    _begin(group._allgather_base(out, input.contiguous(), _options(_C.AllgatherOptions)), [out])
    return out


def _all_gather_into_tensor(input, group_size, group_name):
    return _all_gather_into_tensor_out(input, group_size, group_name, out=_gathered(input, group_size))


def _all_gather_into_tensor_coalesced(inputs, group_size, group_name):
    return [_all_gather_into_tensor(t, group_size, group_name) for t in inputs]


def _reduce_scatter_tensor_out(input, reduce_op, group_size, group_name, *, out):
    group, op = _group(group_name), reduction(reduce_op)
    _begin(group._reduce_scatter_base(out, input.contiguous(), _options(_C.ReduceScatterOptions, reduceOp=op)), [out])
    return out


def _reduce_scatter_tensor(input, reduce_op, group_size, group_name):
    return _reduce_scatter_tensor_out(input, reduce_op, group_size, group_name, out=_scattered(input, group_size))


def _reduce_scatter_tensor_coalesced(inputs, reduce_op, group_size, group_name):
    return [_reduce_scatter_tensor(t, reduce_op, group_size, group_name) for t in inputs]


def _exchanged(input, output_split_sizes):
    return input.new_empty((sum(output_split_sizes), *input.shape[1:]))


def _all_to_all_single(input, output_split_sizes, input_split_sizes, group_name):
    group, out = _group(group_name), _exchanged(input, output_split_sizes)
    work = group.alltoall_base(out, input.contiguous(), list(output_split_sizes), list(input_split_sizes), _options(_C.AllToAllOptions))
    _begin(work, [out])
    return out


def _broadcast_(input, src, group_name):
    group = _group(group_name)
    _begin(group.broadcast([input], _options(_C.BroadcastOptions, rootRank=src, rootTensor=0)), [input])
    return input


def _broadcast(input, src, group_name):
    return _broadcast_(_fresh(input), src, group_name)


def _as_under_way(tensor):
    """The tensor as the result of a collective that may be under way; with a gradient, unlike its class alone."""
    return import_module("cresset.distributed._functional_collectives").AsyncCollectiveTensor(tensor)


def _wait_tensor(tensor):
    wait(tensor)
    return tensor


# --- messages: what is sent or received, as the result of an operator

def _begin_message(group, op, tensor, peer, tag):
    if op not in ("isend", "irecv"):
        raise RuntimeError(f"batch_p2p_ops: the operations are isend and irecv, not {op}")
    return group.send([tensor], peer, tag) if op == "isend" else group.recv([tensor], peer, tag)


def _batch_p2p_ops(op_list, peer_list, tag_list, tensors, group_name):
    group = _group(group_name)
    for op, peer, tag, tensor in zip(op_list, peer_list, tag_list, tensors, strict=True):
        _begin(_begin_message(group, op, tensor, peer, tag), [tensor])
    return list(tensors)


def _isend(tensor, dst, tag, group_name):
    return _batch_p2p_ops(["isend"], [dst], [tag], [tensor], group_name)[0]


def _irecv(tensor, src, tag, group_name):
    return _batch_p2p_ops(["irecv"], [src], [tag], [tensor], group_name)[0]


# --- the operators

_ANY = "Any group_name"
_SCHEMAS = {  # name: (arguments -> results, kernel, Meta kernel)
    "all_reduce": (f"(Tensor input, str reduce_op, {_ANY}) -> Tensor", _all_reduce, lambda input, *_: cresset.empty_like(input)),
    "all_reduce_": (f"(Tensor(a!) input, str reduce_op, {_ANY}) -> Tensor(a!)", _all_reduce_, lambda input, *_: input),
    "all_reduce_coalesced": (
        f"(Tensor[] inputs, str reduce_op, {_ANY}) -> Tensor[]", _all_reduce_coalesced, lambda inputs, *_: [cresset.empty_like(t) for t in inputs]
    ),
    "all_reduce_coalesced_": (f"(Tensor[](a!) inputs, str reduce_op, {_ANY}) -> Tensor[](a!)", all_reduce_coalesced_, lambda inputs, *_: inputs),
    "all_gather_into_tensor": (
        f"(Tensor input, int group_size, {_ANY}) -> Tensor", _all_gather_into_tensor, lambda input, size, _: _gathered(input, size)
    ),
    "all_gather_into_tensor_out": (
        f"(Tensor input, int group_size, {_ANY}, *, Tensor(a!) out) -> Tensor(a!)", _all_gather_into_tensor_out, lambda input, size, _, *, out: out
    ),
    "all_gather_into_tensor_coalesced": (
        f"(Tensor[] inputs, int group_size, {_ANY}) -> Tensor[]", _all_gather_into_tensor_coalesced,
        lambda inputs, size, _: [_gathered(t, size) for t in inputs],
    ),
    "reduce_scatter_tensor": (
        f"(Tensor input, str reduce_op, int group_size, {_ANY}) -> Tensor", _reduce_scatter_tensor, lambda input, _, size, __: _scattered(input, size)
    ),
    "reduce_scatter_tensor_out": (
        f"(Tensor input, str reduce_op, int group_size, {_ANY}, *, Tensor(a!) out) -> Tensor(a!)", _reduce_scatter_tensor_out,
        lambda input, _, size, __, *, out: out,
    ),
    "reduce_scatter_tensor_coalesced": (
        f"(Tensor[] inputs, str reduce_op, int group_size, {_ANY}) -> Tensor[]", _reduce_scatter_tensor_coalesced,
        lambda inputs, _, size, __: [_scattered(t, size) for t in inputs],
    ),
    "all_to_all_single": (
        f"(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, {_ANY}) -> Tensor", _all_to_all_single,
        lambda input, sizes, *_: _exchanged(input, sizes),
    ),
    "broadcast": (f"(Tensor input, int src, {_ANY}) -> Tensor", _broadcast, lambda input, *_: cresset.empty_like(input)),
    "broadcast_": (f"(Tensor(a!) input, int src, {_ANY}) -> Tensor(a!)", _broadcast_, lambda input, *_: input),
    "isend": ("(Tensor tensor, int dst, int tag, str group_name) -> Tensor", _isend, lambda tensor, *_: tensor),
    "irecv": ("(Tensor tensor, int src, int tag, str group_name) -> Tensor", _irecv, lambda tensor, *_: tensor),
    "batch_p2p_ops": (
        "(str[] op_list, int[] peer_list, int[] tag_list, Tensor[] tensors, str group_name) -> Tensor[]", _batch_p2p_ops,
        lambda ops, peers, tags, tensors, _: list(tensors),
    ),
    "wait_tensor": ("(Tensor tensor) -> Tensor", _wait_tensor, lambda tensor: tensor),
    "_wrap_tensor_autograd": ("(Tensor input) -> Tensor", _as_under_way, _as_under_way),
}

_library = Library("_c10d_functional", "DEF")


_NEED_CONTIGUOUS = ("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single")


def _define(library, name, schema, kernel, meta):
    # Results change after an operator has given them, until somebody waits: without marks of writes, scripts must keep all of this in its order.
    tags = (cresset.Tag.pt2_compliant_tag, *((cresset.Tag.needs_contiguous_strides,) if name.startswith(_NEED_CONTIGUOUS) else ()))
    library.define(name + schema, "" if "!" in schema else "CONSERVATIVE", tags=tags)
    library.impl(name, kernel, "CompositeExplicitAutograd")
    library.impl(name, meta, "Meta")


for _name, _row in _SCHEMAS.items():
    _define(_library, _name, *_row)

ops = cresset.ops._c10d_functional


# --- gradients: wait_tensor's passes through, the others' are collectives of the same namespace, so that they can be differentiated again

def _only_sum(what, reduce_op):
    if reduce_op.lower() != "sum":
        raise RuntimeError(f"{what} backward only supports 'sum' reduction, got '{reduce_op}'")


def _waited(tensor):
    return ops.wait_tensor(tensor)


def _keep(*names):
    def setup(ctx, inputs, output):
        for name, value in zip(names, inputs):
            if name:
                setattr(ctx, name, value)

    return setup


def _all_reduce_backward(ctx, grad):
    _only_sum("all_reduce", ctx.op)
    return _waited(ops.all_reduce(grad.contiguous(), "sum", ctx.group)), None, None


def _all_gather_backward(ctx, grad):
    return _waited(ops.reduce_scatter_tensor(grad.contiguous(), "sum", ctx.size, ctx.group)), None, None


def _reduce_scatter_backward(ctx, grad):
    _only_sum("reduce_scatter_tensor", ctx.op)
    return _waited(ops.all_gather_into_tensor(grad.contiguous(), ctx.size, ctx.group)), None, None, None


def _all_to_all_backward(ctx, grad):
    return _waited(ops.all_to_all_single(grad.contiguous(), ctx.sent, ctx.received, ctx.group)), None, None, None


def _broadcast_backward(ctx, grad):
    total = _waited(ops.all_reduce(grad.contiguous(), "sum", ctx.group))
    here = _group(ctx.group).rank() == ctx.src
    return total if here else cresset.zeros_like(total), None, None


def _register_gradients():
    op = "_c10d_functional::"
    register_autograd(op + "all_reduce", _all_reduce_backward, setup_context=_keep("", "op", "group"), lib=_library)
    register_autograd(op + "all_gather_into_tensor", _all_gather_backward, setup_context=_keep("", "size", "group"), lib=_library)
    register_autograd(op + "reduce_scatter_tensor", _reduce_scatter_backward, setup_context=_keep("", "op", "size", "group"), lib=_library)
    register_autograd(op + "all_to_all_single", _all_to_all_backward, setup_context=_keep("", "received", "sent", "group"), lib=_library)
    register_autograd(op + "_wrap_tensor_autograd", lambda ctx, grad: grad, lib=_library)
    register_autograd(op + "broadcast", _broadcast_backward, setup_context=_keep("", "src", "group"), lib=_library)


_register_gradients()

_autograd_library = Library("_c10d_functional_autograd", "DEF")
for _name in ("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"):
    _autograd_library.define(_name + _SCHEMAS[_name][0])
    _autograd_library.impl(_name, getattr(ops, _name), "CompositeImplicitAutograd")

# --- the older arguments: a tag, ranks and the size of the group

_OLDER = {
    "all_reduce": ("(Tensor self, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor", lambda t, op, group, size: ops.all_reduce(t, op, group)),
    "all_reduce_coalesced": (
        "(Tensor[] self, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor[]", lambda t, op, group, size: ops.all_reduce_coalesced(t, op, group)
    ),
    "all_gather_into_tensor": (
        "(Tensor shard, str tag, int[] ranks, int group_size) -> Tensor", lambda t, group, size: ops.all_gather_into_tensor(t, size, group)
    ),
    "all_gather_into_tensor_coalesced": (
        "(Tensor[] input, str tag, int[] ranks, int group_size) -> Tensor[]", lambda t, group, size: ops.all_gather_into_tensor_coalesced(t, size, group)
    ),
    "reduce_scatter_tensor": (
        "(Tensor input, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor",
        lambda t, op, group, size: ops.reduce_scatter_tensor(t, op, size, group),
    ),
    "reduce_scatter_tensor_coalesced": (
        "(Tensor[] inputs, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor[]",
        lambda t, op, group, size: ops.reduce_scatter_tensor_coalesced(t, op, size, group),
    ),
    "broadcast": ("(Tensor self, int src, str tag, int[] ranks, int group_size) -> Tensor", lambda t, src, group, size: ops.broadcast(t, src, group)),
}


def _of_ranks(call):
    def kernel(*arguments):
        *rest, tag, ranks, size = arguments
        group = next((g for g, places in current().pg_group_ranks.items() if sorted(places) == sorted(ranks)), None)
        if group is None:
            raise RuntimeError(f"c10d_functional: there is no process group of the ranks {list(ranks)}: new_group makes one.")
        return call(*rest, group.group_name, size)

    return kernel


_older_library = Library("c10d_functional", "DEF")
for _name, (_schema, _call) in _OLDER.items():
    _older_library.define(_name + _schema)
    _older_library.impl(_name, _of_ranks(_call), "CompositeImplicitAutograd")
_older_library.define("wait_tensor(Tensor self) -> Tensor")
_older_library.impl("wait_tensor", ops.wait_tensor, "CompositeImplicitAutograd")
_older_library.define("all_to_all_single(Tensor input, SymInt[]? output_split_sizes, SymInt[]? input_split_sizes, str tag, int[] ranks, int group_size) -> Tensor")


def _older_all_to_all(input, output_split_sizes, input_split_sizes, group, size):
    equal = [input.shape[0] // size] * size
    return ops.all_to_all_single(input, output_split_sizes or equal, input_split_sizes or equal, group)


_older_library.impl("all_to_all_single", _of_ranks(_older_all_to_all), "CompositeImplicitAutograd")
for _name, _arguments in (("isend", "Tensor self, int dst, int tag"), ("irecv", "Tensor self, int src, int tag")):
    _older_library.define(f"{_name}({_arguments}, str group_name) -> Tensor")
    _older_library.impl(_name, getattr(ops, _name), "CompositeImplicitAutograd")
_older_library.define("batch_p2p_ops" + _SCHEMAS["batch_p2p_ops"][0])
_older_library.impl("batch_p2p_ops", ops.batch_p2p_ops, "CompositeImplicitAutograd")
