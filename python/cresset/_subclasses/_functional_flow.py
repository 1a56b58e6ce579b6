"""cond, while_loop, map, scan and associative_scan of functional tensors: their functions are made functional, and get the values."""

import cresset
from cresset._higher_order_ops.utils import UnsupportedAliasMutationException
from cresset.utils import _pytree as pytree

from .functional_tensor import FunctionalTensor, FunctionalTensorMode, call_on_values

__all__ = ["FUNCTIONAL"]


def _functional(function, place):
    """A function of values. UnsupportedAliasMutationException where it writes to them."""

    def run(*args):
        with FunctionalTensorMode() as mode:
            wrapped = pytree.tree_map_only(cresset.Tensor, lambda x: x if isinstance(x, FunctionalTensor) else FunctionalTensor(x, mode), args)
            result = function(*wrapped)
            if any(isinstance(x, FunctionalTensor) and x._functional_mode is mode and x._storage.generation for x in pytree.tree_leaves(wrapped)):
                raise UnsupportedAliasMutationException(f"{place} is mutating the input!")
            return pytree.tree_map_only(FunctionalTensor, lambda x: x.from_functional(), result)

    return run


def _flow(name, place, functions):
    def run(*arguments):
        def call(*rest):
            own = [_functional(f, place) for f in arguments[at : at + functions]]
            return cresset._rare_functions._recorders[name](*rest[:at], *own, *rest[at:])

        at = 1 if name == "cond" else 0
        return call_on_values(call, *arguments[:at], *arguments[at + functions :])

    return run


# {name: function} of what a recorder of that name gets.
FUNCTIONAL = {
    "cond": _flow("cond", "One of torch.cond branch", 2), "while_loop": _flow("while_loop", "torch.while_loop", 2), "map": _flow("map", "torch.map", 1),
    "scan": _flow("scan", "torch.scan", 1), "associative_scan": _flow("associative_scan", "torch.associative_scan", 1),
}  # fmt: skip
