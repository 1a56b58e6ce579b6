"""Sequences of layers that are computed as one after quantization."""

from cresset import nn
from cresset.nn.utils.parametrize import type_before_parametrizations


class _FusedModule(nn.Sequential):
    pass


# class: (the classes of its parts, the names of its arguments)
_PARTS = {
    **{f"ConvReLU{n}d": (f"Conv{n}d", "ReLU", "conv relu") for n in (1, 2, 3)},
    "LinearReLU": ("Linear", "ReLU", "linear relu"),
    **{f"ConvBn{n}d": (f"Conv{n}d", f"BatchNorm{n}d", "conv bn") for n in (1, 2)},
    **{f"ConvBnReLU{n}d": (f"Conv{n}d", f"BatchNorm{n}d", "ReLU", "conv bn relu") for n in (1, 2)},
    "ConvBn3d": ("Conv3d", "BatchNorm3d", "conv bn"),
    "ConvBnReLU3d": ("Conv3d", "BatchNorm3d", "ReLU", "conv bn relu"),
    **{f"BNReLU{n}d": (f"BatchNorm{n}d", "ReLU", "batch_norm relu") for n in (2, 3)},
    "LinearBn1d": ("Linear", "BatchNorm1d", "linear bn"),
    "LinearLeakyReLU": ("Linear", "LeakyReLU", "linear leaky_relu"),
    "LinearTanh": ("Linear", "Tanh", "linear tanh"),
}


def _sequence(name, parts, arguments):
    """A class of sequences, whose constructor takes one layer of each of the classes."""

    def __init__(self, *layers, **named):
        layers += tuple(named.pop(argument) for argument in arguments[len(layers) :] if argument in named)
        if named or len(layers) != len(parts):
            raise TypeError(f"{name}: the layers ({', '.join(arguments)}) were required; {len(layers)} and {sorted(named)} were given.")
        kinds = [type_before_parametrizations(layer) for layer in layers]
        if kinds != [getattr(nn, part) for part in parts]:
            raise AssertionError(f"Incorrect types for input modules: {', '.join(k.__name__ for k in kinds)}; {', '.join(parts)} were required.")
        _FusedModule.__init__(self, *layers)

    doc = f"{', '.join(parts[:-1])} and {parts[-1]} in sequence, which become one quantized layer."
    return type(name, (_FusedModule,), {"__module__": __name__, "__doc__": doc, "__init__": __init__})


for _name, (*_parts, _arguments) in _PARTS.items():
    globals()[_name] = _sequence(_name, _parts, _arguments.split())


__all__ = [*_PARTS, "ConvAdd2d", "ConvAddReLU2d"]


class ConvAdd2d(_FusedModule):
    """A convolution and the sum with a second input."""

    def __init__(self, conv, add):
        super().__init__(conv)
        self.add = add

    def forward(self, x1, x2):
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A convolution, the sum with a second input, and a ReLU."""

    def __init__(self, conv, add, relu):
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(self, x1, x2):
        return self.relu(self.add(self[0](x1), x2))
