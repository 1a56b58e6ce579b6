"""Modules of the C++ front end in Python: what `torch::python::bind_module` makes of a C++ class."""

from collections.abc import MutableMapping

from .modules.module import Module

__all__ = ["ModuleWrapper"]


class _Members(MutableMapping):
    """Parameters, buffers or children of a C++ module by name, as they are now. Writing changes a tensor's data."""

    def __init__(self, read):
        self._read = read

    def __getitem__(self, name):
        return dict(self._read())[name]

    def __iter__(self):
        return iter([name for name, _ in self._read()])

    def __len__(self):
        return len(self._read())

    def __setitem__(self, name, value):
        self[name].data = value

    def __delitem__(self, name):
        raise RuntimeError(f"'{name}' belongs to a C++ module, which keeps what it has registered.")


class ModuleWrapper(Module):
    """A C++ module as an nn.Module: it can be a child of others, moved, saved and trained like them.

    `cpp_module` is the bound C++ object; what the class binds besides is reached under its name. `parameters()`, `buffers()`, `modules()`
    and `children()` are lists. Parameters, buffers and children are always those the C++ object has at the moment.
    """

    def __init__(self, cpp_module):
        super().__init__()
        members = self.__dict__
        members["cpp_module"] = cpp_module
        members["_parameters"] = _Members(cpp_module._own_parameters)
        members["_buffers"] = _Members(cpp_module._own_buffers)
        members["_modules"] = _Members(self._children)
        members["_wrapped"] = {}  # children by the address of their C++ object, which is one and the same while it lives

    def _children(self):
        found = [(name, child, child._address()) for name, child in self.cpp_module._own_modules()]
        known = self.__dict__["_wrapped"]
        self.__dict__["_wrapped"] = {address: known.get(address) or ModuleWrapper(child) for _, child, address in found}
        return [(name, self._wrapped[address]) for name, _, address in found]

    @property
    def training(self):
        """Whether the C++ module is in training mode."""
        cpp_module = self.__dict__.get("cpp_module")
        return True if cpp_module is None else cpp_module._is_training()

    @training.setter
    def training(self, mode):
        if "cpp_module" in self.__dict__:
            self.cpp_module._train(mode)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            cpp_module = self.__dict__.get("cpp_module")
            if cpp_module is None or not hasattr(cpp_module, name):
                raise
            return getattr(cpp_module, name)

    def forward(self, *args, **kwargs):
        return self.cpp_module.forward(*args, **kwargs)

    def clone(self):
        """A copy with parameters and buffers of its own."""
        copy = type(self).__new__(type(self))
        ModuleWrapper.__init__(copy, self.cpp_module._clone())
        return copy

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), self.clone())

    def parameters(self, recurse=True):
        return list(super().parameters(recurse))

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return list(super().named_parameters(prefix, recurse, remove_duplicate))

    def buffers(self, recurse=True):
        return list(super().buffers(recurse))

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        return list(super().named_buffers(prefix, recurse, remove_duplicate))

    def children(self):
        return list(super().children())

    def modules(self, remove_duplicate=True):
        return list(super().modules(remove_duplicate))

    def __repr__(self):
        return repr(self.cpp_module)


def _wrapper_class(name, cpp_class):
    """The class of wrappers whose constructor takes the arguments of the C++ one."""

    def __init__(self, *args, **kwargs):
        ModuleWrapper.__init__(self, cpp_class(*args, **kwargs))

    return type(name, (ModuleWrapper,), {"__init__": __init__, "__doc__": cpp_class.__doc__, "__module__": cpp_class.__module__})
