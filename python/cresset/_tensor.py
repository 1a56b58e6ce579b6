"""Methods of Tensor that are written in Python: printing, formatting, deepcopy and pickle. `install` puts them into the class."""

import cresset

__all__ = ["install"]


def _repr(self, *, tensor_contents=None):
    """The values in columns, summarised when there are many, then device, dtype and gradient."""
    if cresset._C._has_torch_function_unary(self):
        from cresset.overrides import handle_torch_function

        return handle_torch_function(cresset.Tensor.__repr__, (self,), self, tensor_contents=tensor_contents)
    from cresset._tensor_str import _str

    return _str(self, tensor_contents=tensor_contents)


def _format(self, spec):
    """A one-element tensor formats as its number, others as their repr."""
    if self.dim() == 0 and not self.is_meta and type(self) is cresset.Tensor:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def _rebuild_tensor(data, dtype, size, stride, requires_grad, location="cpu", backend_meta=None):
    """Inverse of _reduce_ex for a plain tensor; `data` holds the elements in row-major order, or is None on meta."""
    if data is None:
        return cresset.empty_strided(size, stride, dtype=dtype, device="meta").requires_grad_(requires_grad)
    from cresset.serialization import _buffer

    result = cresset.empty(size, dtype=dtype)
    if data:
        memoryview(_buffer(result))[:] = data
    if result.stride() != stride:
        result = cresset.empty_strided(size, stride, dtype=dtype).copy_(result)
    if location != "cpu":
        from cresset.serialization import device_of_tag

        result = result.to(device_of_tag(location))
        if backend_meta:
            cresset._C._restore_backend_meta(result, backend_meta)
    return result.requires_grad_(requires_grad)


def _rebuild_subclass(build, args, kind, state):
    """Inverse of _reduce_ex for an instance of a subclass."""
    result = build(*args)
    if type(result) is not kind:
        result = result.as_subclass(kind)
    result.__dict__.update(state)
    return result


def _is_dense(size, stride):
    """Whether the elements fill their memory without gaps or overlaps."""
    expected = 1
    for s, n in sorted((s, n) for s, n in zip(stride, size) if n != 1):
        if s != expected:
            return False
        expected *= n
    return True


def _reduce_ex(self, proto):
    """Pickle the elements with dtype, size, strides and requires_grad; the graph is not part of it: what is read is a leaf."""
    plain = self.detach()
    size, stride, location, backend_meta = tuple(plain.shape), tuple(plain.stride()), "cpu", None
    if plain.is_meta:
        data = None
    else:
        from cresset.serialization import _buffer, location_tag

        location = location_tag(plain.device)
        backend_meta = cresset._C._backend_meta(self)
        plain = plain.cpu()
        if plain.is_complex():
            plain = plain.resolve_conj()
        data = bytes(_buffer(plain.contiguous())) if plain.numel() else b""
        if not _is_dense(size, stride):
            stride = tuple(plain.contiguous().stride())
    args = (data, plain.dtype, size, stride, self.requires_grad, *([] if location == "cpu" else [location]), *([backend_meta] if backend_meta else []))
    if type(self) is cresset.Tensor and not getattr(self, "__dict__", None):
        return _rebuild_tensor, args
    return _rebuild_subclass, (_rebuild_tensor, args, type(self), dict(self.__dict__))


def _copied(self, memo):
    """A copy without history. Tensors that share memory share the copy's too, where the memory is the host's."""
    import copy

    plain = self.detach()
    if plain.device.type == "cpu" and type(plain) is cresset.Tensor and not plain.is_neg():
        try:
            storage = plain.untyped_storage()
        except (RuntimeError, NotImplementedError):  # a tensor that wraps another has none
            return plain.clone(memory_format=cresset.preserve_format)
        offset, size, stride = plain.storage_offset(), plain.shape, plain.stride()
        result = cresset.storage.tensor_of_storage(copy.deepcopy(storage, memo), plain.dtype, offset, size, stride)
        return result.conj() if plain.is_conj() else result
    return plain.clone(memory_format=cresset.preserve_format)


def _deepcopy(self, memo):
    """A leaf with its own copy of the data and of the gradient; RuntimeError for a tensor that was computed from others."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
            "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    import copy

    with cresset.no_grad():
        result = _copied(self, memo)
        if type(result) is not type(self):
            result = result.as_subclass(type(self))
        if self.requires_grad:
            result.requires_grad_()
        if self.grad is not None:
            result.grad = copy.deepcopy(self.grad, memo)
    memo[id(self)] = result
    if getattr(self, "__dict__", None):
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


def _init_subclass(cls, **kwargs):
    """A class that sees operators below autograd gets no results converted above it, unless it says itself how."""
    super(cresset.Tensor, cls).__init_subclass__(**kwargs)
    defined = next(c for c in cls.__mro__ if "__torch_function__" in vars(c))
    if defined is cresset.Tensor and cls.__torch_dispatch__ is not cresset.Tensor.__torch_dispatch__:
        cls.__torch_function__ = cresset._C._disabled_torch_function_impl


def install(tensor_class):
    """Give `tensor_class` the methods of this module."""
    tensor_class.__init_subclass__ = classmethod(_init_subclass)
    for name, function in (
        ("__repr__", _repr), ("__format__", _format), ("__reduce_ex__", _reduce_ex), ("__deepcopy__", _deepcopy),
    ):  # fmt: skip
        function.__name__ = name
        function.__qualname__ = f"Tensor.{name}"
        setattr(tensor_class, name, function)
