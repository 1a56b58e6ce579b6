"""Modules as functions of tuples of parameters: `cresset.functorch`'s, and ensembles that are made from a class."""

import copy

import cresset
from cresset.func import functional_call
from cresset.functorch import FunctionalModule, FunctionalModuleWithBuffers, combine_state_for_ensemble, make_functional, make_functional_with_buffers

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functional_init", "functional_init_with_buffers",
    "make_functional", "make_functional_with_buffers",
]  # fmt: skip


def _ensemble(make, shape, device):
    """(one of the modules, the parameters of all, their buffers): stacked tensors by name, those of the one module for an empty shape."""
    if len(shape) > 1:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    if not shape:
        model = make().to(device)
        return model, dict(model.named_parameters()), dict(model.named_buffers())
    if shape[0] <= 0:
        raise ValueError(f"num_models {shape[0]} should be > 0")
    models = [make().to(device) for _ in range(shape[0])]

    def stacked(named):
        return {name: cresset.stack([getattr(m, "get_" + named)(name) for m in models]) for name, _ in getattr(models[0], f"named_{named}s")()}

    return copy.deepcopy(models[0]), stacked("parameter"), stacked("buffer")


def functional_init(model_class, ensemble_shape=(), device="cpu"):
    """A function of the arguments of model_class that gives (parameters, function of (parameters, tuple of inputs), names) of as many modules as
    ensemble_shape says; the parameters are stacked, for vmap. RuntimeError for modules with buffers."""

    def wrapped(*args, **kwargs):
        model, params, buffers = _ensemble(lambda: model_class(*args, **kwargs), tuple(ensemble_shape), device)
        if buffers:
            raise RuntimeError("functional_init: modules without buffers are required. Use functional_init_with_buffers.")
        names = tuple(params)
        return tuple(params.values()), lambda weights, data: functional_call(model, dict(zip(names, weights)), data), names

    return wrapped


def functional_init_with_buffers(model_class, ensemble_shape=(), device="cpu"):
    """As functional_init, for modules with buffers: (parameters, buffers, function of (parameters, buffers, tuple of inputs), names, names)."""

    def wrapped(*args, **kwargs):
        model, params, buffers = _ensemble(lambda: model_class(*args, **kwargs), tuple(ensemble_shape), device)
        names, buffer_names = tuple(params), tuple(buffers)

        def call(weights, state, data):
            return functional_call(model, {**dict(zip(names, weights)), **dict(zip(buffer_names, state))}, data)

        return tuple(params.values()), tuple(buffers.values()), call, names, buffer_names

    return wrapped
