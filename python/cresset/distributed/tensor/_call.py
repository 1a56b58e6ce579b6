"""One operator call as rules see it, and what a rule answers with."""

from typing import Callable, NamedTuple

from cresset.utils._pytree import tree_flatten, tree_unflatten

from ._dtensor_spec import DTensorSpec
from .placement_types import Replicate

__all__ = ["Call", "Strategy", "everywhere"]


class Strategy(NamedTuple):
    """Placements along one mesh dimension with which an operator can be run on each rank's parts.

    `outputs`: a placement, or a tuple of them (None for what is no tensor). `inputs`: a placement for each tensor among the arguments, in order.
    `local`, where the operator itself would not do: called as local(op, args, kwargs, call, mesh_dims) with this rank's parts; `mesh_dims` are those
    for which this strategy was chosen.
    """

    outputs: object
    inputs: tuple
    local: Callable = None


def everywhere(call):
    """The whole on every rank."""
    return Strategy(Replicate(), (Replicate(),) * len(call.specs))


class Call:
    """An operator and its arguments, with a DTensorSpec in the place of each tensor.

    `specs` are the specs in order; `argument(name)` gives an argument by its name in the schema, or the default.
    """

    def __init__(self, op, args, kwargs, mesh):
        self.op, self.args, self.kwargs, self.mesh = op, args, kwargs, mesh
        self._leaves, self._tree = tree_flatten((args, kwargs))
        self.specs = [leaf for leaf in self._leaves if isinstance(leaf, DTensorSpec)]

    @property
    def name(self):
        """The operator's name without namespace and overload."""
        return self.op._schema.name.split("::")[1]

    def argument(self, name):
        """An argument by its name, or its default; None where the operator has none of that name."""
        for place, argument in enumerate(self.op._schema.arguments):
            if argument.name == name:
                if place < len(self.args) and not argument.kwarg_only:
                    return self.args[place]
                if name in self.kwargs:
                    return self.kwargs[name]
                return argument.default_value if argument.has_default_value() else None
        return None

    def place(self, name):
        """Which of `specs` an argument is, or None: for arguments that are one tensor."""
        value = self.argument(name)
        return next((i for i, spec in enumerate(self.specs) if spec is value), None)

    def filled(self, tensors):
        """(args, kwargs) with these in the place of the specs."""
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, DTensorSpec) else leaf for leaf in self._leaves]
        return tree_unflatten(leaves, self._tree)

    def written(self):
        """Places in `specs` of the tensors that the operator writes to."""
        found, names = [], set()
        for argument in self.op._schema.arguments:
            if argument.is_write:
                names.add(argument.name)
        for place, argument in enumerate(self.op._schema.arguments):
            if argument.name not in names:
                continue
            value = self.args[place] if place < len(self.args) and not argument.kwarg_only else self.kwargs.get(argument.name)
            values = value if isinstance(value, (list, tuple)) else [value]
            for one in values:
                found += [i for i, spec in enumerate(self.specs) if spec is one]
        return found
