"""Updates on lists of tensors: `foreach=True` gives an update all parameters of a group at once, otherwise one after the other."""

from contextlib import contextmanager

import cresset

from .optimizer import Optimizer, as_float, run_closure

# Elements that go through all operators of an update together: their memory stays in the cache from one operator to the next.
_TOGETHER = 1 << 16
_ACCELERATORS = ["cuda", "xpu", "hpu", "privateuseone"]
_FUSED_DEVICES = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def check_choice(*, foreach=None, fused=None, differentiable=False):
    """RuntimeError for implementations that exclude each other."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_capturable(group, params):
    """AssertionError when `capturable` is asked for where nothing can be captured."""
    if group.get("capturable") and any(p.device.type in ("cpu", "meta") for p in params):
        raise AssertionError(f"If capturable=True, params and state_steps must be on supported devices: {_ACCELERATORS}.")


def check_foreach(group):
    """AssertionError when updates on lists are to be recorded."""
    if group.get("differentiable"):
        raise AssertionError("_foreach ops don't support autograd")


def check_dense(optimizer, params, advice=""):
    """RuntimeError, before anything is changed, for a sparse gradient that the update does not know."""
    for p in params:
        if p.grad is not None and p.grad.is_sparse:
            raise RuntimeError(f"{optimizer} does not support sparse gradients{advice}")


def check_fused(params):
    """RuntimeError for parameters that have no fused step."""
    for p in params:
        if not p.is_floating_point():
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                f"{_FUSED_DEVICES} but {p.dtype} and {p.device.type}"
            )


def real(tensors):
    """Complex tensors as pairs of real numbers, others as they are."""
    return [cresset.view_as_real(t) if t.is_complex() else t for t in tensors]


def batches(params):
    """The list in pieces: many small tensors, or one large one."""
    batch, size = [], 0
    for p in params:
        n = p.numel()
        if batch and size + n > _TOGETHER:
            yield batch
            batch, size = [], 0
        batch.append(p)
        size += n
    if batch:
        yield batch


def columns(states, *names):
    """The states of each name as lists in the parameters' order."""
    return [[state[name] for state in states] for name in names]


@contextmanager
def fused_step(optimizer, steps):
    """Counts a fused step and gives the keyword arguments of a gradient scaler; a step that found infinities does not count."""
    grad_scale, found_inf = getattr(optimizer, "grad_scale", None), getattr(optimizer, "found_inf", None)
    if steps:
        cresset._foreach_add_(steps, 1)
    yield {"grad_scale": grad_scale, "found_inf": found_inf}
    if steps and found_inf is not None:
        cresset._foreach_sub_(steps, [as_float(found_inf)] * len(steps))


class ListOptimizer(Optimizer):
    """Base of optimisers whose update is written once, on lists.

    Subclasses define `_new_state(p, group)`, the state of a new parameter, and `_update(group, params, grads, states)`.
    `_decays_gradients(group)` says whether weight decay is added to the gradients here.
    """

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)
        tensor_steps(self)

    def _decays_gradients(self, group):
        return group.get("weight_decay", 0) != 0 and not group.get("decoupled_weight_decay", False)

    def _gradients(self, group, params):
        """The parameters' gradients, turned round to maximise, with weight decay."""
        grads = [p.grad for p in params]
        if group["maximize"]:
            grads = cresset._foreach_neg(grads)
        if self._decays_gradients(group):
            grads = cresset._foreach_add(grads, params, alpha=group["weight_decay"])
        return list(grads)

    def step(self, closure=None):
        loss = run_closure(closure)
        with cresset.set_grad_enabled(self.defaults.get("differentiable", False)):
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if not params:
                    continue
                check_dense(type(self).__name__, params)
                check_capturable(group, params)
                if group["foreach"]:
                    check_foreach(group)
                for p in params:
                    if not self.state[p]:
                        self.state[p].update(self._new_state(p, group))
                for some in batches(params) if group["foreach"] else [[p] for p in params]:
                    states = [self.state[p] for p in some]
                    cresset._foreach_add_([s["step"] for s in states], 1)
                    self._update(group, some, self._gradients(group, some), states)
        return loss


def tensor_steps(optimizer):
    """After a state was loaded: counts of steps are tensors, also in a state that older versions saved with numbers."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            own = optimizer.state.get(p)
            if own and "step" in own and not isinstance(own["step"], cresset.Tensor):
                own["step"] = cresset.tensor(float(own["step"]), dtype=cresset.float32)


def zero_step():
    return cresset.tensor(0.0, dtype=cresset.float32)


def zeros_of(p):
    return cresset.zeros_like(p, memory_format=cresset.preserve_format)


def counts(states):
    """The numbers of steps as Python numbers."""
    return [state["step"].item() for state in states]
