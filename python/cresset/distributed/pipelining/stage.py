"""Stages: parts of a model on ranks, which get activations of the stage before and send theirs to the next, and gradients the other way."""

import contextlib
from abc import ABC

import cresset
from cresset import distributed as dist
from cresset import nn
from cresset.utils import _pytree as pytree

from ._actions import B
from ._backward import stage_backward, stage_backward_input, stage_backward_weight
from ._utils import PipeliningShapeError, TensorMeta

__all__ = ["PipelineStage", "build_stage"]


def _as_tuple(value):
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,)


class _PipelineStageBase(ABC):
    """What schedules ask of a stage: its place. `stage_index_to_group_rank` says which rank of the group has which stage."""

    def __init__(self, submodule, stage_index, num_stages, device, group=None, dw_builder=None):
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group, self.dw_builder = cresset.device(device), group, dw_builder
        self.group_rank, self.group_size = dist.get_rank(group), dist.get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}")
        self.stage_index_to_group_rank = {i: i % self.group_size for i in range(num_stages)}

    @property
    def is_first(self):
        """Does it get the model's inputs?"""
        return self.stage_index == 0

    @property
    def is_last(self):
        """Does it give the model's outputs?"""
        return self.stage_index == self.num_stages - 1

    def scale_grads(self, grad_scale_factor):
        """Divide the gradients of its parameters."""
        if grad_scale_factor != 1:
            for p in self.submod.parameters():
                if p.grad is not None:
                    p.grad.div_(grad_scale_factor)


