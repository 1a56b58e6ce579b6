"""Collectives on tensors, and messages between two ranks. Ranks are those of the default group, unless a name says `group_…`."""

import contextlib

import cresset
from cresset import _C_distributed as _C
from cresset._C_distributed import ReduceOp

from . import _groups, _observed
from ._groups import GroupMember, _group_or_default, _rank_not_in_group, _warn_not_in_group, get_group_rank, get_rank
from ._sparse_sums import sum_sparse

__all__ = [
    "P2POp", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce", "all_reduce_coalesced", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "gather", "irecv", "isend", "monitored_barrier", "recv", "reduce",
    "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "send", "supports_complex",
]

_Tensor = cresset.Tensor


def _check_tensor(tensor, name):
    if not isinstance(tensor, _Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(tensor)} instead.")


def _check_tensors(tensors, name):
    if not isinstance(tensors, list):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got {type(tensors)} instead.")
    if not all(isinstance(t, _Tensor) for t in tensors):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(tensors)} with elements of type {[type(t) for t in tensors]}."
        )


def _check_dtypes(*tensors):
    kinds = {t.dtype for t in tensors}
    if len(kinds) > 1:
        first = tensors[0].dtype
        other = next(t.dtype for t in tensors if t.dtype != first)
        raise ValueError(f"Invalid usage of tensors with different dtypesFound {first} and  {other}")


def _options(kind, async_op, **values):
    opts = kind()
    opts.asyncOp = async_op
    for name, value in values.items():
        setattr(opts, name, value)
    return opts


def _finish(work, async_op):
    if async_op:
        return work
    if work is not None:
        work.wait()
    return None


def _rank_in(group, rank, group_rank, name, required=True):
    """The rank in the group, which may be given as that of the default group."""
    if group_rank is not None:
        if rank is not None:
            raise ValueError(f"Can't specify both group_{name} and {name}")
        return group_rank
    if rank is None:
        if required:
            raise ValueError(f"Must specify {name} or group_{name}")
        return 0
    return get_group_rank(group, rank)


def supports_complex(reduceOp):
    """Are complex values possible for this reduction?"""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


# --- one tensor each

