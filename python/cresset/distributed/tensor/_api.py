"""DTensor, and how tensors and modules become distributed."""

import inspect
import math
import warnings

import cresset
from cresset import _C

from ..device_mesh import _mesh_resources
from ._collective_utils import mesh_broadcast
from ._dispatch import dispatch
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._random import of_part
from ._redistribute import Redistribute, redistribute_local_tensor
from ._state import dispatcher
from ._utils import compute_global_tensor_info, compute_local_shape
from .placement_types import Replicate, _StridedShard, normalized, one_division, shard_order

__all__ = ["DTensor", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]


def _meta_of(tensor):
    return TensorMeta(tensor.size(), tensor.stride(), tensor.dtype)


def _checked(placements, mesh):
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )


class _ToLocal(cresset.autograd.Function):
    """to_local: the gradient is the local part of a DTensor under `grad_placements`, or under those of the input."""

    @staticmethod
    def forward(ctx, input, grad_placements):
        ctx.spec, ctx.grad_placements = input._spec, grad_placements
        local = input._local_tensor
        # A view of its own, so that what happens to the result does not happen to the DTensor's part.
        return local.view_as(local)

    @staticmethod
    def backward(ctx, grad):
        spec, placements = ctx.spec, ctx.grad_placements or ctx.spec.placements
        _, stride = compute_global_tensor_info(grad, spec.mesh, spec.placements)
        meta = TensorMeta(spec.shape, tuple(stride), spec.tensor_meta.dtype)
        return DTensor(grad, DTensorSpec(spec.mesh, placements, meta), requires_grad=grad.requires_grad), None


def _check_metadata(tensor, mesh):
    """ValueError where ranks of the mesh have tensors of other dtypes, requirements of gradients, sizes or strides."""
    from .. import _objects

    mine = str(tensor.dtype), tensor.requires_grad, tuple(tensor.shape), tuple(tensor.stride())
    for group in mesh.get_all_groups():
        everyone = [None] * group.size()
        _objects.all_gather_object(everyone, mine, group)
        if any(other != mine for other in everyone):
            raise ValueError(f"Inconsistent tensor metadata (including shape and stride) across ranks: {everyone}")


class _FromLocal(cresset.autograd.Function):
    """from_local: the gradient is the local part of the DTensor's under its placements, or `grad_placements`."""

    @staticmethod
    def forward(ctx, input, device_mesh, placements, run_check, shape, stride, grad_placements):
        ctx.mesh, ctx.placements = device_mesh, grad_placements or placements
        meta = TensorMeta(cresset.Size(shape), tuple(stride), input.dtype)
        spec = DTensorSpec(device_mesh, placements, meta)
        if device_mesh.get_coordinate() is None:
            input = input.new_empty(0, requires_grad=input.requires_grad)
        elif run_check:
            _check_metadata(input, device_mesh)
            for mesh_dim, placement in enumerate(placements):
                if placement.is_replicate():
                    input = input.contiguous()
                    mesh_broadcast(input, device_mesh, mesh_dim=mesh_dim)
        return DTensor(input.view_as(input), spec, requires_grad=input.requires_grad)

    @staticmethod
    def backward(ctx, grad_output):
        placements = tuple(
            Replicate() if wanted.is_partial() and present.is_shard() else (present if wanted.is_partial() else wanted)
            for wanted, present in zip(ctx.placements, grad_output._spec.placements)
        )
        local = grad_output._local_tensor
        if grad_output._spec.placements != placements:
            target = DTensorSpec(ctx.mesh, placements, grad_output._spec.tensor_meta)
            local = redistribute_local_tensor(local, grad_output._spec, target, is_backward=True)
        return local.view_as(local), None, None, None, None, None, None


