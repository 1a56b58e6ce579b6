"""The parameters of one fully_shard call: gathered together, and their gradients reduced together."""

import cresset

from ... import _collectives
from ..._collectives import ReduceOp
from ._fsdp_common import TrainingState
from ._fsdp_param import FSDPParam

__all__ = ["FSDPParamGroup", "RegisterPostBackwardFunction"]


class FSDPParamGroup:
    """Parameters that are gathered and reduced by one message for each dtype. The settings are those of FSDPModule's methods.

    `comm_hook` and its state, where there is one, take the place of the reduction: hook(state, gradients, part of this rank) where ranks share
    parameters, hook(state, gradients) in place where each has all of them.
    """

    def __init__(self, params, infos, names, mesh_info, mp_policy, shard_placement_fn, reshard_after_forward, kind=FSDPParam):
        self.mesh_info, self.mp_policy = mesh_info, mp_policy
        self.fsdp_params = []
        for param, info, name in zip(params, infos, names):
            placement = shard_placement_fn(param) if shard_placement_fn is not None else None
            dim = 0 if placement is None else placement.dim % max(1, param.dim())
            self.fsdp_params.append(kind(param, info, mesh_info, dim, mp_policy, name))
        self.training_state, self.reshard_after_forward = TrainingState.IDLE, reshard_after_forward
        self.reshard_after_backward = self.reduce_grads = self.all_reduce_grads = self.unshard_in_backward = True
        self.reshard_mesh = None
        self.divide_factor, self.all_reduce_hook, self.force_sum = None, None, False
        self._pending = self._partial = None
        self.custom_all_gather = self.custom_reduce_scatter = None
        self.comm_hook, self.comm_hook_state = None, None

    @property
    def is_sharded(self):
        """Have modules the shards?"""
        return all(p.is_sharded for p in self.fsdp_params)

    # --- gathering

    def unshard(self, async_op=False):
        """Begin to gather the wholes, where they are not there; `wait_for_unshard` puts them together."""
        if not self.is_sharded or self._pending is not None:
            return
        ranks, self._pending = self.mesh_info.shard_mesh_size, []
        by_dtype = {}
        for p in self.fsdp_params:
            by_dtype.setdefault(p.gather_dtype, []).append(p)
        for dtype, params in by_dtype.items():
            with cresset.no_grad():
                flat = cresset.cat([p.gather_input() for p in params])
            work, out = None, flat
            if ranks > 1:
                out = cresset.empty(ranks * flat.numel(), dtype=dtype, device=flat.device)
                work = _collectives.all_gather_into_tensor(out, flat, group=self.mesh_info.shard_process_group, async_op=async_op)
            self._pending.append((work, out.view(ranks, -1), flat, params))

    def wait_for_unshard(self):
        """Give modules the wholes."""
        if self._pending is None:
            return
        for work, out, flat, params in self._pending:
            if work is not None:
                work.wait()
            offset = 0
            for p in params:
                count = flat.numel() if len(params) == 1 else _numel(p.padded)
                p.fill(out[:, offset : offset + count])
                p.to_unsharded()
                offset += count
        self._pending = None

    def reshard(self):
        """Give modules the shards."""
        self.wait_for_unshard()
        if not self.is_sharded:
            for p in self.fsdp_params:
                p.to_sharded()

    # --- an iteration

    def pre_forward(self, args, kwargs):
        """Gather, and see to it that backward comes here when the inputs' gradients are there."""
        self.training_state = TrainingState.FORWARD
        self.unshard()
        self.wait_for_unshard()
        return self._watched(args, kwargs)

    def _watched(self, args, kwargs):
        from cresset.utils._pytree import tree_flatten, tree_unflatten

        if not cresset.is_grad_enabled():
            return args, kwargs
        leaves, tree = tree_flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, cresset.Tensor) and leaf.requires_grad]
        if not places:
            return args, kwargs
        for i, leaf in zip(places, RegisterPostBackwardFunction.apply(self, *[leaves[i] for i in places])):
            leaves[i] = leaf
        return tree_unflatten(leaves, tree)

    def post_forward(self):
        """Free the wholes where backward gathers them again."""
        if self.reshard_after_forward and self.training_state == TrainingState.FORWARD:
            self.reshard()
        self.training_state = TrainingState.IDLE

    def pre_backward(self):
        """Gather for backward."""
        self.training_state = TrainingState.PRE_BACKWARD
        if self.unshard_in_backward:
            self.unshard()
            self.wait_for_unshard()

    def post_backward(self):
        """Reduce the gradients that there are, and free the wholes."""
        self.training_state = TrainingState.POST_BACKWARD
        with cresset.no_grad():
            if not self.reduce_grads:
                for p in self.fsdp_params:
                    p.keep_grad()
            else:
                self._reduce()
        if self.reshard_after_backward:
            self.reshard()
        self.training_state = TrainingState.IDLE

    def _reduce(self):
        found = [(p, p.take_grad()) for p in self.fsdp_params if p.sharded_param.requires_grad]
        by_dtype = {}
        for p, grad in found:
            if grad is not None:
                dtype = self.mp_policy.reduce_dtype if self.mp_policy.reduce_dtype is not None and grad.dtype.is_floating_point else grad.dtype
                by_dtype.setdefault(dtype, []).append((p, grad))
        for dtype, pairs in by_dtype.items():
            flat = cresset.cat([p.reduce_input(grad, dtype) for p, grad in pairs], dim=1).reshape(-1)
            self._set_grads([p for p, _ in pairs], self._reduced(flat, [p.name for p, _ in pairs]))

    def _reduced(self, flat, key):
        """This rank's part of the mean over all ranks; None while all-reduces wait for a later backward."""
        info = self.mesh_info
        if self.comm_hook is not None:
            return self._hooked(flat)
        op = ReduceOp.SUM if self.divide_factor is not None or self.force_sum else ReduceOp.AVG
        out, ranks = flat, info.shard_mesh_size
        if ranks > 1:
            out = flat.new_empty(flat.numel() // ranks)
            _collectives.reduce_scatter_tensor(out, flat, op=op, group=info.shard_process_group)
        if info.replicate_process_group is not None:
            if self._partial is not None:
                out += self._partial
                self._partial = None
            if not self.all_reduce_grads:
                self._partial = out
                return None
            ranks *= info.replicate_mesh_size
            _collectives.all_reduce(out, op=op, group=info.replicate_process_group)
        if self.all_reduce_hook is not None:
            self.all_reduce_hook(out)
        if op == ReduceOp.SUM:
            out /= self.divide_factor if self.divide_factor is not None else ranks
        return out

    def _hooked(self, flat):
        ranks = self.mesh_info.shard_mesh_size
        if ranks == 1:
            self.comm_hook(self.comm_hook_state, flat)
            return flat
        out = flat.new_empty(flat.numel() // ranks)
        self.comm_hook(self.comm_hook_state, flat, out)
        return out

    def _set_grads(self, params, flat):
        offset = 0
        for p in params if flat is not None else ():
            count = _numel(p.padded)
            p.set_grad(flat[offset : offset + count])
            offset += count

    def finish_backward(self):
        """At the end of a backward: what no input's gradient has brought here."""
        if self.training_state == TrainingState.PRE_BACKWARD or any(p.unsharded_param is not None and p.unsharded_param.grad is not None for p in self.fsdp_params):
            self.post_backward()


def _numel(shape):
    count = 1
    for size in shape:
        count *= size
    return count


class RegisterPostBackwardFunction(cresset.autograd.Function):
    """The inputs of a module: when their gradients are there those of its parameters are, too."""

    @staticmethod
    def forward(ctx, param_group, *inputs):
        ctx.param_group = param_group
        return inputs

    @staticmethod
    def backward(ctx, *grads):
        ctx.param_group.post_backward()
        return (None, *grads)
