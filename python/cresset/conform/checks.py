"""The checks of one operator, each against the CPU with the same arguments.

A check takes a Trial and raises: Wrong for another answer, NotApplicable when there is nothing to check for this sample. Any other error
is the device's.
"""

import cresset
from cresset.testing._comparison import Options, compare, default_tolerances
from cresset.testing.samples import cast, flat

__all__ = ["CHECKS", "EXTRA", "NotApplicable", "Trial", "Wrong", "trials"]


class Wrong(AssertionError):
    """The device gives another answer than the CPU."""


class NotApplicable(Exception):
    """This sample has nothing to check."""


class Trial:
    """One call of a row in one dtype: arguments on the CPU, ways to run them there and on the device.

    The call is a sample of the row, or another one. `arrange(t, device)` places an argument, in a layout of its own; `slack` (1, or more) allows
    for sums of many terms; `exact_tiny` compares denormals too; `keep_types` leaves the dtypes of the arguments as they are.
    """

    def __init__(self, row, index, dtype, device, capabilities, *, call=None, arrange=None, slack=0, exact_tiny=False, keep_types=False):
        self.row, self.index, self.dtype, self.device, self.capabilities = row, index, dtype, device, capabilities
        self.arrange, self.slack, self.exact_tiny = arrange, slack, exact_tiny and capabilities.denormals
        self.given = row.call(index) if call is None else call
        self.floating = any(t.is_floating_point() or t.is_complex() for t in self.given.tensors())
        leaves = iter([t.requires_grad for t in self.given.tensors()])
        self.call = self.given.map(cresset.Tensor.detach) if keep_types else cast(self.given, dtype)
        self.wants_grad = [next(leaves) and (t.is_floating_point() or t.is_complex()) for t in self.call.tensors()]
        self.factory = not self.call.tensors() and any(a["name"] == "device" for a in row["arguments"])

    def with_call(self, call, **options):
        """The same operator with other arguments."""
        return Trial(self.row, self.index, self.dtype, self.device, self.capabilities, call=call, **options)

    def defined(self):
        """Runs the CPU, as `reference` and `reference_call`; False when it refuses, or when there is no tensor among the results."""
        try:
            cresset.manual_seed(3)
            self.reference, self.reference_call = self.run("cpu")
        except REFUSALS:
            return False
        return bool(flat(self.reference))

    def fresh(self, device, grad=False):
        """The arguments on new memory of a device; with grad those that a gradient may go to require it."""
        wanted = iter(self.wants_grad)
        moved = self.row.place(self.call, device, self.arrange).map(lambda t: t.requires_grad_(grad and next(wanted)))
        if self.factory:
            moved.kwargs["device"] = cresset.device(device)
        return moved

    def run(self, device, form=None, grad=False):
        """(result, arguments) of one run."""
        call = self.fresh(device, grad)
        return self.row.op(form)(*call.args, **call.kwargs), call

    def runs_natively(self):
        """Does a run on the device do without the CPU fallback? None when it fails."""
        call = self.fresh(self.device)
        before = cresset.accelerator.fallback_counts()
        try:
            self.row.op()(*call.args, **call.kwargs)
        except Exception:
            return None
        return cresset.accelerator.fallback_counts() == before

    def agree(self, what, have, want, summed=False):
        """Two results agree in number, dtype, shape and, within the tolerances of their dtype, in values. `summed` values may have lost
        digits to terms that cancel."""
        have, want = flat(have), flat(want)
        if len(have) != len(want):
            raise Wrong(f"{what}: {len(have)} tensors, the CPU gives {len(want)}")
        for number, (h, w) in enumerate(zip(have, want)):
            name = what if len(want) == 1 else f"{what} {number}"
            if h.device.type != cresset.device(self.device).type and not self.row.host_arguments and not (self.arrange and h.dim() == 0):
                raise Wrong(f"{name} is on {h.device}")
            h, w = h.detach(), w.detach()
            if w.is_sparse and h.is_sparse:  # gradients of rows, in any order
                h, w = h.to_dense(), w.to_dense()
            rtol, atol = self.capabilities.tolerances(self.row.id, w.dtype) or default_tolerances(w)
            if summed or self.slack:
                atol = max(rtol, atol)
            if self.slack:
                rtol, atol = 4 * self.slack * rtol, self.slack * atol * max(1.0, _largest(w))
            options = Options(rtol=rtol, atol=atol, equal_nan=True, check_device=False)
            problem = compare(h, w, options)
            if problem is None and self.exact_tiny:
                problem = _tiny(h, w, options)
            if problem:
                raise Wrong(f"{name}: {' '.join(problem.split())}")


