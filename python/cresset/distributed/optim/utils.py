"""Optimizers as functions of gradients."""

import cresset

__all__ = ["as_functional_optim"]

_KNOWN = ("Adagrad", "Adam", "AdamW", "SGD", "Adadelta", "RMSprop", "Rprop", "Adamax")


def as_functional_optim(optim_cls, *args, **kwargs):
    """An object of which `step(gradients)` does a step of `optim_cls(params, **kwargs)` with gradients given one by one (None leaves a parameter out).

    `args` are the parameters, and what follows them. ValueError for a class that is none of the optimizers that there are in this form.
    """
    if optim_cls.__name__ not in _KNOWN or getattr(cresset.optim, optim_cls.__name__) is not optim_cls:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return _FunctionalOptimizer(optim_cls, *args, **kwargs)


class _FunctionalOptimizer:
    """Steps of an optimizer whose parameters' own gradients stay as they are."""

    def __init__(self, optim_cls, params, *args, _allow_empty_param_list=False, **kwargs):
        params = list(params)
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        self._parameters = params
        self.optim = optim_cls([{"params": params}], *args, **kwargs)
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
        own = [p.grad for p in parameters]
        try:
            for p, gradient in zip(parameters, gradients):
                p.grad = gradient
            self.optim.step()
        finally:
            for p, gradient in zip(parameters, own):
                p.grad = gradient