class DTensor(cresset.Tensor):
    """A tensor of which each rank of a mesh has a part, as its placements say. Its sizes are those of the whole.

    `DTensor.from_local` makes one of parts, `distribute_tensor` of a whole. Operators are run on the parts; every rank of the mesh makes the same calls.
    """

    __slots__ = ["_local_tensor", "_spec"]
    __torch_function__ = _C._disabled_torch_function_impl
    _op_dispatcher = dispatcher

    @staticmethod
    def __new__(cls, local_tensor, spec, *, requires_grad):
        if local_tensor.requires_grad and not requires_grad:
            warnings.warn(
                "To construct DTensor from torch.Tensor, it's recommended to use local_tensor.detach() and make requires_grad consistent.", stacklevel=2
            )
        meta = spec.tensor_meta
        self = cresset.Tensor._make_wrapper_subclass(
            cls, tuple(meta.shape), strides=tuple(meta.stride), dtype=local_tensor.dtype, device=local_tensor.device, layout=local_tensor.layout,
            requires_grad=requires_grad,
        )  # fmt: skip
        self._spec, self._local_tensor = spec, local_tensor
        return self

    def __init__(self, *args, **kwargs):
        super().__init__()

    def __repr__(self, *, tensor_contents=None):
        return f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, placements={self._spec.placements})"

    def __tensor_flatten__(self):
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner_tensors, flatten_spec, outer_size, outer_stride):
        spec, requires_grad = flatten_spec
        meta = TensorMeta(cresset.Size(outer_size), tuple(outer_stride), spec.tensor_meta.dtype)
        return DTensor(inner_tensors["_local_tensor"], DTensorSpec(spec.mesh, spec.placements, meta), requires_grad=requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {}, DTensor)

    @staticmethod
    def from_local(local_tensor, device_mesh=None, placements=None, *, run_check=False, shape=None, stride=None, grad_placements=None):
        """The DTensor of which this rank has `local_tensor`, under these placements (Replicate without any).

        Parts are taken to be equal, unless `shape` and `stride` of the whole are given. `run_check` gives all ranks the copy of the first where
        a placement is Replicate. Gradients come back under the placements, or `grad_placements`.
        """
        if shape is not None and stride is None or stride is not None and shape is None:
            raise RuntimeError(f"Found shape:{shape}, stride:{stride}.", "Please pass both shape and stride at the same time.")
        device_mesh = device_mesh or _mesh_resources.get_current_mesh()
        if local_tensor.device.type not in (device_mesh.device_type, "meta"):
            local_tensor = local_tensor.to(device_mesh.device_type)
        placements = [Replicate()] * device_mesh.ndim if placements is None else list(placements)
        _checked(placements, device_mesh)
        placements = normalized(placements, local_tensor.ndim)
        for placement in placements:
            if placement.is_shard() and not 0 <= placement.dim < max(1, local_tensor.ndim):
                raise IndexError(f"from_local: {placement}: the tensor has {local_tensor.ndim} dimensions.")
        if shape is None:
            shape, stride = compute_global_tensor_info(local_tensor, device_mesh, placements)
        grads = None if grad_placements is None else normalized(grad_placements, len(shape))
        return _FromLocal.apply(local_tensor, device_mesh, placements, run_check, tuple(shape), tuple(stride), grads)

    def to_local(self, *, grad_placements=None):
        """This rank's part. Gradients of it are taken as parts under the DTensor's placements, or `grad_placements`."""
        if not cresset.is_grad_enabled():
            return self._local_tensor
        return _ToLocal.apply(self, None if grad_placements is None else normalized(grad_placements, self.ndim))

    def redistribute(self, device_mesh=None, placements=None, *, async_op=False, forward_dtype=None, backward_dtype=None):
        """The tensor under other placements of its mesh. RuntimeError for Partial, which only operators make.

        With `async_op` the result's part may be under way; it waits when it is used. `forward_dtype` and `backward_dtype` are those of the communication.
        """
        device_mesh = device_mesh or self.device_mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        _checked(placements, device_mesh)
        for placement, present in zip(normalized(placements, self.ndim), self.placements):
            if placement.is_partial() and placement != present:
                raise RuntimeError("Can not redistribute to Partial, redistributing to Partial is for internal use only!")
            if placement.is_shard() and not 0 <= placement.dim < self.ndim:
                raise IndexError(f"redistribute: {placement}: the tensor has {self.ndim} dimensions.")
        if device_mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        return Redistribute.apply(self, device_mesh, tuple(placements), async_op, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements=None):
        """The whole, on every rank."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim, async_op=False)
        return _ToLocal.apply(whole, None if grad_placements is None else normalized(grad_placements, self.ndim))

    @property
    def device_mesh(self):
        """The mesh."""
        return self._spec.mesh

    @property
    def placements(self):
        """A placement for each dimension of the mesh."""
        return self._spec.placements

    def tolist(self):
        """The nested list of the whole."""
        return self.full_tensor().tolist()

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
            with cresset.no_grad():
                local = self._local_tensor.detach().clone()
            made = DTensor(local, self._spec, requires_grad=False)
            if isinstance(self, cresset.nn.Parameter):
                made = cresset.nn.Parameter(made, requires_grad=self.requires_grad)
            else:
                made.requires_grad_(self.requires_grad)
            memo[id(self)] = made
            if self.grad is not None:
                made.grad = self.grad.__deepcopy__(memo) if isinstance(self.grad, DTensor) else self.grad.clone()
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return _rebuild, (self._local_tensor.detach(), self._spec, self.requires_grad)


def _rebuild(local_tensor, spec, requires_grad):
    return DTensor(local_tensor, spec, requires_grad=requires_grad)


# --- tensors

def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """The DTensor of a whole: each rank gets its part of what rank `src_data_rank` along each mesh dimension has, or of its own where that is None.

    A leaf is required (RuntimeError); the result is a leaf that requires gradients as the tensor does. ValueError for placements that do not fit the mesh.
    """
    device_mesh = device_mesh or _mesh_resources.get_current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if placements is None:
        placements = [Replicate()] * device_mesh.ndim
    _checked(placements, device_mesh)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != device_mesh:
            raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {device_mesh}.")
        if tensor.placements != tuple(placements):
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {tuple(placements)}. do you want to call `redistribute` instead?"
            )
        return tensor
    if tensor.device.type not in (device_mesh.device_type, "meta"):
        tensor = tensor.to(device_mesh.device_type)
    placements = normalized(placements, tensor.ndim)
    for place, placement in enumerate(placements):
        if placement.is_partial() or not (placement.is_shard() or placement.is_replicate()):
            raise RuntimeError(f"Trying to distribute tensor with unsupported placements {placement} on device mesh dimension {place}!")
        if placement.is_shard() and not 0 <= placement.dim < tensor.ndim:
            raise IndexError(f"distribute_tensor: {placement}: the tensor has {tensor.ndim} dimensions.")
    spec = DTensorSpec(device_mesh, placements, _meta_of(tensor))
    made = DTensor(_part_of(tensor.detach(), spec, src_data_rank), spec, requires_grad=False).requires_grad_(tensor.requires_grad)
    return cresset.nn.Parameter(made, requires_grad=tensor.requires_grad) if isinstance(tensor, cresset.nn.Parameter) else made


def _part_of(local, spec, src_data_rank):
    """This rank's part: divisions are made in their order."""
    sizes = spec.mesh.shape
    late = [m for m, p in enumerate(spec.placements) if isinstance(p, _StridedShard)]
    order = [m for m in range(spec.mesh.ndim) if m not in late]
    for dim in {spec.placements[m].dim for m in late}:
        order = [m for m in order if not spec.placements[m].is_shard(dim)] + shard_order(spec.placements, dim, sizes)
    before = local
    for mesh_dim in order:
        placement = spec.placements[mesh_dim]
        if placement.is_shard():
            local = one_division(placement)._shard_tensor(local, spec.mesh, mesh_dim, src_data_rank)
        else:
            local = placement._replicate_tensor(local.clone() if local is before else local, spec.mesh, mesh_dim, src_data_rank)
    return local


