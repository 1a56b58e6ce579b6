"""Parameters and buffers of a module by their paths, taken out and put in without the checks of attributes."""

from cresset import Tensor

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_tensor"]

_MISSING = object()


def _check(module, name):
    from cresset.nn import Module

    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def set_tensor(module, name, tensor):
    """Put a tensor, or None, in the place of a parameter or buffer, or as an attribute where there is neither."""
    _check(module, name)
    if not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for table in (module._parameters, module._buffers):
        if name in table:
            table[name] = tensor
            return
    setattr(module, name, tensor)


def swap_tensor(module, name, tensor, allow_missing=False):
    """The same, giving what was there. Without anything there: AttributeError, or with allow_missing a mark that takes the tensor out again when
    it is put back."""
    _check(module, name)
    if tensor is not _MISSING and not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for table in (module._parameters, module._buffers):
        if name in table:
            old = table[name]
            if tensor is _MISSING:
                del table[name]
            else:
                table[name] = tensor
            return old
    old = getattr(module, name, _MISSING)
    if old is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if old is not _MISSING and not isinstance(old, Tensor):
        raise TypeError(f"attribute `{name}`: {old} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif old is not _MISSING:
        delattr(module, name)
    return old


class NamedMemberAccessor:
    """Tensors below a module by paths ("layer.weight")."""

    def __init__(self, module):
        self.module = module

    def _place(self, path):
        prefix, _, name = path.rpartition(".")
        return self.get_submodule(prefix), name

    def get_submodule(self, name):
        """The module at a path; AttributeError without it."""
        return self.module.get_submodule(name)

    def swap_submodule(self, path, value):
        """Put a module in the place of another, and give that."""
        prefix, _, name = path.rpartition(".")
        parent = self.get_submodule(prefix)
        old = getattr(parent, name)
        parent._modules[name] = value
        return old

    def get_tensor(self, name):
        """The tensor at a path."""
        module, last = self._place(name)
        found = getattr(module, last)
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name, value):
        """Put a tensor at a path."""
        set_tensor(*self._place(name), value)

    def del_tensor(self, name):
        """Take the tensor at a path out."""
        delattr(*self._place(name))

    def swap_tensor(self, name, value, allow_missing=False):
        """Put a tensor at a path, and give what was there."""
        return swap_tensor(*self._place(name), value, allow_missing)

    def get_tensors(self, names):
        """The tensors at these paths."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names, values):
        """Put tensors at these paths."""
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors):
        """Put the tensors of a dict at its paths."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names):
        """Take the tensors at these paths out."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names, values, allow_missing=False):
        """Put tensors at these paths, and give those that were there."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values, strict=True)]

    def swap_tensors_dict(self, named_tensors, allow_missing=False):
        """The same with a dict: (what was there by path, paths without anything). Nothing changes when a path is missing that may not be."""
        before, missing = {}, []
        try:
            for name, value in named_tensors.items():
                old = self.swap_tensor(name, value, allow_missing=True)
                before[name] = old
                if old is _MISSING:
                    missing.append(name)
        except Exception as error:
            self._put_back(before)
            raise RuntimeError(f"Failed to swap tensors: {error}") from error
        if missing and not allow_missing:
            self._put_back(before)
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def _put_back(self, before):
        for name, value in before.items():
            self.swap_tensor(name, value, allow_missing=True)

    def check_keys(self, keys):
        """(paths of tensors that keys lacks, keys that are no path of a tensor)"""
        keys, have = set(keys), {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(have - keys), sorted(keys - have)

    def named_parameters(self, remove_duplicate=True):
        """The module's parameters with their paths."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate=True):
        """The module's buffers with their paths."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate=True):
        """Both."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate=True):
        """The modules with their paths."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
