"""Modules as functions of their parameters and buffers."""

import sys

import cresset
from cresset import nn

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def _paths(module, prefix="", above=()):
    """(prefix, module) of every way to a module; a way does not pass the same module twice, so modules may hold each other."""
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None and child is not module and child not in above:
            yield from _paths(child, f"{prefix}{name}.", (*above, module))


def _owner(module, name):
    """(submodule, its own name for it) of a dotted name."""
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    *path, last = name.split(".")
    for part in path:
        if not hasattr(module, part):
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        module = getattr(module, part)
        if not isinstance(module, nn.Module):
            raise TypeError(f"submodule `{part}`: {module} is not an instance of torch.nn.Module")
    return module, last


def _with_tied(module, values):
    """The values with those of other names for the same tensors added; a tensor given by two of its names must be the same."""
    groups = {}
    for prefix, owner in _paths(module):
        for table in (owner._parameters, owner._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    groups.setdefault(id(tensor), []).append(prefix + name)
    result = dict(values)
    for names in groups.values():
        given = [n for n in names if n in values]
        if len(names) < 2 or not given:
            continue
        if any(values[n] is not values[given[0]] for n in given):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(given)}, which are tied. Consider using tie_weights=False"
            )
        for name in names:
            result[name] = values[given[0]]
    return result


_MISSING = object()


class _Place:
    """Where a name of a module has its tensor: among its parameters or buffers, or as a plain attribute."""

    __slots__ = ("owner", "name", "new", "table", "saved")

    def __init__(self, module, name):
        self.owner, self.name = _owner(module, name)
        self.table = next((t for t in (self.owner._parameters, self.owner._buffers) if self.name in t), None)
        if self.table is not None:
            self.saved = self.table[self.name]
            return
        self.saved = vars(self.owner).get(self.name, _MISSING)
        self.new = not hasattr(self.owner, self.name)
        present = getattr(self.owner, self.name, None)
        if present is not None and not isinstance(present, cresset.Tensor):
            raise TypeError(f"attribute `{self.name}`: {present} is not an instance of torch.Tensor")

    def get(self):
        return getattr(self.owner, self.name, _MISSING) if self.table is None else self.table.get(self.name, _MISSING)

    def put(self, tensor):
        if self.table is None:
            # A Parameter under a new name is one of the module's meanwhile; what was a plain attribute stays one.
            put = setattr if self.new else object.__setattr__
            put(self.owner, self.name, tensor)
        else:
            self.table[self.name] = tensor

    def restore(self):
        if self.saved is not _MISSING:
            self.put(self.saved)
        elif self.name in vars(self.owner) or self.new and hasattr(self.owner, self.name):
            delattr(self.owner, self.name)


class _Reparametrized:
    """The module with other tensors for a block. What the module assigns to their names in the meantime is in `values` afterwards."""

    def __init__(self, module, values, strict):
        self.module, self.values, self.strict = module, values, strict

    def _check(self):
        known = {
            prefix + name
            for prefix, owner in _paths(self.module)
            for table in (owner._parameters, owner._buffers)
            for name, tensor in table.items()
            if tensor is not None
        }
        problems = []
        for what, names in (("Unexpected", self.values.keys() - known), ("Missing", known - self.values.keys())):
            if names:
                problems.append(f"{what} key(s): {', '.join(repr(n) for n in sorted(names))}.")
        if problems:
            lines = "".join(f"\n\t{p}" for p in problems)
            raise RuntimeError(f"Error(s) in reparametrizing for {type(self.module).__name__}:{lines}")

    def __enter__(self):
        if self.strict:
            self._check()
        self.places = {}
        try:
            for name, tensor in self.values.items():
                if tensor is not None and not isinstance(tensor, cresset.Tensor):
                    raise TypeError(f"{tensor} is not an instance of torch.Tensor")
                place = _Place(self.module, name)
                self.places[name] = place
                place.put(tensor)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc_info):
        changed = {}
        for name, place in reversed(self.places.items()):
            now = place.get()
            if now is not _MISSING and now is not self.values[name]:
                changed[name] = now
            place.restore()
        self.values.update(changed)


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call the module with other tensors in place of its parameters, buffers and other tensor attributes.

    parameter_and_buffer_dicts: {name: tensor}, or several such dictionaries with different names. The module keeps its own tensors: what
    it assigns to one of the names while it runs is put into the dictionary, where one is given. args: the arguments, a tuple, or one
    that is none. tie_weights: a tensor that the module has under several names is replaced under all of them. strict: every parameter and
    buffer must be given, and nothing else (RuntimeError). AttributeError or TypeError for a name whose owner is no module.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        values = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, (list, tuple)):
        for given in parameter_and_buffer_dicts:
            if not isinstance(given, dict):
                raise ValueError(f"Expected all elements of parameter_and_buffer_dicts to be dictionaries, but got {type(given)}")
        names = [n for given in parameter_and_buffer_dicts for n in given]
        repeated = list(dict.fromkeys(n for n in names if names.count(n) > 1))
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        values = {n: t for given in parameter_and_buffer_dicts for n, t in given.items()}
    else:
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(parameter_and_buffer_dicts)}"
        )
    jit = sys.modules.get("cresset.jit")  # a program without scripts does not load it
    if jit is not None and isinstance(module, jit.ScriptModule):
        raise RuntimeError("The stateless API can't be used with Jitted modules")
    used = _with_tied(module, values) if tie_weights else dict(values)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    try:
        with _Reparametrized(module, used, strict):
            return module(*args, **(kwargs or {}))
    finally:
        values.update({name: used[name] for name in values if used[name] is not values[name]})


def stack_module_state(models):
    """(parameters, buffers) of modules of one class, by name and stacked along a new first dimension; parameters are new leaves."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tables):
        out = {}
        for name in tables[0]:
            tensors = [t[name] for t in tables]
            needs = {t.requires_grad for t in tensors}
            if len(needs) > 1:
                raise RuntimeError("Expected tensors from each model to have the same .requires_grad")
            if tensors[0].requires_grad and tensors[0].is_leaf:
                out[name] = cresset.stack([t.detach() for t in tensors]).requires_grad_()
            else:
                out[name] = cresset.stack(tensors)
        return out

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])


def replace_all_batch_norm_modules_(root):
    """Let every batch norm in the module go without running statistics, which examples under vmap cannot share; gives the module."""
    for module in root.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