def _shard_tensor(full_tensor, placements, device_mesh=None):
    """The DTensor of a whole that all ranks have; nothing is sent."""
    return distribute_tensor(full_tensor, device_mesh, placements, src_data_rank=None)


# --- modules

def _replicate_parameters(name, module, device_mesh):
    whole = [Replicate()] * device_mesh.ndim
    for key, parameter in module._parameters.items():
        if parameter is not None and not isinstance(parameter, DTensor):
            made = cresset.nn.Parameter(distribute_tensor(parameter.data, device_mesh, whole), requires_grad=parameter.requires_grad)
            module.register_parameter(key, made)
    for key, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[key] = distribute_tensor(buffer, device_mesh, whole)


def distribute_module(module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None):
    """Make a module's parameters and buffers DTensors, in place: as `partition_fn(name, submodule, device_mesh)` does, and whole on every rank where it
    leaves them. `input_fn(module, inputs, device_mesh)` and `output_fn(module, outputs, device_mesh)` change what goes in and out. RuntimeError for a second call.
    """
    device_mesh = device_mesh or _mesh_resources.get_current_mesh()
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError("distribute_module should only be called once on a module, but it has already been called on this module!")
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, device_mesh)
        _replicate_parameters(name, submodule, device_mesh)
    if input_fn is not None:
        if _arity(input_fn, "input_fn") == 2:
            warnings.warn("Deprecating input_fn that takes two arguments (inputs, device_mesh), please use input_fn that takes in (module, inputs, device_mesh) instead!", FutureWarning, stacklevel=2)
            module.register_forward_pre_hook(lambda _, inputs: input_fn(inputs, device_mesh))
        else:
            module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, device_mesh))
    if output_fn is not None:
        if _arity(output_fn, "output_fn") == 2:
            warnings.warn(
                "Deprecating output_fn that takes two arguments (inputs, device_mesh), please use output_fn that takes in (module, "
                "inputs, device_mesh) instead!",
                FutureWarning,
                stacklevel=2,
            )
            module.register_forward_hook(lambda mod, inputs, outputs: output_fn(outputs, device_mesh))
        else:
            module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, device_mesh))
    module._distribute_module_applied = True
    return module


