"""An optimizer whose state is told by names of parameters."""

import cresset
from cresset.distributed._shard.sharded_tensor import ShardedTensor
from cresset.optim import Optimizer

__all__ = []


class _NamedOptimizer(Optimizer):
    """An `optimizer_class` over parameters with names: state_dict() has names where an optimizer has numbers, and loads by them.

    `named_parameters`: pairs or a dict; `param_groups`: groups of some of these parameters, as for an optimizer, all in one without; the rest are
    the arguments of the class. KeyError, or ValueError for later groups, where a parameter of a group has no name.
    """

    def __init__(self, named_parameters, optimizer_class, param_groups=None, module=None, *args, **kwargs):
        self.named_parameters = dict(named_parameters)
        self.module = module
        self._names = {p: name for name, p in self.named_parameters.items()}
        groups = self.named_parameters.values() if param_groups is None else [dict(g, params=_listed(g["params"])) for g in param_groups]
        self._optimizer = optimizer_class(groups, *args, **kwargs)
        self._check_names(self._optimizer.param_groups, KeyError)
        super().__init__(self._optimizer.param_groups, self._optimizer.defaults)
        self.param_groups = self._optimizer.param_groups

    def _check_names(self, groups, error):
        if any(p not in self._names for group in groups for p in group["params"]):
            raise error("some parameters are not in the module: a name in `named_parameters` was required for each")

    @property
    def state(self):
        """The state of the optimizer, by parameter."""
        return self._optimizer.state

    @state.setter
    def state(self, value):
        pass  # that of the optimizer is the only one

    def step(self, closure=None):
        """The optimizer's step; the closure's result."""
        return self._optimizer.step(closure=closure)

    def state_dict(self):
        """The optimizer's, with names in place of numbers."""
        plain = self._optimizer.state_dict()
        names = [self._names[p] for group in self.param_groups for p in group["params"]]
        groups = [dict(group, params=sorted(names[n] for n in group["params"])) for group in plain["param_groups"]]
        return self._post_state_dict({"state": {names[n]: state for n, state in plain["state"].items()}, "param_groups": groups})

    def load_state_dict(self, state_dict):
        """Write a state_dict() into the optimizer's state, in place; entries of other parameters are left out.

        ValueError where the optimizer has no state yet (init_state() makes it), where a parameter's state lacks an entry or a size differs, and where
        the options of a group do.
        """
        given, mine = self._pre_load_state_dict(state_dict), self.state_dict()
        if not mine["state"]:
            raise ValueError("Expects the optim to be initialized before load but found not initialized. init_state() does it.")
        for name, here in mine["state"].items():
            if name in given["state"]:
                _load(name, here, given["state"][name], self.state[self.named_parameters[name]])
        theirs = {_key(group): group for group in given["param_groups"]}
        for group, named in zip(self.param_groups, mine["param_groups"]):
            if (found := theirs.get(_key(named))) is None:
                continue
            if found.keys() != named.keys():
                raise ValueError(f"Expects the options {sorted(named)} of a group of parameters; {sorted(found)} were given.")
            group.update({key: value for key, value in found.items() if key != "params"})

    def add_param_group(self, param_group):
        """One more group, of parameters that have names. ValueError for others."""
        if not hasattr(self, "_optimizer") or getattr(self, "param_groups", None) is not self._optimizer.param_groups:
            return super().add_param_group(param_group)  # from the constructor
        group = dict(param_group, params=_listed(param_group["params"]))
        self._check_names([group], ValueError)
        return self._optimizer.add_param_group(group)

    def init_state(self):
        """Make the state of all parameters by a step with gradients of zero and a learning rate of zero; nothing where there is state."""
        if self.state:
            return
        for group in self.param_groups:
            for p in group["params"]:
                if p.requires_grad and p.grad is None:
                    p.grad = cresset.zeros_like(p)
        rates = [group.get("lr") for group in self.param_groups]
        for group, rate in zip(self.param_groups, rates):
            if rate is not None:
                group["lr"] = cresset.tensor(0.0) if isinstance(rate, cresset.Tensor) else 0.0
        self.step()
        for group, rate in zip(self.param_groups, rates):
            if rate is not None:
                group["lr"] = rate

    def _pre_load_state_dict(self, state_dict):
        """For subclasses: what is loaded in place of what was given."""
        return state_dict

    def _post_state_dict(self, state_dict):
        """For subclasses: what state_dict() gives."""
        return state_dict


def _listed(params):
    return [params] if isinstance(params, cresset.Tensor) else list(params)


def _key(group):
    return "/".join(sorted(group["params"]))


def _load(name, here, given, state):
    if here.keys() != given.keys():
        raise ValueError(f"Expects the state {sorted(here)} of parameter {name}; {sorted(given)} was given.")
    for key, value in here.items():
        other = given[key]
        if isinstance(value, ShardedTensor):
            pairs = list(zip(value.local_shards(), other.local_shards(), strict=True))
            for mine, theirs in pairs:
                mine.tensor.detach().copy_(theirs.tensor)
        elif isinstance(value, cresset.Tensor):
            if value.shape != other.shape:
                raise ValueError(f"Expects {key} of parameter {name} of the size {list(value.shape)}; {list(other.shape)} was given.")
            value.detach().copy_(other)
        else:
            state[key] = other