def _largest(t):
    """The largest finite magnitude."""
    if t.numel() == 0 or not t.is_floating_point() and not t.is_complex() or t.device.type == "meta":
        return 1.0
    values = t.abs().double()
    return cresset.where(values.isfinite(), values, 0.0).max().item()


def _tiny(have, want, options):
    """Denormal results, which the tolerance for all hides: compared after both are scaled into the normal range."""
    if not want.is_floating_point() or "meta" in (want.device.type, have.device.type):
        return None
    limits, want = cresset.finfo(want.dtype), want.cpu()
    denormal = (want != 0) & (want.abs() < limits.tiny)
    if not denormal.any():
        return None
    scale = 2.0 ** (10 if want.dtype == cresset.float16 else 100)
    problem = compare(have.cpu()[denormal] * scale, want[denormal] * scale, Options(rtol=0.1, atol=2 * scale * limits.smallest_normal * limits.eps, check_device=False))
    return problem and f"denormal numbers: {problem}"


def forward(trial):
    """The functional form."""
    if trial.row.random:
        raise NotApplicable
    result, call = trial.run(trial.device)
    trial.agree("result", result, trial.reference)
    # Also what no schema says: batch normalisation changes the running statistics.
    if not trial.row["view"]:
        trial.agree("argument after the call", call.tensors(), trial.reference_call.tensors())


def backward(trial):
    """Gradients of all inputs, for weights that depend on place alone."""
    if trial.row.random or not trial.row.differentiable or not any(trial.wants_grad):
        raise NotApplicable

    def gradients(device):
        result, call = trial.run(device, grad=True)
        outputs = [t for t in flat(result) if t.requires_grad]
        if not outputs:
            raise NotApplicable
        weights = [_weights(t).to(device) for t in outputs]
        return cresset.autograd.grad(outputs, call.leaves(), weights, allow_unused=True)

    want, have = _when_defined(lambda: gradients("cpu")), gradients(trial.device)
    for number, (h, w) in enumerate(zip(have, want)):
        if (h is None) != (w is None):
            raise Wrong(f"gradient {number} is {'missing' if h is None else 'there'}, on the CPU it is not")
        if w is not None:
            trial.agree(f"gradient {number}", h, w, summed=True)


def _weights(t):
    numbers = cresset.arange(t.numel(), dtype=cresset.float64) % 7 / 4 - 0.6
    return numbers.reshape(t.shape).to(t.dtype)


def view(trial):
    """A view shares memory: what is written to it is in its base."""
    if not trial.row["view"]:
        raise NotApplicable

    def written(device):
        result, call = trial.run(device)
        parts = flat(result)
        if not parts or parts[0].numel() == 0 or any(s == 0 and n > 1 for s, n in zip(parts[0].stride(), parts[0].shape)):
            raise NotApplicable
        parts[0].zero_()
        return call.tensors()[0]

    trial.agree("base after writing to the view", written(trial.device), written("cpu"))


def inplace(trial):
    """The in-place form gives self, with the CPU's values."""
    if trial.row.random or not trial.row.inplace or not trial.row.inplace["returns"]:
        raise NotApplicable
    want, wanted_call = _when_defined(lambda: trial.run("cpu", trial.row.inplace))
    have, call = trial.run(trial.device, trial.row.inplace)
    if have is not call.args[0] and flat(have)[0].data_ptr() != flat(call.args[0])[0].data_ptr():
        raise Wrong("the result is not self")
    trial.agree("self", have, want)
    around = [(h._base, w._base) for h, w in zip(flat(call.args[0]), flat(wanted_call.args[0])) if h._is_view() and w._is_view()]
    trial.agree("memory around self", [h for h, _ in around], [w for _, w in around])