def _arity(function, name):
    count = len(inspect.signature(function).parameters)
    if count not in (2, 3):
        raise ValueError(f"{name} should take in 3 arguments, but got {count} arguments!")
    return count


# --- new tensors

def _new(make, size, *, random=False, device_mesh=None, placements=None, requires_grad=False, **kwargs):
    device_mesh = device_mesh or _mesh_resources.get_current_mesh()
    kwargs["device"] = device_mesh.device_type
    placements = tuple(placements) if placements is not None else (Replicate(),) * device_mesh.ndim
    _checked(placements, device_mesh)
    if kwargs.get("layout", cresset.strided) != cresset.strided:
        raise AssertionError("layout value not supported!")
    size = _size(size)
    placements = normalized(placements, len(size))
    dtype = kwargs.get("dtype") or _dtype(make)
    spec = DTensorSpec(device_mesh, placements, TensorMeta(cresset.Size(size), _contiguous_stride(size), dtype))
    local_size = compute_local_shape(size, device_mesh, placements)
    if random and device_mesh.get_coordinate() is not None:
        with of_part(spec):
            local = make(local_size, **kwargs)
    else:
        local = make(local_size, **kwargs)
    if local.dtype != dtype:
        spec = DTensorSpec(device_mesh, placements, spec.tensor_meta._replace(dtype=local.dtype))
    return DTensor(local, spec, requires_grad=False).requires_grad_(requires_grad)


def _dtype(make):
    return cresset.get_default_dtype()


def _size(size):
    size = size[0] if len(size) == 1 and isinstance(size[0], (list, tuple, cresset.Size)) else size
    return tuple(int(s) for s in size)


def _contiguous_stride(size):
    return tuple(math.prod(max(1, s) for s in size[i + 1:]) for i in range(len(size)))


def ones(*size, dtype=None, layout=cresset.strided, requires_grad=False, device_mesh=None, placements=None):
    """A DTensor of ones; `size` is that of the whole."""
    return _new(cresset.ones, size, dtype=dtype, layout=layout, requires_grad=requires_grad, device_mesh=device_mesh, placements=placements)


def empty(*size, dtype=None, layout=cresset.strided, requires_grad=False, device_mesh=None, placements=None):
    """A DTensor of whatever was in the memory."""
    return _new(cresset.empty, size, dtype=dtype, layout=layout, requires_grad=requires_grad, device_mesh=device_mesh, placements=placements)


def full(size, fill_value, *, dtype=None, layout=cresset.strided, requires_grad=False, device_mesh=None, placements=None):
    """A DTensor of one value."""
    def make(local_size, **kwargs):
        return cresset.full(local_size, fill_value, **kwargs)

    return _new(make, (size,) if isinstance(size, (list, tuple)) else size, dtype=dtype, layout=layout, requires_grad=requires_grad, device_mesh=device_mesh, placements=placements)


def rand(*size, requires_grad=False, dtype=None, layout=cresset.strided, device_mesh=None, placements=None):
    """A DTensor of random numbers from 0 to 1, of the mesh's stream."""
    return _new(cresset.rand, size, random=True, dtype=dtype, layout=layout, requires_grad=requires_grad, device_mesh=device_mesh, placements=placements)


def randn(*size, requires_grad=False, dtype=None, layout=cresset.strided, device_mesh=None, placements=None):
    """A DTensor of random numbers of the normal distribution, of the mesh's stream."""
    return _new(cresset.randn, size, random=True, dtype=dtype, layout=layout, requires_grad=requires_grad, device_mesh=device_mesh, placements=placements)


def zeros(*size, requires_grad=False, dtype=None, layout=cresset.strided, device_mesh=None, placements=None):
    """A DTensor of zeros."""
    return _new(cresset.zeros, size, dtype=dtype, layout=layout, requires_grad=requires_grad, device_mesh=device_mesh, placements=placements)


