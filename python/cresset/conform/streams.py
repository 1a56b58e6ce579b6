"""Operators on a queue of their own, behind work that takes long: a kernel that runs on another queue reads its inputs too early."""

import cresset

from .checks import NotApplicable

__all__ = ["in_stream"]

_DELAY_BYTES, _DELAY_COPIES = 1 << 24, 6


class _Late:
    """Inputs of one device that arrive late: their copies wait behind large ones."""

    def __init__(self, device):
        self.stream = cresset.Stream(device=device)
        self.large = cresset.empty(_DELAY_BYTES, dtype=cresset.uint8).pin_memory()
        self.there = cresset.empty(_DELAY_BYTES, dtype=cresset.uint8, device=device)


_late = {}


def _late_on(device):
    if device not in _late:
        try:
            _late[device] = _Late(device)
        except (RuntimeError, NotImplementedError, TypeError):
            _late[device] = None  # no streams, or no memory that copies can come from later
    return _late[device]


def in_stream(trial):
    """The functional form on a side stream gives the CPU's result, with inputs that arrive there late."""
    if trial.row.random or trial.row["view"] or trial.factory or cresset.device(trial.device).type in ("cpu", "meta"):
        raise NotApplicable
    late = _late_on(trial.device)
    if late is None:
        raise NotApplicable
    sources = []

    def arrange(t, device):
        place = cresset.zeros_like(t).to(device)  # wrong values that a kernel which is too early finds
        if t.numel():
            sources.append((t.contiguous().pin_memory(), place))
        return place

    call = trial.row.place(trial.call, trial.device, arrange)
    cresset.accelerator.synchronize(trial.device)
    with late.stream:
        for _ in range(_DELAY_COPIES):
            late.there.copy_(late.large, non_blocking=True)
        for source, place in sources:
            place.copy_(source, non_blocking=True)
        result = trial.row.op()(*call.args, **call.kwargs)
        if isinstance(result, cresset.Tensor):
            result = result.cpu()
        elif isinstance(result, (tuple, list)):
            result = [r.cpu() if isinstance(r, cresset.Tensor) else r for r in result]
        late.stream.synchronize()
    cresset.accelerator.synchronize(trial.device)
    trial.agree("result on a stream", _back(result, trial.device), trial.reference)


def _back(result, device):
    return result.to(device) if isinstance(result, cresset.Tensor) else [r.to(device) if isinstance(r, cresset.Tensor) else r for r in result]