class PipelineStage(_PipelineStageBase):
    """Stage `stage_index` of `num_stages`: `submodule`, on `device`, in a group of which each rank has the stages of its number modulo the size.

    All but the first stage get what the stage before returns, a tensor or a tuple of tensors, as positional arguments. Shapes and dtypes are found with tensors of
    no memory (device "meta") when a schedule first runs, or given: `input_args` (of a microbatch) and `output_args`. `dw_builder()` gives a
    function that is called for the weights' gradients of a microbatch, where the submodule's backward leaves them to it.
    PipeliningShapeError, a RuntimeError, where a microbatch does not fit.
    """

    def __init__(self, submodule, stage_index, num_stages, device, input_args=None, output_args=None, output_grads=None, input_grads=None, group=None,
                 dw_builder=None, **kwargs):  # fmt: skip
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        if kwargs or output_grads is not None or input_grads is not None:
            named = [*kwargs, *(n for n, v in (("output_grads", output_grads), ("input_grads", input_grads)) if v is not None)]
            raise NotImplementedError(f"PipelineStage: {', '.join(named)} is not part of Cresset: gradients have the shapes of their tensors.")
        submodule.to(self.device)
        self._given_inputs = None if input_args is None else tuple(map(TensorMeta.of, _as_tuple(input_args)))
        self._given_outputs = None if output_args is None else tuple(map(TensorMeta.of, _as_tuple(output_args)))
        self.inputs = self.outputs = None  # tuples of TensorMeta
        self.clear_runtime_states()

    def clear_runtime_states(self):
        """Forget all microbatches."""
        self.args, self.results, self.losses = {}, {}, {}
        self.output_grads, self.input_grads, self.later = {}, {}, {}
        self.output_chunks = {}

    # --- shapes

    def set_up(self, args, kwargs, has_backward):
        """Find the shapes of a microbatch; stages of all ranks do this in their order, each with what the one before has found."""
        if self.is_first:
            leaves = [a for a in pytree.tree_leaves((args, kwargs)) if isinstance(a, cresset.Tensor)]
            self.inputs = tuple(map(TensorMeta.of, leaves))
        else:
            self.inputs = self._from_stage_before()
        if self._given_outputs is not None:
            made = self._given_outputs
            self.outputs = tuple(TensorMeta(m.shape, m.dtype, m.dtype.is_floating_point and has_backward) for m in made)
        else:
            self.outputs = self._infer(args, kwargs, has_backward)
        self._tell_next_stage()

    def _meta_of(self, meta, has_backward):
        value = cresset.empty(meta.shape, dtype=meta.dtype, device="meta")
        return value.requires_grad_(meta.requires_grad and has_backward)

    def _infer(self, args, kwargs, has_backward):
        state = {name: t.detach().to("meta").requires_grad_(t.requires_grad) for name, t in (*self.submod.named_parameters(), *self.submod.named_buffers())}
        if self.is_first:
            args, kwargs = pytree.tree_map_only(cresset.Tensor, lambda t: t.detach().to("meta"), (args, kwargs))
        else:
            args = tuple(self._meta_of(meta, has_backward) for meta in self.inputs)
        module = self.submod.module if isinstance(self.submod, nn.parallel.DistributedDataParallel) else self.submod
        if module is not self.submod:
            state = {name.removeprefix("module."): value for name, value in state.items()}
        with cresset.set_grad_enabled(has_backward):
            made = _as_tuple(cresset.func.functional_call(module, state, args, kwargs))
        return tuple(map(TensorMeta.of, self._checked_outputs(made)))

    def _checked_outputs(self, made):
        bad = next((v for v in made if not isinstance(v, cresset.Tensor)), None)
        if bad is not None and not self.is_last:
            raise TypeError(f"Stage {self.stage_index}: a tensor or a tuple of tensors was required from its module; a {type(bad).__name__} is in what it gave.")
        return [v for v in made if isinstance(v, cresset.Tensor)]

    def _peer(self, stage):
        return self.stage_index_to_group_rank[stage]

    def _from_stage_before(self):
        peer = self._peer(self.stage_index - 1)
        if peer == self.group_rank:
            return self.neighbour_outputs
        told = [None]
        dist.recv_object_list(told, group=self.group, group_src=peer)
        return tuple(TensorMeta(shape, getattr(cresset, dtype), grad) for shape, dtype, grad in told[0])

    def _tell_next_stage(self):
        if self.is_last or self._peer(self.stage_index + 1) == self.group_rank:
            return
        told = [(m.shape, str(m.dtype).rpartition(".")[2], m.requires_grad) for m in self.outputs]
        dist.send_object_list([told], group=self.group, group_dst=self._peer(self.stage_index + 1))

    # --- messages; each has a tag of its own, so that ranks may send and receive in different orders

    def _tag(self, kind, stage, microbatch, place):
        return ((microbatch * self.num_stages + stage) * 2 + kind) * 64 + place

    def _receive(self, metas, kind, stage, peer, microbatch):
        buffers = [cresset.empty(m.shape, dtype=m.dtype, device=self.device) for m in metas]
        works = [
            dist.irecv(b, group=self.group, group_src=peer, tag=self._tag(kind, stage, microbatch, n)) for n, b in enumerate(buffers)
        ]
        return buffers, works

    def _send(self, tensors, kind, stage, peer, microbatch):
        return [
            dist.isend(t.detach().contiguous(), group=self.group, group_dst=peer, tag=self._tag(kind, stage, microbatch, n)) for n, t in enumerate(tensors)
        ]

    def begin_receive_forward(self, microbatch):
        """Buffers and works of the inputs of a microbatch; None where they are not sent."""
        if self.is_first or self._peer(self.stage_index - 1) == self.group_rank:
            return None
        return self._receive(self.inputs, 0, self.stage_index, self._peer(self.stage_index - 1), microbatch)

    def begin_receive_backward(self, microbatch):
        """Buffers and works of the gradients of the outputs of a microbatch; None where they are not sent."""
        if self.is_last or self._peer(self.stage_index + 1) == self.group_rank:
            return None
        return self._receive(self._grad_metas(self.outputs), 1, self.stage_index, self._peer(self.stage_index + 1), microbatch)

    @staticmethod
    def _grad_metas(metas):
        return [m for m in metas if m.requires_grad]

    def send_forward(self, microbatch, next_stage):
        """Send the outputs of a microbatch, or give them to the next stage on this rank; works."""
        if self.is_last:
            return []
        if next_stage is not None:
            next_stage.args[microbatch] = tuple(t.detach().requires_grad_(t.requires_grad) for t in self.results[microbatch])
            return []
        return self._send(self.results[microbatch], 0, self.stage_index + 1, self._peer(self.stage_index + 1), microbatch)

    def send_backward(self, microbatch, stage_before):
        """Send the gradients of the inputs of a microbatch, or give them to the stage before on this rank; works."""
        if self.is_first:
            return []
        gradients = self.input_grads.pop(microbatch)
        if stage_before is not None:
            stage_before.output_grads[microbatch] = gradients
            return []
        return self._send(gradients, 1, self.stage_index - 1, self._peer(self.stage_index - 1), microbatch)

    def arrived_forward(self, microbatch, buffers):
        """The inputs of a microbatch are here."""
        self.args[microbatch] = tuple(b.requires_grad_(m.requires_grad) for b, m in zip(buffers, self.inputs))

    def arrived_backward(self, microbatch, buffers):
        """The gradients of the outputs of a microbatch are here."""
        self.output_grads[microbatch] = buffers

    # --- work

    def _is_parallel(self):
        return isinstance(self.submod, nn.parallel.DistributedDataParallel)

    def _check(self, what, metas, tensors):
        if len(metas) != len(tensors):
            raise PipeliningShapeError(f"Stage {self.stage_index} {what}: number of values ({len(tensors)}) does not match expected number ({len(metas)})")
        for n, (meta, tensor) in enumerate(zip(metas, tensors)):
            meta.check(f"Stage {self.stage_index} {what} {n}", tensor)

    def forward_one_chunk(self, microbatch, args, kwargs, keep=True):
        """The outputs of a microbatch; the first stage has its arguments, the others what was sent."""
        if not self.is_first:
            args = self.args[microbatch]
        leaves = [a for a in pytree.tree_leaves((args, kwargs if self.is_first else {})) if isinstance(a, cresset.Tensor)]
        self._check("forward inputs", self._given_inputs if self._given_inputs is not None and self.is_first else self.inputs, leaves)
        with self.submod.no_sync() if self._is_parallel() else contextlib.nullcontext():
            made = self.submod(*args, **(kwargs or {}))
        results = _as_tuple(made)
        self._check("forward outputs", self.outputs, self._checked_outputs(results))
        self.args[microbatch], self.results[microbatch] = args, results
        if self.is_last and keep:
            self.output_chunks[microbatch] = made
        return made

    def _begin_sync(self, microbatch):
        """Gradients of DistributedDataParallel are averaged with this backward."""
        self.submod.reducer.prepare([t for t in self.results[microbatch] if isinstance(t, cresset.Tensor)], True)

    def backward_one_chunk(self, microbatch, loss=None, kind=B, last_backward=False):
        """The backward of a microbatch: from its loss, or from the gradients that were sent; `kind` I leaves the weights for later."""
        results = [t for t in self.results[microbatch] if isinstance(t, cresset.Tensor)]
        if self.is_last and loss is not None:
            outputs, gradients = (loss,), None
        else:
            grads = iter(self.output_grads.pop(microbatch, ()))
            outputs = tuple(results)
            gradients = tuple(next(grads, None) if m.requires_grad else None for m in self.outputs)
        inputs = tuple(a for a in pytree.tree_leaves(self.args.pop(microbatch)) if isinstance(a, cresset.Tensor))
        if last_backward and self._is_parallel() and kind == B:
            self._begin_sync(microbatch)
        if kind == B:
            found = stage_backward(outputs, gradients, inputs)
            if self.dw_builder is not None:
                self.dw_builder()()
        elif self.dw_builder is not None:
            found, self.later[microbatch] = stage_backward(outputs, gradients, inputs), self.dw_builder()
        else:
            weights = list(self.submod.parameters())
            if self.is_first:  # nobody waits for gradients of its inputs
                inputs = ()
            found, self.later[microbatch] = stage_backward_input(outputs, gradients, inputs, weights)
        if not self.is_first:
            self.input_grads[microbatch] = [
                cresset.zeros(m.shape, dtype=m.dtype, device=self.device) if g is None else g for g, m in zip(found, self.inputs) if m.requires_grad
            ]
        del self.results[microbatch]

    def backward_weight_one_chunk(self, microbatch, last_backward=False):
        """The part of the backward that kind I has left."""
        later = self.later.pop(microbatch)
        if callable(later):
            later()
        else:
            stage_backward_weight(list(self.submod.parameters()), later)

    @property
    def splits_backward(self):
        """Can the backward be done in two parts? That of DistributedDataParallel cannot."""
        return not self._is_parallel()


def build_stage(stage_module, stage_index, pipe_info, device, group=None):
    """The PipelineStage of a part of a Pipe."""
    return PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)
