"""Methods of tensors that few programs call, PyTorch's names from older times among them."""

import cresset

from . import _C
from ._C import Tensor
from ._overridable import tensor_attribute, tensor_method

__all__ = []


def _gone(name, instead):
    def method(self, *args, **kwargs):
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is replaced by {instead}.")

    method.__doc__ = f"Raises RuntimeError: use {instead}."
    return method


@tensor_method(missing=True)
def __long__(self):
    """The number of a tensor of one element as an integer: what Python 2 called."""
    return int(self)


@tensor_method(missing=True)
def __nonzero__(self):
    """The truth of a tensor of one element: what Python 2 called."""
    return bool(self)


@tensor_method(missing=True)
def _conj(self):
    """The conjugate, a view."""
    return cresset.conj(self)


@tensor_method(missing=True)
def _conj_physical(self):
    """The conjugate in memory of its own."""
    return cresset.conj_physical(self)


@tensor_method(missing=True)
def _neg_view(self):
    """The negative, computed."""
    return cresset.neg(self)


@tensor_method(missing=True)
def _is_all_true(self):
    """A tensor: are all elements true? RuntimeError unless they are bools."""
    if self.dtype != cresset.bool:
        raise RuntimeError("_is_all_true: a tensor of bools was required.")
    return self.all()


@tensor_method(missing=True)
def _is_any_true(self):
    """A tensor: is any element true? RuntimeError unless they are bools."""
    if self.dtype != cresset.bool:
        raise RuntimeError("_is_any_true: a tensor of bools was required.")
    return self.any()


@tensor_method(missing=True)
def _is_zerotensor(self):
    """False: there are no tensors of zeros without memory."""
    return False


@tensor_method(missing=True)
def _lazy_clone(self):
    """A copy."""
    return self.clone()


@tensor_method(missing=True)
def _addmm_activation(self, mat1, mat2, *, beta=1, alpha=1, use_gelu=False):
    """addmm, then relu, or gelu."""
    result = cresset.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return cresset.nn.functional.gelu(result) if use_gelu else result.relu()


@tensor_method(missing=True)
def _fix_weakref(self):
    """To be called on what a weak reference gave: the tensor may have outlived its last reference in Python because C++ held it, and lives on
    though C++ lets go of it."""
    _C._own_tensor(self)


@tensor_method(missing=True)
def _clear_non_serializable_cached_data(self):
    """Nothing in a tensor's `__dict__` keeps it from being pickled."""


def _cuda_array_interface(self):
    if type(self) is not Tensor and _C._has_torch_function((self,)):
        from .overrides import handle_torch_function

        return handle_torch_function(Tensor.__cuda_array_interface__.__get__, (self,), self)
    raise AttributeError(
        f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use tensor.cuda() to copy tensor to device memory."
    )


@tensor_method(missing=True)
def _autocast_to_full_precision(self, cuda_enabled, cpu_enabled):
    """In float32, where the tensor has a lower precision and autocast is on for its device."""
    low = self.dtype in (cresset.float16, cresset.bfloat16)
    return self.to(cresset.float32) if low and (cpu_enabled if self.device.type == "cpu" else cuda_enabled) else self


@tensor_method(missing=True)
def _autocast_to_reduced_precision(self, cuda_enabled, cpu_enabled, cuda_dtype, cpu_dtype):
    """In the lower precision of its device, where the tensor is float32 and autocast is on there."""
    on, dtype = (cpu_enabled, cpu_dtype) if self.device.type == "cpu" else (cuda_enabled, cuda_dtype)
    return self.to(dtype) if on and self.dtype == cresset.float32 else self


@tensor_method(missing=True)
def _reduce_ex_internal(self, proto):
    """What pickle is told of a tensor whose class has no state of its own."""
    return Tensor.__reduce_ex__(self, proto)


def _nested(name):
    def method(self):
        raise RuntimeError(f"Tensor.{name}: a nested tensor was required.")

    method.__doc__ = "Raises RuntimeError: only a nested tensor has it."
    return method


@tensor_method
def hash_tensor(self, dim=(), *, keepdim=False, mode=0):
    """`hash_tensor` of the package."""
    return cresset.hash_tensor(self, dim, keepdim=keepdim, mode=mode)


for _name, _instead in (("eig", "torch.linalg.eig"), ("symeig", "torch.linalg.eigh"), ("lstsq", "torch.linalg.lstsq"), ("solve", "torch.linalg.solve")):
    tensor_method(_gone(_name, _instead), name=_name)
for _name in ("_nested_tensor_size", "_nested_tensor_storage_offsets", "_nested_tensor_strides"):
    tensor_method(_nested(_name), name=_name, missing=True)
tensor_attribute("__cuda_array_interface__", property(_cuda_array_interface, doc="Raises AttributeError: no tensor is on a CUDA device."))
