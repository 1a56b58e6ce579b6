"""One parameter: its shard, a DTensor, which modules have between uses, and the whole, which they have while they compute."""

from dataclasses import dataclass, field

import cresset
from cresset import nn
from cresset.autograd import _unsafe_preserve_version_counter

from ...device_mesh import DeviceMesh
from ...tensor import DTensor, Replicate, Shard
from ...tensor._dtensor_spec import DTensorSpec, TensorMeta
from ...tensor.placement_types import _StridedShard, pad_tensor

__all__ = ["FSDPParam", "ParamModuleInfo", "ReplicatedParam"]


@dataclass
class ParamModuleInfo:
    """A module and the name that it has the parameter by; others that share it."""

    module: nn.Module
    param_name: str
    shared_modules: list = field(default_factory=list)
    shared_param_names: list = field(default_factory=list)


class FSDPParam:
    """A parameter of a group. `sharded_param` is the DTensor that optimisers see, `unsharded_param` the leaf that forward and backward use.

    The memory of the whole is freed between uses; autograd keeps the tensor, which is filled again before backward needs it. All ranks have shards of
    `padded` sizes along `shard_dim`, of which the last may be shorter or empty. `whole`, where it is not None, is what modules have between uses in
    place of the shard, for programs that look at or change all of it; this rank's part of it counts.
    """

    whole = None

    def __init__(self, param, info, mesh_info, shard_dim, mp_policy, name=""):
        self.info, self.mesh_info, self.dim, self.mp_policy, self.name = info, mesh_info, shard_dim, mp_policy, name
        self.unsharded_param, self.is_sharded, self.accumulated_grad = None, True, None
        self._shard(param)

    # --- the shard

    def _shard(self, param):
        mesh_info = self.mesh_info
        self.tp_spec = param._spec if isinstance(param, DTensor) else None
        data = param._local_tensor.detach() if self.tp_spec else param.detach()
        if not 0 <= self.dim < max(1, data.dim()):
            raise ValueError(f"fully_shard: {self.name} has {data.dim()} dimensions: Shard({self.dim}) does not divide it.")
        if data.dim() == 0:
            raise ValueError(f"fully_shard doesn't support scalar parameters. Change {self.name} to a 1D tensor with numel equal to 1.")
        self.orig_dtype, self.orig_size = data.dtype, tuple(data.shape)
        self._spec = self._sharded_spec(param, data)
        self.padded = list(data.shape)
        self.padded[self.dim] = -(-data.shape[self.dim] // mesh_info.shard_mesh_size)
        local = Shard(self.dim)._parts(data, mesh_info.shard_mesh_size)[mesh_info.shard_mesh_rank].clone(memory_format=cresset.contiguous_format)
        made = DTensor(local, self._spec, requires_grad=False)
        self.sharded_param = nn.Parameter(made, requires_grad=param.requires_grad)
        self._put(self.sharded_param)

    def _sharded_spec(self, param, data):
        mesh, info = self.mesh_info.mesh, self.mesh_info
        own = [Replicate()] * mesh.ndim
        own[info.shard_mesh_dim] = Shard(self.dim)
        if self.tp_spec is None:
            return DTensorSpec(mesh, tuple(own), TensorMeta(data.size(), data.stride(), data.dtype))
        tp_mesh = self.tp_spec.mesh
        if tp_mesh._get_root_mesh() is not mesh._get_root_mesh():
            raise ValueError(
                f"FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh but got: DP's global mesh: {mesh._get_root_mesh()} TP/EP's global mesh: {tp_mesh._get_root_mesh()}"
            )
        factor = 1
        for size, placement in zip(tp_mesh.shape, self.tp_spec.placements):
            factor *= size if placement.is_shard(self.dim) else 1
        if factor > 1:
            own[info.shard_mesh_dim] = _StridedShard(self.dim, split_factor=factor)
        whole = DeviceMesh._concatenate([mesh, tp_mesh])
        return DTensorSpec(whole, (*own, *self.tp_spec.placements), self.tp_spec.tensor_meta)

    def local_shard(self):
        """This rank's part, as modules and optimisers may have changed it."""
        return self.kept if self.whole is None else self.part_of(self.whole)

    @property
    def kept(self):
        """The memory of this rank's part between uses."""
        return self.sharded_param._local_tensor.detach()

    def part_of(self, tensor):
        """This rank's part of a plain tensor of the whole size."""
        spec = self.sharded_param._spec
        whole = DTensor.from_local(tensor.detach(), spec.mesh, [Replicate()] * spec.mesh.ndim, run_check=False)
        with cresset.no_grad():
            return whole.redistribute(placements=spec.placements)._local_tensor

    @property
    def gather_dtype(self):
        """Of the whole while it is used."""
        return self.mp_policy.param_dtype if self.mp_policy.param_dtype is not None and self.orig_dtype.is_floating_point else self.sharded_param.dtype

    def gather_input(self):
        """The padded part, flat."""
        local = self.local_shard()
        return pad_tensor(local, self.dim, self.padded[self.dim] - local.shape[self.dim]).reshape(-1).to(self.gather_dtype)

    # --- the whole

    def fill(self, parts):
        """Put the whole together of all ranks' padded parts, [ranks, elements]."""
        self.make_unsharded()
        tensor = self._whole()
        pieces = parts.reshape(parts.shape[0], *self.padded)
        with cresset.no_grad(), _unsafe_preserve_version_counter(tensor):
            if self.dim == 0:
                tensor.copy_(pieces.reshape(-1, *self.padded[1:])[: self.orig_size[0]])
            else:
                tensor.copy_(cresset.cat(pieces.unbind(0), dim=self.dim).narrow(self.dim, 0, self.orig_size[self.dim]))

    def _whole(self):
        return self._unsharded_data

    def make_unsharded(self):
        """Memory for the whole, and the leaf around it."""
        if self.unsharded_param is None or self._unsharded_data.dtype != self.gather_dtype:
            data = cresset.empty(self.orig_size, dtype=self.gather_dtype, device=self.kept.device)
            self._unsharded_data = data
            if self.tp_spec is not None:
                spec = DTensorSpec(self.tp_spec.mesh, self.tp_spec.placements, self.tp_spec.tensor_meta._replace(dtype=self.gather_dtype))
                data = DTensor(data, spec, requires_grad=False)
            self.unsharded_param = nn.Parameter(data, requires_grad=self.sharded_param.requires_grad)
            self._nbytes = self._unsharded_data.untyped_storage().nbytes()
        self.unsharded_param.requires_grad_(self.sharded_param.requires_grad)
        storage = self._unsharded_data.untyped_storage()
        if storage.nbytes() != self._nbytes:
            storage.resize_(self._nbytes)

    def to_unsharded(self):
        """Give modules the whole."""
        self._put(self.unsharded_param)
        self.is_sharded = False

    def to_sharded(self):
        """Give modules the shard, and free the whole's memory."""
        self._put(self.sharded_param if self.whole is None else self.whole)
        if self.unsharded_param is not None:
            self._unsharded_data.untyped_storage().resize_(0)
        self.is_sharded = True

    def _put(self, parameter):
        info = self.info
        info.module._parameters[info.param_name] = parameter
        for module, name in zip(info.shared_modules, info.shared_param_names):
            module._parameters[name] = parameter

    # --- gradients

    def take_grad(self):
        """The gradient of the whole that backward has made, with what was kept of earlier ones, as a plain tensor; None without any."""
        if self.unsharded_param is None:
            return None
        grad, self.unsharded_param.grad = self.unsharded_param.grad, None
        kept, self.accumulated_grad = self.accumulated_grad, None
        if grad is not None and isinstance(grad, DTensor):
            grad = grad.redistribute(placements=self.tp_spec.placements)._local_tensor if grad.placements != self.tp_spec.placements else grad._local_tensor
        if kept is None or grad is None:
            return grad if kept is None else kept
        return kept + grad.to(kept.dtype)

    def keep_grad(self):
        """Keep the gradient for a later reduction, in its dtype."""
        grad = self.take_grad()
        if grad is not None:
            dtype = self.mp_policy.reduce_dtype
            self.accumulated_grad = grad.detach().to(dtype) if dtype is not None else grad.detach()

    def reduce_input(self, grad, dtype):
        """The gradient as padded parts of all ranks, [ranks, elements]."""
        ranks, dim = self.mesh_info.shard_mesh_size, self.dim
        grad = pad_tensor(grad.to(dtype), dim, self.padded[dim] * ranks - grad.shape[dim])
        parts = grad.reshape(ranks, -1) if dim == 0 else cresset.stack(grad.chunk(ranks, dim=dim)).reshape(ranks, -1)
        return parts

    def set_grad(self, flat):
        """This rank's part of the reduced gradient, padded and flat, added to the shard's gradient."""
        local = flat.view(self.padded).narrow(self.dim, 0, self.kept.shape[self.dim]).to(self.sharded_param.dtype).contiguous()
        self._add_grad(local)
        for hook in (getattr(self.sharded_param, "_post_accumulate_grad_hooks", None) or {}).values():
            hook(self.sharded_param)

    def _add_grad(self, local):
        grad = self.sharded_param.grad
        if grad is None:
            self.sharded_param.grad = DTensor(local, self.sharded_param._spec, requires_grad=False)
        else:
            grad._local_tensor.add_(local)


class ReplicatedParam(FSDPParam):
    """A parameter that every rank has whole, a plain tensor; what modules compute with is still a copy, whose gradients are reduced."""

    def _shard(self, param):
        if isinstance(param, DTensor):
            raise NotImplementedError(f"{self.name} is a DTensor: only plain parameters can be the same on all ranks (NO_SHARD).")
        if param.dim() == 0:
            raise ValueError(f"FSDP doesn't support scalar parameters. Change {self.name} to a 1D tensor with numel equal to 1.")
        self.tp_spec, self.orig_dtype, self.orig_size = None, param.dtype, tuple(param.shape)
        self.padded, self.sharded_param = list(param.shape), param

    @property
    def kept(self):
        return self.sharded_param.detach()

    def part_of(self, tensor):
        return tensor

    def _add_grad(self, local):
        if self.sharded_param.grad is None:
            self.sharded_param.grad = local
        else:
            self.sharded_param.grad.add_(local)
