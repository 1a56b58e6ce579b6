"""Declares operators: `operator(schema, …)` is a decorator for the function that is behind them."""

from cresset.library import Library

__all__ = ["functions", "operator"]

functions = {}  # "ns::name.overload" → function, which is what quantized tensors call
_libraries = {ns: Library(ns, "FRAGMENT") for ns in ("quantized", "_quantized", "sparse")}
PACKED = "__torch__.torch.classes.quantized.{}PackedParamsBase"


def operator(*schemas, namespace="quantized"):
    """Declare the schemas, in which LINEAR, CONV2D, CONV3D and EMBEDDING stand for the types of packed weights, with the function as their kernel."""

    def declare(function):
        for schema in schemas:
            for word, kind in (("LINEAR", "Linear"), ("CONV2D", "Conv2d"), ("CONV3D", "Conv3d"), ("EMBEDDING", "Embedding")):
                schema = schema.replace(f"{word} ", PACKED.format(kind) + " ").replace(f"-> {word}", "-> " + PACKED.format(kind))
            schema = schema.replace("CELL ", "__torch__.torch.classes.rnn.CellParamsBase ").replace("-> CELL", "-> __torch__.torch.classes.rnn.CellParamsBase")
            name = schema.partition("(")[0]
            _libraries[namespace].define(schema)
            _libraries[namespace].impl(name, function, "CompositeExplicitAutograd")
            functions[f"{namespace}::{name}"] = function
        return function

    return declare
