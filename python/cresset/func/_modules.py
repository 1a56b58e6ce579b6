"""Modules as functions of their parameters and buffers."""

import cresset
from cresset import nn

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def _owner(module, name):
    """(submodule, its own name for it) of a dotted name."""
    path, _, last = name.rpartition(".")
    return (module.get_submodule(path) if path else module), last


def _slot(module, last):
    for table in (module._parameters, module._buffers):
        if last in table:
            return table
    return None


def _with_tied(module, values):
    """The values with those of other names for the same tensors added; a tensor given by two of its names must be the same."""
    groups = {}
    for named in (module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)):
        for name, tensor in named:
            groups.setdefault(id(tensor), []).append(name)
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


class _Reparametrized:
    """The module with other tensors for a block; what the module wrote into the values stays there."""

    def __init__(self, module, values, strict):
        self.module, self.values, self.strict = module, values, strict

    def __enter__(self):
        known = {n for n, _ in self.module.named_parameters(remove_duplicate=False)} | {
            n for n, _ in self.module.named_buffers(remove_duplicate=False)
        }
        if self.strict:
            problems = []
            for what, names in (("Unexpected", self.values.keys() - known), ("Missing", known - self.values.keys())):
                if names:
                    problems.append(f"{what} key(s): {', '.join(repr(n) for n in sorted(names))}.")
            if problems:
                lines = "".join(f"\n\t{p}" for p in problems)
                raise RuntimeError(f"Error(s) in reparametrizing for {type(self.module).__name__}:{lines}")
        self.saved = []
        for name in self.values.keys() & known:
            owner, last = _owner(self.module, name)
            table = _slot(owner, last)
            self.saved.append((table, last, table[last]))
            table[last] = self.values[name]

    def __exit__(self, *exc_info):
        for table, last, tensor in self.saved:
            table[last] = tensor


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call the module with other tensors in place of its parameters and buffers.

    parameter_and_buffer_dicts: {name: tensor}, or several such dictionaries with different names. args: the arguments, a tuple, or one
    that is none. tie_weights: a tensor that the module has under several names is replaced under all of them. strict: every parameter and
    buffer must be given, and nothing else.
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
    if tie_weights:
        values = _with_tied(module, values)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _Reparametrized(module, values, strict):
        return module(*args, **(kwargs or {}))


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
