"""Whole parameters for a while: FullyShardedDataParallel.summon_full_params."""

import contextlib
import warnings

import cresset
from cresset import nn

from ._fully_shard._fsdp_param import ReplicatedParam

__all__ = ["check", "summoned"]


def check(writeback, rank0_only, offload_to_cpu, with_grads, use_orig_params, shards):
    """NotImplementedError for what does not go together."""
    if writeback and rank0_only:
        raise NotImplementedError("writeback=True and rank0_only=True is not supported yet")
    if offload_to_cpu and not shards:
        raise NotImplementedError("offload_to_cpu=True and NO_SHARD is not supported yet")
    if with_grads and (offload_to_cpu or not use_orig_params):
        raise NotImplementedError(
            f"with_grads={with_grads}, use_orig_params={use_orig_params}, offload_to_cpu={offload_to_cpu} is not supported yet"
        )
    if offload_to_cpu and not rank0_only:
        warnings.warn(
            "offload_to_cpu=True and rank0_only=False may result in the unsharded parameters being redundantly copied to CPU memory for each rank "
            "of a machine. We recommend using rank0_only=True.", stacklevel=4
        )  # fmt: skip


@contextlib.contextmanager
def summoned(wrappers, writeback, rank0_only, offload_to_cpu, with_grads):
    """Modules have the wholes of these wrappers' parameters. All ranks call it together."""
    taken = []
    try:
        for wrapper in wrappers:
            state = wrapper._fsdp_state
            if state.is_busy:
                raise AssertionError("Cannot manually unshard parameters during forward/backward")
            state.reshard()
            keep = not rank0_only or wrapper.rank == 0
            for p in state.group.fsdp_params if state.group is not None else ():
                if not isinstance(p, ReplicatedParam) and p.whole is None:
                    _take(p, keep, offload_to_cpu, with_grads)
                    taken.append(p)
            wrapper._summoned += 1
        yield
    finally:
        for wrapper in wrappers:
            wrapper._summoned = max(0, wrapper._summoned - 1)
            wrapper._fsdp_state.reshard()
        for p in taken:
            _give_back(p, writeback, with_grads)


def _take(p, keep, offload_to_cpu, with_grads):
    shard = p.sharded_param
    with cresset.no_grad():
        whole = shard.full_tensor().detach().clone()
        grad = shard.grad.full_tensor().detach().clone() if with_grads and shard.grad is not None else None
    if not keep:
        return
    p.whole = nn.Parameter(whole.to("cpu") if offload_to_cpu else whole, requires_grad=shard.requires_grad)
    p.whole.grad, p.whole._fsdp_flattened = grad, True
    p._put(p.whole)


def _give_back(p, writeback, with_grads):
    if p.whole is None:
        return
    whole, now = p.whole, p.info.module._parameters[p.info.param_name]
    if now is not p.sharded_param and now is not None and tuple(now.shape) == p.orig_size:
        whole = now  # the program has put another one there
    p.whole = None
    p._put(p.sharded_param)
    if not writeback:
        return
    with cresset.no_grad():
        p.kept.copy_(p.part_of(whole))
        if with_grads:
            p.sharded_param.grad = None
            if whole.grad is not None:
                p._add_grad(p.part_of(whole.grad).clone())