def out(trial):
    """out= takes the result: an empty tensor grows, a ready one is filled."""
    form = trial.row.out
    if trial.row.random or not form or not form["returns"]:
        raise NotApplicable
    names = [a["name"] for a in form["arguments"] if a["write"]]
    known = {a["name"] for a in form["arguments"]}
    want = flat(trial.reference)
    if len(want) != len(names):
        raise NotApplicable

    def run(device, target):
        call = trial.fresh(device)
        outs = [target(t, device) for t in want]
        kwargs = {k: v for k, v in call.kwargs.items() if k in known}
        trial.row.op(form)(*call.args, **kwargs, **dict(zip(names, outs)))
        return outs + [t._base for t in outs if t._is_view()]

    for what, target in _TARGETS.items():
        expected = _when_defined(lambda: run("cpu", target))
        trial.agree(what, run(trial.device, target), expected)
    if trial.row["kind"] == "pointwise" and len(want) == 1 and trial.call.tensors():
        _out_is_self(trial, form, names[0], known)


def _out_is_self(trial, form, name, known):
    """out= may be the first argument itself."""
    def run(device):
        call = trial.fresh(device)
        kwargs = {k: v for k, v in call.kwargs.items() if k in known}
        trial.row.op(form)(*call.args, **kwargs, **{name: call.tensors()[0]})
        return call.tensors()[0]

    first, result = trial.call.tensors()[0], flat(trial.reference)[0]
    if first.shape == result.shape and first.dtype == result.dtype and trial.arrange is None:
        try:
            expected = run("cpu")
        except REFUSALS:
            return
        trial.agree("out is the first argument", run(trial.device), expected)


def _ready(t, device):
    return cresset.full(t.shape, 1, dtype=t.dtype, device=device)


def _transposed(t, device):
    return cresset.full(t.shape[::-1], 1, dtype=t.dtype, device=device).permute(*range(t.dim())[::-1])


def _between(t, device):
    """Every second element; what lies between stays as it is."""
    return cresset.full((*t.shape, 2), 1, dtype=t.dtype, device=device)[..., 1]


_TARGETS = {"out into empty": lambda t, device: cresset.empty(0, dtype=t.dtype, device=device), "out into ready": _ready, "out into a transposed tensor": _transposed,
            "out into every second element": _between}


def random(trial):
    """A seed gives the same numbers again; dtype and shape are the CPU's."""
    if not trial.row.random:
        raise NotApplicable
    results = []
    for _ in range(2):
        cresset.manual_seed(3)
        results.append(flat(trial.run(trial.device)[0]))
    for first, second, like in zip(*results, flat(trial.reference)):
        if (first.dtype, first.shape) != (like.dtype, like.shape):
            raise Wrong(f"result is {first.dtype} {list(first.shape)}, the CPU gives {like.dtype} {list(like.shape)}")
        if not cresset.equal(first.detach().cpu(), second.detach().cpu()):
            raise Wrong("the same seed gives other numbers")


REFUSALS = (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError)


def _when_defined(run):
    """run(), NotApplicable when the CPU refuses."""
    try:
        return run()
    except REFUSALS as error:
        raise NotApplicable from error


CHECKS = {"forward": forward, "backward": backward, "view": view, "in-place": inplace, "out": out, "random": random}


def trials(row, dtype, device, capabilities):
    """The trials of a row in a dtype that the CPU can run, `reference` and `reference_call` set to its result and arguments."""
    for index in range(len(row["samples"])):
        trial = Trial(row, index, dtype, device, capabilities)
        if (trial.call.tensors() or trial.factory) and trial.defined():
            yield trial


# --- what is no operator ------------------------------------------------------------------------------------------------------------


