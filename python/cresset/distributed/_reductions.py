"""Reductions by their names, as operators of graphs have them."""

from cresset._C_distributed import ReduceOp

__all__ = ["REDUCTIONS", "reduction", "reduction_name"]

REDUCTIONS = {
    "sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "product": ReduceOp.PRODUCT, "min": ReduceOp.MIN, "max": ReduceOp.MAX, "band": ReduceOp.BAND,
    "bor": ReduceOp.BOR, "bxor": ReduceOp.BXOR,
}


def reduction(name):
    """The ReduceOp of a name. RuntimeError for an unknown one."""
    if name.lower() not in REDUCTIONS:
        raise RuntimeError(f"Unrecognized reduce_op: {name}")
    return REDUCTIONS[name.lower()]


def reduction_name(op):
    """The name of a ReduceOp. RuntimeError for those that have a factor."""
    for name, value in REDUCTIONS.items():
        if op == value:
            return name
    raise RuntimeError(f"A graph or a mode has a reduction by its name; {op} has none. Multiply before, and use ReduceOp.SUM.")
