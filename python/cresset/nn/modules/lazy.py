"""What lazy layers share: parameters without a shape until the first input arrives."""

import cresset
from cresset.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Comes before a Module in the bases of a layer whose sizes follow from its first input.

    The layer assigns `UninitializedParameter`s and defines `initialize_parameters(*args)`, which gets forward's arguments before
    the first call. Then the object becomes a `cls_to_become`, or keeps its class when that is None.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    @staticmethod
    def _lazy_parameter(device, dtype):
        return UninitializedParameter(device=device, dtype=dtype)

    @staticmethod
    def _lazy_buffer(device, dtype):
        return UninitializedBuffer(device=device, dtype=dtype)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        # Uninitialised tensors cannot be detached and go in as they are.
        for name, tensor in (*self._parameters.items(), *self._persistent_buffers()):
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()

    def _lazy_load_hook(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        """Give uninitialised tensors the shapes of what is about to be loaded."""
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            loaded = state_dict.get(prefix + name)
            if tensor is not None and loaded is not None and is_lazy(tensor) and not is_lazy(loaded):
                with cresset.no_grad():
                    tensor.materialize(loaded.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Materialise the parameters from forward's arguments; every lazy layer defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Does a parameter or buffer still wait for its shape?"""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
