"""Scaling of losses, so that small gradients of half precision do not become zero."""

import enum
import inspect
import warnings
from collections import defaultdict

import cresset

__all__ = ["OptState", "GradScaler"]


class OptState(enum.Enum):
    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state():
    return {"stage": OptState.READY, "found_inf": None}


def _gradients(optimizer):
    return [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]


def _any_infinite(gradients):
    """Is a number of the gradients not finite? None without gradients."""
    with cresset.no_grad():
        return not all(bool(cresset.isfinite(g).all()) for g in gradients) if gradients else None


class GradScaler:
    """Multiplies the loss by a factor and divides the gradients by it before the optimizer's step; a step whose gradients are not
    finite is left out and makes the factor smaller (backoff_factor), `growth_interval` good steps in a row make it larger (growth_factor).

    >>> scaler = GradScaler("cpu")
    >>> scaler.scale(loss).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        self._device = cresset.device(device).type
        self._enabled = enabled
        if self._device == "cuda" and enabled and not cresset.cuda.is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._scale = init_scale, None
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._growth_tracker = 0
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _factor(self):
        if self._scale is None:
            self._scale = float(self._init_scale)
        return self._scale

    def scale(self, outputs):
        """A tensor, or the tensors of a list or tuple, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, cresset.Tensor):
            return outputs * cresset.tensor(self._factor(), dtype=cresset.float32, device=outputs.device)
        if isinstance(outputs, (list, tuple)):
            scaled = map(self.scale, outputs)
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _found_infinite(self, gradients):
        """Is a number of the gradients not finite? None without gradients. A subclass may ask elsewhere, too."""
        return _any_infinite(gradients)

    def unscale_(self, optimizer):
        """Divide the gradients of the optimizer's parameters by the factor now, for example to clip them; `step` would do it otherwise."""
        if not self._enabled:
            return
        self._check_scaled("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        factor = 1.0 / self._scale
        gradients = _gradients(optimizer)
        for gradient in gradients:
            if gradient.dtype is cresset.float16:
                raise ValueError("Attempting to unscale FP16 gradients.")
        state["found_inf"] = self._found_infinite(gradients)
        with cresset.no_grad():
            for gradient in gradients:
                gradient.mul_(factor)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(...) when all gradients are finite, and its result; None when the step is left out."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scaled("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_scaling(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if state["found_inf"] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if state["found_inf"] else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_of_scaling(self, optimizer, state, args, kwargs):
        """step of an optimizer that divides its gradients and leaves steps out by itself: it gets the scaler, or two tensors as attributes."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future GradScaler registers "
                "`grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
        else:
            if state["stage"] is OptState.READY:
                state["found_inf"] = self._found_infinite(_gradients(optimizer))
            unscaled = state["stage"] is OptState.UNSCALED
            optimizer.grad_scale = None if unscaled else cresset.tensor(self._scale) * getattr(optimizer, "grad_scale", 1)
            optimizer.found_inf = cresset.tensor(float(bool(state["found_inf"])))
            try:
                result = optimizer.step(*args, **kwargs)
            finally:
                del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        if state["found_inf"] is None:
            state["found_inf"] = False
        return result

    def update(self, new_scale=None):
        """At the end of an iteration: the factor for the next one, or `new_scale`."""
        if not self._enabled:
            return
        self._check_scaled("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            found = [s["found_inf"] for s in self._per_optimizer_states.values() if s["found_inf"] is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(found):
                self._scale *= self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = self._scale * self._growth_factor
                    self._scale = grown if grown < 3.4028235e38 else self._scale  # the factor is a float32
                    self._growth_tracker = 0
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _check_scaled(self, name):
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration.")

    def is_enabled(self):
        return self._enabled

    def get_scale(self):
        """The factor; 1.0 when the scaler is off."""
        return (self._init_scale if self._scale is None else self._scale) if self._enabled else 1.0

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def state_dict(self):
        """The state as a dictionary; empty when the scaler is off."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker}  # fmt: skip

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale = float(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