def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce the tensors of all ranks, of one shape and dtype, in place on every rank. With `async_op` a Work, else None.

    Sparse tensors (COO) are added; the sum is coalesced.
    """
    if not isinstance(tensor, _Tensor):
        _check_tensor(tensor, "tensor")
    if group is None:
        group = _groups._get_default_group()
    elif _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce")
    if tensor.layout != cresset.strided:
        return sum_sparse(tensor, op, group, async_op)
    opts = _C.AllreduceOptions()
    opts.reduceOp = op
    if _coalescing is not None:
        return _coalescing.add("all_reduce", group, (tensor,), op)
    if _observed.observed(tensor):
        return _observed.observe("allreduce_", ([[tensor]], (None, async_op)), group, async_op, _observed.copy_reduced(tensor), op)
    opts.asyncOp = async_op
    work = group.allreduce([tensor], opts)
    if async_op:
        return work
    work.wait()
    return None


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Give every rank what `src` has in its tensor; shapes and dtypes are the same everywhere."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast")
    group = _group_or_default(group)
    root = _rank_in(group, src, group_src, "src")
    if _observed.observed(tensor):
        return _observed.observe("broadcast_", ([[tensor]], (root, 0, async_op)), group, async_op, _observed.copy_broadcast(tensor, root))
    return _finish(group.broadcast([tensor], _options(_C.BroadcastOptions, async_op, rootRank=root, rootTensor=0)), async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Reduce the tensors of all ranks into that of `dst`; the others' stay as they are."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce")
    group = _group_or_default(group)
    root = _rank_in(group, dst, group_dst, "dst")
    if _observed.observed(tensor):
        functional = _observed.copy_reduced_at(tensor, group.rank() == root)
        return _observed.observe("reduce_", ([[tensor]], (root, 0, async_op)), group, async_op, functional, op)
    return _finish(group.reduce([tensor], _options(_C.ReduceOptions, async_op, reduceOp=op, rootRank=root)), async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """all_reduce of a list of tensors of one dtype in one message. With `async_op` a future of the tensors."""
    tensors = [tensors] if isinstance(tensors, _Tensor) else tensors
    _check_tensors(tensors, "tensor")
    _check_dtypes(*tensors)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce_coalesced")
    if _observed.observed(*tensors):
        functional = _observed.copy_each(tensors, lambda f, name, kind: f.all_reduce_coalesced(tensors, kind, name))
        work = _observed.observe("allreduce_coalesced_", ([tensors], (async_op,)), _group_or_default(group), async_op, functional, op)
        return work.get_future() if async_op else None
    opts = _options(_C.AllreduceCoalescedOptions, async_op, reduceOp=op)
    work = _group_or_default(group).allreduce_coalesced(tensors, opts)
    return work.get_future() if async_op else _finish(work, False)


# --- parts

def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Fill `tensor_list`, one tensor a rank, with the tensors of all ranks, of one shape and dtype."""
    _check_tensors(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    _check_dtypes(tensor, *tensor_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather")
    if _observed.observed(tensor, *tensor_list):
        functional = _observed.copy_gathered_parts(tensor_list, tensor)
        return _observed.observe("allgather_", (([tensor_list], [tensor]), (async_op,)), _group_or_default(group), async_op, functional)
    return _finish(_group_or_default(group).allgather([tensor_list], [tensor], _options(_C.AllgatherOptions, async_op)), async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Put the tensors of all ranks behind each other, or stack them, into a tensor of world size times as many elements."""
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_into_tensor")
    group = _group_or_default(group)
    if _coalescing is not None:
        return _coalescing.add("all_gather_into_tensor", group, (output_tensor, input_tensor), None)
    if _observed.observed(output_tensor, input_tensor):
        functional = _observed.copy_gathered(output_tensor, input_tensor)
        return _observed.observe("_allgather_base_", ((output_tensor, input_tensor), (async_op,)), group, async_op, functional)
    return _finish(group._allgather_base(output_tensor, input_tensor, _options(_C.AllgatherOptions, async_op)), async_op)


all_gather_single = all_gather_into_tensor


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """`output_tensor_lists[r][i]` becomes rank r's `input_tensor_list[i]`. With `async_op` a future of the lists."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_coalesced")
    _check_tensors(input_tensor_list, "input_tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for tensors in output_tensor_lists:
        _check_tensors(tensors, "output_tensor_lists")
    if _observed.observed(*input_tensor_list):
        return _observed.observe("allgather_coalesced_", ((output_tensor_lists, input_tensor_list), (async_op,)), _group_or_default(group), async_op)
    work = _group_or_default(group).allgather_coalesced(output_tensor_lists, input_tensor_list, _options(_C.AllgatherOptions, async_op))
    return work.get_future() if async_op else _finish(work, False)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Fill `gather_list` of rank `dst` (0 without one), one tensor a rank; the other ranks give none."""
    _check_tensor(tensor, "tensor")
    _check_tensors(gather_list or [], "gather_list")
    _check_dtypes(tensor, *(gather_list or []))
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather")
    group = _group_or_default(group)
    root = _rank_in(group, dst, group_dst, "dst", required=False)
    _check_list_of_root(gather_list, group.rank() == root, "gather_list", "destination")
    outputs = [gather_list] if group.rank() == root else []
    if _observed.observed(tensor):
        functional = _observed.copy_gathered_at(gather_list, tensor, group.rank() == root)
        return _observed.observe("gather_", ((outputs, [tensor]), (root, async_op)), group, async_op, functional)
    return _finish(group.gather(outputs, [tensor], _options(_C.GatherOptions, async_op, rootRank=root)), async_op)


def _check_list_of_root(tensors, is_root, name, role):
    if is_root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")
    if not is_root and tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{role} ranks.")


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Give every rank its tensor of `scatter_list` of rank `src` (0 without one); the other ranks give none."""
    _check_tensor(tensor, "tensor")
    _check_tensors(scatter_list or [], "scatter_list")
    _check_dtypes(tensor, *(scatter_list or []))
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter")
    group = _group_or_default(group)
    root = _rank_in(group, src, group_src, "src", required=False)
    if group.rank() == root and not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if group.rank() != root and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    inputs = [scatter_list] if group.rank() == root else []
    if _observed.observed(tensor):
        functional = _observed.copy_scattered(tensor, scatter_list, root, group.size(), group.rank())
        return _observed.observe("scatter_", (([tensor], inputs), (root, async_op)), group, async_op, functional)
    return _finish(group.scatter([tensor], inputs, _options(_C.ScatterOptions, async_op, rootRank=root)), async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce the lists of all ranks, tensor by tensor; rank r gets the r-th."""
    _check_tensor(output, "output")
    _check_tensors(input_list, "input_list")
    _check_dtypes(output, *input_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter")
    if _observed.observed(output, *input_list):
        functional = _observed.copy_reduced_parts(output, input_list)
        return _observed.observe("reduce_scatter_", (([output], [input_list]), (async_op,)), _group_or_default(group), async_op, functional, op)
    opts = _options(_C.ReduceScatterOptions, async_op, reduceOp=op)
    return _finish(_group_or_default(group).reduce_scatter([output], [input_list], opts), async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce the tensors of all ranks; rank r gets the r-th part, of as many elements as `output` has."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter_tensor")
    group = _group_or_default(group)
    if _coalescing is not None:
        return _coalescing.add("reduce_scatter_tensor", group, (output, input), op)
    if _observed.observed(output, input):
        functional = _observed.copy_reduced_part(output, input, group.size())
        return _observed.observe("_reduce_scatter_base_", ((output, input), (async_op,)), group, async_op, functional, op)
    return _finish(group._reduce_scatter_base(output, input, _options(_C.ReduceScatterOptions, async_op, reduceOp=op)), async_op)


reduce_scatter_single = reduce_scatter_tensor


def _sizes(splits):
    return [] if splits is None else [int(n) for n in splits]


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Send the r-th part of `input` to rank r, and receive that of rank r as the r-th part of `output`; parts are rows of dimension 0."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all_single")
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_dtypes(output, input)
    received, sent = _sizes(output_split_sizes), _sizes(input_split_sizes)
    if _observed.observed(output, input):
        functional = _observed.copy_exchanged(output, input, received, sent)
        return _observed.observe("alltoall_base_", ((output, input), (received, sent, async_op)), _group_or_default(group), async_op, functional)
    work = _group_or_default(group).alltoall_base(output, input, received, sent, _options(_C.AllToAllOptions, async_op))
    return _finish(work, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Send the r-th tensor to rank r, and receive the r-th from it."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all")
    _check_tensors(output_tensor_list, "output_tensor_list")
    _check_tensors(input_tensor_list, "input_tensor_list")
    _check_dtypes(*output_tensor_list, *input_tensor_list)
    if _observed.observed(*output_tensor_list, *input_tensor_list):
        functional = _observed.copy_exchanged_parts(output_tensor_list, input_tensor_list)
        return _observed.observe("alltoall_", ((output_tensor_list, input_tensor_list), (async_op,)), _group_or_default(group), async_op, functional)
    return _finish(_group_or_default(group).alltoall(output_tensor_list, input_tensor_list, _options(_C.AllToAllOptions, async_op)), async_op)


# --- barriers

def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait until every rank of the group has come here."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("barrier")
    opts = _options(_C.BarrierOptions, async_op)
    if timeout is not None:
        opts.timeout = timeout
    if device_ids is not None:
        if not isinstance(device_ids, list):
            raise TypeError("Invalid function argument: device_ids type should be List[int]")
        opts.device_ids = device_ids
    if _observed.observed():
        arguments = (cresset.empty(1, dtype=cresset.uint8),), (device_ids or [], async_op)
        return _observed.observe("barrier", arguments, _group_or_default(group), async_op, _observed.wait_for_all)
    return _finish(_group_or_default(group).barrier(opts), async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier where rank 0 names who does not come within the timeout: the first, or all with `wait_all_ranks`. RuntimeError then."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("monitored_barrier")
    if _groups.get_backend(group) != "gloo":
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    group = _group_or_default(group)
    if timeout is None:
        timeout = _groups._timeout_of(group)
    elif timeout.total_seconds() <= 0:
        raise ValueError("monitored_barrier: a positive timeout was required.")
    return group.monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)


# --- messages

def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Begin to send to a rank; a Work. The tensor must not change until that is done."""
    group = _group_or_default(group)
    destination = _rank_in(group, dst, group_dst, "dst")
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("isend")
    if destination == group.rank():
        raise ValueError(f"Invalid destination rank: destination rank should not be the same as the rank of the current process. (Rank {get_rank()})")
    if _observed.observed(tensor):
        return _observed.observe("send", ([[tensor]], (destination, tag)), group, True, _observed.wait_for_sent(tensor, destination, tag))
    return group.send([tensor], destination, tag)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Begin to receive from a rank, or from any; a Work."""
    _check_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("irecv")
    group = _group_or_default(group)
    if src is None and group_src is None:
        if _observed.observed(tensor):
            return _observed.observe("recv_any_source_", ([[tensor]], (tag,)), group, True)
        return group.recv_anysource([tensor], tag)
    source = _rank_in(group, src, group_src, "src")
    if source == group.rank():
        raise ValueError(f"Invalid source rank: source rank should not be the same as the rank of the current process. (Rank {get_rank()})")
    if _observed.observed(tensor):
        return _observed.observe("recv_", ([[tensor]], (source, tag)), group, True, _observed.copy_received(tensor, source, tag))
    return group.recv([tensor], source, tag)


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send to a rank; the tensor may change afterwards."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receive from a rank, or from any; the sender's rank in the default group, -1 where this process is no member."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is None:
        group = _group_or_default(group)
        rank = work._source_rank() if group_src is None else group_src
        return rank if group is GroupMember.WORLD else _groups.get_global_rank(group, rank)
    return src


class P2POp:
    """One message of batch_isend_irecv: `op` is isend or irecv, with their arguments."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, _group_or_default(group), tag
        self.group_peer = _rank_in(self.group, peer, group_peer, "peer")
        self.peer = peer if peer is not None else _groups.get_global_rank(self.group, group_peer)

    def __repr__(self):
        return f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={self.group.rank()}, group_dst={self.group_peer}, {self.tensor.shape}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list):
    """Begin several messages, in whatever order; a Work for each."""
    if not p2p_op_list or not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if any(op.group is not p2p_op_list[0].group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for each in p2p_op_list:
        name = "group_dst" if each.op is isend else "group_src"
        works.append(each.op(each.tensor, group=each.group, tag=each.tag, **{name: each.group_peer}))
    return [w for w in works if w is not None]


# --- several in one

_coalescing = None


class _CollOp:
    """A collective that waits to be sent with others: what, its tensors, its reduction and its root."""

    def __init__(self, op, tensor, dst_tensor=None, redop=None, root=None):
        self.op, self.tensor, self.dst_tensor, self.redop, self.root = op, tensor, dst_tensor, redop, root


class _CoalescingManager:
    """Collectives of one kind that are sent together; wait() waits for them."""

    def __init__(self):
        self.kind, self.group, self.op, self.calls, self.works = None, None, None, [], []

    def add(self, kind, group, tensors, op):
        if self.kind not in (None, kind) or self.group not in (None, group):
            raise RuntimeError("Coalescing manager: all calls must be of one kind and in one group.")
        self.kind, self.group, self.op = kind, group, op
        self.calls.append(tensors)

    def begin(self, async_ops):
        if not self.calls:
            return
        first, rest = [c[0] for c in self.calls], [c[-1] for c in self.calls]
        if _observed.observed(*first, *rest):
            self.works.append(self._observed(first, rest))
            return
        if self.kind == "all_reduce":
            work = self.group.allreduce_coalesced(first, _options(_C.AllreduceCoalescedOptions, True, reduceOp=self.op))
        elif self.kind == "all_gather_into_tensor":
            work = self.group.allgather_into_tensor_coalesced(first, rest, _options(_C.AllgatherOptions, True))
        else:
            work = self.group.reduce_scatter_tensor_coalesced(first, rest, _options(_C.ReduceScatterOptions, True, reduceOp=self.op))
        self.works.append(work)

    def _observed(self, first, rest):
        group = self.group
        if self.kind == "all_reduce":
            functional = _observed.copy_each(first, lambda f, name, op: f.all_reduce_coalesced(first, op, name))
            return _observed.observe("allreduce_coalesced_", ([first], (True,)), group, True, functional, self.op)
        if self.kind == "all_gather_into_tensor":
            functional = _observed.copy_each(first, lambda f, name: f.all_gather_into_tensor_coalesced(rest, name))
            return _observed.observe("allgather_into_tensor_coalesced_", ((first, rest), (True,)), group, True, functional)
        functional = _observed.copy_each(first, lambda f, name, op: f.reduce_scatter_tensor_coalesced(rest, op, [0] * len(rest), name))
        return _observed.observe("reduce_scatter_tensor_coalesced_", ((first, rest), (True,)), group, True, functional, self.op)

    def append(self, work=None):
        if work is not None:
            self.works.append(work)

    def wait(self):
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(group=None, device=None, async_ops=False):
    """Calls of all_reduce, all_gather_into_tensor or reduce_scatter_tensor inside are sent as one at its end."""
    global _coalescing
    if _coalescing is not None:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    manager = _coalescing = _CoalescingManager()
    try:
        yield manager
    finally:
        _coalescing = None
    manager.begin(async_ops)
    if not async_ops:
        manager.wait()