def _values(dtype):
    return (cresset.arange(24, dtype=cresset.float64) - 3).abs().reshape(2, 3, 4).to(dtype)


def _same(what, have, want):
    if have.dtype != want.dtype or have.shape != want.shape or not cresset.equal(have.cpu(), want.cpu()):
        raise Wrong(f"{what} differs from what was written")


def file(device, dtype):
    """save and load: back to the device, to the CPU, and a transposed tensor."""
    import tempfile
    from pathlib import Path

    want = _values(dtype)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tensors.safetensors"
        cresset.save({"x": want.to(device), "t": want.to(device).transpose(0, 2)}, path)
        loaded = cresset.load(path, map_location="cpu")
        _same("tensor loaded to the CPU", loaded["x"], want)
        _same("transposed tensor", loaded["t"], want.transpose(0, 2))
        back = cresset.load(path, map_location=str(device))["x"]
        if back.device.type != cresset.device(device).type:
            raise Wrong(f"map_location={device} gives a tensor on {back.device}")
        _same("tensor loaded to the device", back, want)


def copies(device, dtype):
    """To the device and back, within the device, into another layout and into another dtype."""
    want = _values(dtype)
    x = want.to(device)
    _same("copy", x, want)
    _same("clone", x.clone(), want)
    _same("copy into another layout", cresset.empty(4, 3, 2, dtype=dtype, device=device).permute(2, 1, 0).copy_(x), want)
    _same("copy of a slice", x[:, 1], want[:, 1])
    _same("copy as float32", x.to(cresset.float32), want.to(cresset.float32))


def stream(device, dtype):
    """A stream of its own: work in order, events that are reached."""
    make, event_type = getattr(cresset, "Stream", None), getattr(cresset, "Event", None)
    if make is None or event_type is None:
        raise NotApplicable("this build has no streams")
    try:
        own, event = make(device=device), event_type(device=device)
    except (RuntimeError, NotImplementedError) as error:
        raise NotApplicable("the device has no streams") from error
    want = _values(dtype)
    try:
        with own:
            result = want.to(device) + want.to(device)
            event.record(own)
        event.synchronize()
        own.synchronize()
    except NotImplementedError as error:
        raise NotApplicable(str(error).splitlines()[0]) from error
    if not event.query() or not own.query():
        raise Wrong("an event that was waited for has not happened")
    _same("sum on a stream", result, want + want)


def generator(device, dtype):
    """Seeds, states and distributions of the device's random numbers."""
    def draw():
        return [t.cpu() for t in (cresset.rand(2000, device=device), cresset.randn(2000, device=device), cresset.randperm(50, device=device),
                                  cresset.randint(0, 10, (2000,), device=device), cresset.empty(2000, device=device).bernoulli_(0.25))]

    cresset.manual_seed(5)
    first, following = draw(), draw()
    cresset.manual_seed(5)
    for a, b, c in zip(first, draw(), following):
        if not cresset.equal(a, b):
            raise Wrong("the same seed gives other numbers")
        if cresset.equal(a, c):
            raise Wrong("two draws give the same numbers")
    uniform, normal, order, integers, coins = first
    facts = {"mean of rand": (uniform.mean().item(), 0.5, 0.05), "deviation of randn": (normal.std().item(), 1.0, 0.15),
             "mean of randint": (integers.double().mean().item(), 4.5, 0.4), "mean of bernoulli": (coins.mean().item(), 0.25, 0.06)}
    for name, (have, want, allowed) in facts.items():
        if abs(have - want) > allowed:
            raise Wrong(f"{name} is {have:.3f}, {want} was expected")
    if sorted(order.tolist()) != list(range(50)) or uniform.min() < 0 or uniform.max() >= 1 or integers.min() < 0 or integers.max() > 9:
        raise Wrong("numbers outside of their range")


# name -> (check, column, runs in every dtype)
EXTRA = {"copies": (copies, "forward", True), "save and load": (file, "file", True), "streams and events": (stream, "stream", False),
         "generator": (generator, "random", False)}
