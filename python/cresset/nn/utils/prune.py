"""Pruning: parameters multiplied by masks of zeros and ones, chosen by size or at random."""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import cresset

__all__ = [
    "BasePruningMethod", "PruningContainer", "Identity", "RandomUnstructured", "L1Unstructured", "RandomStructured", "LnStructured",
    "CustomFromMask", "identity", "random_unstructured", "l1_unstructured", "random_structured", "ln_structured",
    "global_unstructured", "custom_from_mask", "remove", "is_pruned",
]  # fmt: skip


class BasePruningMethod(ABC):
    """The forward pre-hook that computes `name` from `name_orig` and `name_mask`. Subclasses define compute_mask."""

    _tensor_name: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """A mask for `t` that keeps at most what `default_mask` keeps."""

    def apply_mask(self, module):
        """The pruned tensor of `module`."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune `module.name`; a tensor that is pruned already loses more."""
        old = [
            (key, hook) for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]  # fmt: skip
        if len(old) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}.")
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if old:
            key, container = old[0]
            del module._forward_pre_hooks[key]
            if not isinstance(container, PruningContainer):
                container = PruningContainer(container)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}, got {importance_scores.shape} vs {original.shape}")
        if not old:
            module.register_parameter(name + "_orig", module._parameters[name])
            del module._parameters[name]
            default_mask = cresset.ones_like(getattr(module, name + "_orig"))
        else:
            default_mask = getattr(module, name + "_mask").detach().clone(memory_format=cresset.contiguous_format)
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
        except Exception:
            if not old:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """`t` times the mask that this method computes for it."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}")
        default_mask = cresset.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module):
        """Make the pruned value the ordinary parameter again."""
        name = self._tensor_name
        original = module._parameters[name + "_orig"]
        original.data = self.apply_mask(module).data
        delattr(module, name)
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one tensor, each of which sees what the ones before left."""

    def __init__(self, *args):
        self._pruning_methods = ()
        for method in args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args:
            if not hasattr(self, "_tensor_name"):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            where = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError("Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` defined.")
            dim = method.dim % t.dim()
            kept = mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            where = tuple(kept if d == dim else slice(None) for d in range(t.dim()))
        elif method.PRUNING_TYPE == "global":
            where = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new = mask.clone()
        new[where] = method.compute_mask(t[where], default_mask=mask[where]).to(dtype=new.dtype)
        return new


class Identity(BasePruningMethod):
    """Prunes nothing; sets up mask and hook."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask


def _validate_pruning_amount_init(amount):
    """TypeError, ValueError unless `amount` is a fraction or a number of elements."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (not isinstance(amount, numbers.Integral) and not 0.0 <= amount <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount, tensor_size):
    """ValueError when `amount` is a number that is larger than what there is."""
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount, tensor_size):
    """How many of tensor_size elements `amount` stands for."""
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_structured_pruning(t):
    """ValueError for tensors without channels."""
    if t.dim() <= 1:
        raise ValueError(f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with {t.dim()} dims")


def _validate_pruning_dim(t, dim):
    """IndexError for a dimension that t does not have."""
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t, n, dim):
    """The n-norm of each channel along `dim`."""
    return cresset.norm(t, p=n, dim=[d for d in range(t.dim()) if d != dim % t.dim()])


class _Amount(BasePruningMethod):
    """A fraction of what there is, or a number of elements (or of channels)."""

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size):
        _validate_pruning_amount(self.amount, size)
        return _compute_nparams_toprune(self.amount, size)


class RandomUnstructured(_Amount):
    """Zeroes single elements at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        count = self._count(t.nelement())
        mask = default_mask.clone(memory_format=cresset.contiguous_format)
        if count:
            lowest = cresset.topk(cresset.rand_like(t).view(-1), k=count)
            mask.view(-1)[lowest.indices] = 0
        return mask


class L1Unstructured(_Amount):
    """Zeroes the elements of smallest absolute value."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        count = self._count(t.nelement())
        mask = default_mask.clone(memory_format=cresset.contiguous_format)
        if count:
            lowest = cresset.topk(cresset.abs(t).reshape(-1), k=count, largest=False)
            mask.view(-1)[lowest.indices] = 0
        return mask


class _Structured(_Amount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        super().__init__(amount)
        self.dim = dim

    def _keep(self, t, default_mask, scores):
        """A mask that keeps the channels along dim with the largest of `scores(t)`."""
        _validate_structured_pruning(t)
        if not -t.dim() <= self.dim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        _validate_pruning_dim(t, self.dim)
        channels = t.shape[self.dim]
        count = self._count(channels)
        if count == 0:
            return default_mask
        best = cresset.topk(scores(t), k=channels - count).indices
        mask = cresset.zeros_like(t)
        where = [slice(None)] * t.dim()
        where[self.dim] = best
        mask[tuple(where)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Zeroes whole channels along `dim` at random."""

    def compute_mask(self, t, default_mask):
        return self._keep(t, default_mask, lambda t: cresset.rand(t.shape[self.dim], device=t.device))


class LnStructured(_Structured):
    """Zeroes the channels along `dim` of smallest n-norm."""

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t, default_mask):
        return self._keep(t, default_mask, lambda t: _compute_norm(t, self.n, self.dim))

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Zeroes where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module, name):
    """Prepare `module.name` for pruning without pruning it."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Zero `amount` (a fraction or a number) of the elements of `module.name` at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Zero the `amount` smallest elements of `module.name`."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Zero `amount` of the channels along `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Zero the `amount` channels along `dim` of smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prune `module.name` with the given mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune several (module, name) pairs as if they were one tensor, by an unstructured method."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    importance_scores = importance_scores if importance_scores is not None else {}
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    scores = [importance_scores.get(pair, getattr(*pair)).detach().reshape(-1) for pair in parameters]
    masks = [getattr(module, name + "_mask", cresset.ones_like(getattr(module, name))).reshape(-1) for module, name in parameters]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}')
    container = PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    container.add_pruning_method(method)
    final = container.compute_mask(cresset.cat(scores), cresset.cat(masks))
    start = 0
    for module, name in parameters:
        param = getattr(module, name)
        custom_from_mask(module, name, final[start : start + param.numel()].view_as(param))
        start += param.numel()


def remove(module, name):
    """Make the pruned `module.name` an ordinary parameter, with its zeros."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module):
    """Is a tensor of `module`, or of a module in it, pruned?"""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
