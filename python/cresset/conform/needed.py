"""Which operators a model calls in forward and backward, and how a device runs each of them."""

import importlib.util
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import cresset
from cresset import _C
from cresset.testing import models
from cresset.testing.devices import backend_key, state_of, with_tensors
from cresset.testing.samples import operators, qualified
from cresset.utils._python_dispatch import TorchDispatchMode
from cresset.utils._pytree import tree_map_only

__all__ = ["Needed", "Recorder", "load_model", "needed_by", "order_of_work"]

# The library's own for every backend, on the device where that can be, and otherwise by way of the host: each call tells.
MEMORY = ("aten::_copy_from", "aten::fill_.Scalar", "aten::zero_")


@dataclass
class Needed:
    """Operators of a run: calls by name, and the state of each on the device (kernel, derived, fallback, missing)."""

    model: str
    device: str
    ran_on: str
    calls: Counter = field(default_factory=Counter)
    state: dict = field(default_factory=dict)

    def by_state(self, state):
        """Names in that state, those that are called most often first."""
        return sorted((n for n, s in self.state.items() if s == state), key=lambda n: (-self.calls[n], n))

    @property
    def lacking(self):
        """Names that a backend would have to write for this model to run on it alone."""
        return {n for n, s in self.state.items() if s in ("fallback", "missing")}

    def as_dict(self):
        return {"model": self.model, "device": self.device, "ran_on": self.ran_on,
                "operators": [{"name": n, "calls": self.calls[n], "state": self.state[n]} for n in sorted(self.state)]}


class Recorder(TorchDispatchMode):
    """Counts what a run ends in: operators that the device composes of others are opened, those others are counted.

    On the device itself an operator without kernel and without fallback is computed on the CPU, so a run gets to its end on a backend
    that can only allocate and copy.
    """

    def __init__(self, needed, device, on_device):
        super().__init__()
        self.needed, self.key, self.device, self.on_device = needed, backend_key(device), cresset.device(device), on_device
        self.out_forms = {qualified(r): r["out"] for r in operators() if r["out"] and r["kind"] in ("pointwise", "structured")}

    def _record(self, name, state):
        self.needed.calls[name] += 1
        self.needed.state[name] = state

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        args = with_tensors(func, args)
        name = str(func._schema).partition("(")[0]
        state = self._state(name)
        if not self._concerns_device(args, kwargs):
            return func(*args, **kwargs)
        if state == "derived":
            self._record(name, state)
            if self.on_device:
                with self:
                    return func.redispatch(_C.DispatchKeySet(getattr(_C.DispatchKey, self.key)), *args, **kwargs)
            if name in self.out_forms:  # here it has a kernel of its own; there it allocates and calls the out form
                out = self.out_forms[name]
                self._record(out, state_of(out, self.key))
            elif not func.has_kernel_for_dispatch_key(backend_key(self.needed.ran_on)):
                with self:
                    return func.redispatch(_C.DispatchKeySet(getattr(_C.DispatchKey, backend_key(self.needed.ran_on))), *args, **kwargs)
            return func(*args, **kwargs)
        self._record(name, state)
        if state == "missing" and self.on_device:
            return self._on_cpu(func, args, kwargs)
        return func(*args, **kwargs)

    def _state(self, name):
        state = state_of(name, self.key)
        return "kernel" if name in MEMORY and state == "derived" else state

    def round_trips(self, before):
        """Operators of the library's own that went through the host since the counts `before` fall back."""
        for name in MEMORY:
            calls = _host_calls().get(name, 0) - before.get(name, 0)
            if calls and self.on_device:
                self.needed.state[name] = "fallback"
                self.needed.calls[name] = max(calls, self.needed.calls[name])

    def _concerns_device(self, args, kwargs):
        """Does the call have a tensor of the run's device, or make one there? Targets on the CPU are made and moved by the model."""
        if not self.on_device:
            return True
        found = []
        tree_map_only((cresset.Tensor, cresset.device), lambda v: found.append(v.device if isinstance(v, cresset.Tensor) else v), (args, kwargs))
        return any(d.type == self.device.type for d in found)

    def _on_cpu(self, func, args, kwargs):
        """The call on copies; what it writes goes back into the arguments."""
        copies = {}

        def down(t):
            copies[id(t)] = t, t.detach().cpu()
            return copies[id(t)][1]

        cpu_args, cpu_kwargs = tree_map_only(cresset.Tensor, down, (args, kwargs))
        cpu_kwargs = {k: cresset.device("cpu") if isinstance(v, cresset.device) else v for k, v in cpu_kwargs.items()}
        result = func(*cpu_args, **cpu_kwargs)
        if func._schema.is_mutable:
            for given, copy in copies.values():
                given.copy_(copy)
            return next((given for given, copy in copies.values() if copy is result), result)
        return tree_map_only(cresset.Tensor, lambda t: t.to(self.device), result)


def _host_calls():
    """How often each operator has run on the CPU for a device: {name: calls}."""
    return {op: calls for op, calls, *_ in cresset.accelerator.fallback_counts()}


def load_model(name):
    """build(device) -> (module, inputs, loss) for an example model, a Python file, or a module name.

    A file defines `model()`, which returns a module and a tuple of inputs, and may define `loss(output)`; without it the sum of the output's
    elements is the loss. ValueError when there is no such model.
    """
    if name in models.MODELS:
        return lambda device: models.build(name, device)
    if name.endswith(".py") and not Path(name).exists() or not name.endswith(".py") and not _importable(name):
        raise ValueError(f"model: one of {', '.join(models.MODELS)}, a Python file or a module was required; '{name}' was given.\n"
                         f"Next: cresset ops --needed-by {next(iter(models.MODELS))}")
    if name.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(name).stem, name)
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(Path(name).resolve().parent))
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(name)
    if not hasattr(module, "model"):
        raise ValueError(f"model: {name} was to define a function model() that returns a module and a tuple of inputs; it does not.")

    def build(device):
        with cresset.random.fork_rng(devices=[]):
            cresset.manual_seed(0)
            net, inputs = module.model()
        return net.to(device), tuple(x.to(device) if isinstance(x, cresset.Tensor) else x for x in inputs), getattr(module, "loss", lambda out: out.sum())

    return build


def _importable(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def needed_by(name, device):
    """The operators of one training step of a model, as the device would run them: a Needed.

    The step runs on the device where that is possible, otherwise on meta, otherwise on the CPU.
    """
    build = load_model(name)
    errors = []
    for place in dict.fromkeys([str(device), "meta", "cpu"]):
        needed = Needed(name, str(device), place)
        try:
            model, inputs, loss = build(place)
            before, recorder = _host_calls(), Recorder(needed, device, on_device=place == str(device))
            with recorder:
                models.train_step(model, inputs, loss)
            recorder.round_trips(before)
            return needed
        except (RuntimeError, NotImplementedError, TypeError) as error:
            errors.append(f"{place}: {type(error).__name__}: {str(error).splitlines()[0]}")
    raise RuntimeError(f"model {name} ran neither on {device} nor on meta nor on the CPU:\n" + "\n".join(errors))


def order_of_work(all_needed):
    """[(operator, names of the models that need it, calls)] of what a device lacks: those that help most models first, then those that
    are called most."""
    models_of, calls = {}, Counter()
    for needed in all_needed:
        for name in needed.lacking:
            models_of.setdefault(name, []).append(needed.model)
            calls[name] += needed.calls[name]
    return sorted(((n, m, calls[n]) for n, m in models_of.items()), key=lambda row: (-len(row[1]), -row[2], row[0]))
