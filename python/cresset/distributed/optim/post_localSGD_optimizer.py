"""Local steps, and averages of the parameters between them."""

import warnings

import cresset

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(cresset.optim.Optimizer):
    """Steps of `optim`, each followed by `averager.average_parameters`, which averages over ranks in its period.

    For DistributedDataParallel with post_localSGD_hook. The state_dict also has the averager's step.
    """

    def __init__(self, optim, averager):
        self.optim, self.param_groups, self.averager = optim, optim.param_groups, averager

    @property
    def state(self):
        """The state of the optimizer."""
        return self.optim.state

    def __repr__(self):
        return repr(self.optim)

    def state_dict(self):
        """That of the optimizer, with "step" of the averager."""
        return self.optim.state_dict() | {"step": self.averager.step}

    def load_state_dict(self, state_dict):
        """Load a state_dict of this class; one without "step" begins at 0, with a warning."""
        self.optim.load_state_dict({key: value for key, value in state_dict.items() if key != "step"})
        self.param_groups = self.optim.param_groups
        if "step" in state_dict:
            self.averager.step = state_dict["step"]
        else:
            warnings.warn("Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.", stacklevel=2)
            self.averager.step = 0

    def step(self):
        """A step of the optimizer, then the averager's."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none=True):
        """That of the optimizer."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group):
        """That of the optimizer."""
        self.optim.add_param_group(param_group)
