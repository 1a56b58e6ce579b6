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


def _refresh_per_optimizer_state():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _MultiDeviceReplicator:
    """A tensor, and its copies on the devices for which they were asked."""

    def __init__(self, master_tensor):
        self.master, self._copies = master_tensor, {}

    def get(self, device):
        if device not in self._copies:
            self._copies[device] = self.master.to(device, non_blocking=True)
        return self._copies[device]


def _summands(gradient):
    """The numbers of a gradient that a factor is applied to: those that a sparse one stores."""
    if gradient.layout is cresset.strided:
        return gradient
    return gradient._values() if gradient.layout is cresset.sparse_coo else gradient.values()


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
        self._init_growth_tracker, self._growth_tracker = 0, None
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _lazy_init_scale_growth_tracker(self, dev):
        """The factor and the number of good steps become tensors of the device of the first loss."""
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = cresset.full((), self._init_scale, dtype=cresset.float32, device=dev)
        self._growth_tracker = cresset.full((), self._init_growth_tracker, dtype=cresset.int32, device=dev)

    def scale(self, outputs):
        """A tensor, or the tensors of a list or tuple, times the factor."""
        if not self._enabled:
            return outputs
        return self._scaled(outputs, [])

    def _scaled(self, outputs, factors):
        if isinstance(outputs, cresset.Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            if not factors:
                factors.append(_MultiDeviceReplicator(self._scale))
            return outputs * factors[0].get(outputs.device)
        if hasattr(outputs, "__iter__"):
            scaled = (self._scaled(output, factors) for output in outputs)
            if not isinstance(outputs, (list, tuple)):
                return scaled
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        """Multiply the gradients of the optimizer's parameters by `inv_scale`: {device: a copy of `found_inf` there, 1 when a number is not finite}."""
        factors, found = _MultiDeviceReplicator(inv_scale), _MultiDeviceReplicator(found_inf)
        groups = defaultdict(list)
        with cresset.no_grad():
            for parameter in (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None):
                if not allow_fp16 and parameter.grad.dtype is cresset.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if parameter.grad.is_sparse and parameter.grad.dtype is cresset.float16:
                    parameter.grad = parameter.grad.coalesce()  # the sum of numbers of one place may be infinite where they are not
                numbers = _summands(parameter.grad)
                groups[numbers.device, numbers.dtype].append(numbers)
            found_there = {device: found.get(device) for device, _ in groups}
            for (device, _), gradients in groups.items():
                cresset._amp_foreach_non_finite_check_and_unscale_(gradients, found_there[device], factors.get(device))
        return found_there

    def unscale_(self, optimizer):
        """Divide the gradients of the optimizer's parameters by the factor now, for example to clip them; `step` would do it otherwise."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, cresset.zeros((), device=inverse.device), False)
        state["stage"] = OptState.UNSCALED

    def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(...) when all gradients are finite, and its result; None when the step is left out."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_scaling(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
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
                self._check_inf_per_device(optimizer)
            unscaled = state["stage"] is OptState.UNSCALED
            factor = self._get_scale_async()
            optimizer.grad_scale = None if unscaled else factor * getattr(optimizer, "grad_scale", 1)
            found = [found.to(factor.device, non_blocking=True) for found in state["found_inf_per_device"].values()]
            optimizer.found_inf = sum(found, start=cresset.zeros_like(factor))
            try:
                result = optimizer.step(*args, **kwargs)
            finally:
                del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """At the end of an iteration: the factor for the next one, or `new_scale`."""
        if not self._enabled:
            return
        factor, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(new_scale)
        else:
            found = [found for state in self._per_optimizer_states.values() for found in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            everywhere = sum((f.to(factor.device, non_blocking=True) for f in found[1:]), start=found[0].to(factor.device, non_blocking=True))
            cresset._amp_update_scale_(factor, tracker, everywhere, self._growth_factor, self._backoff_factor, self._growth_interval)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _set_scale(self, new_scale):
        if not isinstance(new_scale, cresset.Tensor):
            self._scale.fill_(new_scale)
            return
        if new_scale.numel() != 1 or new_scale.requires_grad or new_scale.dtype is not cresset.float32:
            raise AssertionError("new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with requires_grad=False.")
        self._scale.copy_(new_scale.reshape(()))

    def _check_scale_growth_tracker(self, funcname):
        """(the factor, the number of good steps), as tensors."""
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                hint = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
                raise AssertionError(f"Attempted {funcname} but {name} is None.  {hint}")
        return self._scale, self._growth_tracker

    def _check_inf_per_device(self, optimizer):
        """What `unscale_` finds, without a change of the gradients."""
        factor, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        found = self._unscale_grads_(optimizer, cresset.ones_like(factor), cresset.zeros_like(factor), True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _get_scale_async(self):
        return self._scale

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self):
        return self._enabled

    def get_scale(self):
        """The factor; 1.0 when the scaler is off."""
        return (self._init_scale if self._scale is None else self._scale.item()) if self._enabled else 1.0

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
                "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker()}  # fmt: skip

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
                )
            state |= {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker(), "_scale": None, "_growth_tracker": None}
        return state
