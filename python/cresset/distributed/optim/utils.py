"""Optimizers as functions of gradients."""

import cresset

__all__ = ["as_functional_optim", "functional_optim_map", "register_functional_optim"]


def as_functional_optim(optim_cls, *args, **kwargs):
    """An object of which `step(gradients)` does a step of `optim_cls(params, **kwargs)` with gradients given one by one (None leaves a parameter out).

    `args` are the parameters, and what follows them. ValueError for a class that `functional_optim_map` has not.
    """
    if optim_cls not in functional_optim_map:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return functional_optim_map[optim_cls](*args, **kwargs)


def register_functional_optim(key, optim):
    """Let `as_functional_optim(key, …)` make an `optim`; a key that is known stays as it is."""
    functional_optim_map.setdefault(key, optim)


class _FunctionalOptimizer:
    """Steps of an optimizer (`optim_cls`) whose parameters' own gradients stay as they are."""

    def __init__(self, params, *args, _allow_empty_param_list=False, **kwargs):
        params = list(params)
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        self._parameters = params
        self.optim = self.optim_cls([{"params": params}], *args, **kwargs)
        self.param_group = self.optim.param_groups[0]

    @property
    def state(self):
        """The optimizer's state."""
        return self.optim.state

    def step(self, gradients):
        """ValueError for another number of gradients than parameters."""
        parameters = self.param_group["params"]
        if len(parameters) != len(gradients):
            raise ValueError(
                f"the gradients passed in does not equal to the size of the parameters!Params length: {len(parameters)}. Gradients length: {len(gradients)}"
            )
        self._step(parameters, gradients)

    def step_param(self, param, grad):
        """A step of one parameter, which need not be one that the optimizer was made with."""
        known = self.param_group["params"]
        self.param_group["params"] = [param]
        try:
            self._step([param], [grad])
        finally:
            self.param_group["params"] = known

    def _step(self, parameters, gradients):
        own = [p.grad for p in parameters]
        try:
            for p, gradient in zip(parameters, gradients):
                p.grad = gradient
            self.optim.step()
        finally:
            for p, gradient in zip(parameters, own):
                p.grad = gradient


# {class of optimizers, or a key of one's own: class with `step(gradients)`}
functional_optim_map = {
    cls: type(f"_Functional{cls.__name__}", (_FunctionalOptimizer,), {"optim_cls": cls})
    for cls in (getattr(cresset.optim, name) for name in ("Adagrad", "Adam", "AdamW", "SGD", "Adadelta", "RMSprop", "Rprop", "Adamax"))
}
