"""The score card: every check of every operator in every dtype, and what to do next."""

import re
import warnings
from collections import Counter
from dataclasses import dataclass, field

import cresset
from cresset.testing import models
from cresset.testing.capabilities import Capabilities, dtype_name
from cresset.testing.devices import backend_key, check_device, state_of
from cresset.testing.samples import qualified, rows

from . import checks
from .needed import needed_by, order_of_work

__all__ = ["COLUMNS", "Card", "DTYPES", "Result", "conform", "state_of_row"]

DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "int64", "int32", "uint8", "bool")
COLUMNS = ("forward", "backward", "view", "in-place", "out", "random", "file", "stream")
# A result is one of these; a missing kernel counts against the score as a wrong answer does.
STATUSES = ("pass", "wrong", "error", "missing", "skip")


@dataclass
class Result:
    """One operator, one check, one dtype: over all samples, the first that is not right decides."""

    op: str
    check: str
    dtype: str
    status: str
    reason: str = ""
    sample: str = ""


@dataclass
class Card:
    """Results and models of one device."""

    device: str
    results: list = field(default_factory=list)
    states: dict = field(default_factory=dict)   # operator -> kernel, derived, fallback, missing
    needed: list = field(default_factory=list)   # a Needed for each example model
    trials: dict = field(default_factory=dict)   # (op, check, dtype) of what is not right -> its Trial

    def count(self, column=None):
        """Counter of statuses, of one column or of all."""
        return Counter(r.status for r in self.results if column in (None, r.check))

    @property
    def score(self):
        """Per cent of the checks that were not skipped and pass."""
        counts = self.count()
        tried = sum(counts.values()) - counts["skip"]
        return 100.0 * counts["pass"] / tried if tried else 0.0

    def skips(self):
        """[(reason, number)], the most frequent first."""
        return Counter(r.reason for r in self.results if r.status == "skip").most_common()

    def failures(self):
        return [r for r in self.results if r.status in ("wrong", "error", "missing")]

    def next_operators(self):
        """[(operator, models that need it, calls)]: see needed.order_of_work."""
        return order_of_work(self.needed)

    def as_dict(self):
        counts = self.count()
        return {
            "device": self.device, "score": round(self.score, 2), "counts": {s: counts[s] for s in STATUSES},
            "columns": {c: {s: self.count(c)[s] for s in STATUSES} for c in COLUMNS}, "skips": [list(pair) for pair in self.skips()],
            "models": [n.as_dict() for n in self.needed],
            "next": [{"operator": n, "models": m, "calls": c} for n, m, c in self.next_operators()],
            "operators": self.states, "results": [vars(r) for r in self.results],
        }  # fmt: skip


def state_of_row(row, key):
    """How a row runs under a backend key. A functional form that allocates and calls its out form is in that form's state."""
    state = state_of(qualified(row.data), key)
    return state_of(row["out"], key) if state == "derived" and row["kind"] in ("pointwise", "structured") and row["out"] else state


def _dtypes_of(row, dtypes):
    """The dtypes to try: those asked for, or the own one of a row without floating arguments."""
    tensors = row.call(0).tensors()
    if any(t.is_floating_point() or t.is_complex() for t in tensors):
        return dtypes
    return (tensors[0].dtype if tensors else cresset.float32,)


def _judge(card, op, check, dtype, run, trial=None, sample=""):
    """Runs one check; None when it does not apply, otherwise the status and reason."""
    try:
        run()
    except checks.NotApplicable as error:
        return ("skip", str(error)) if str(error) else None
    except checks.Wrong as error:
        status, reason = "wrong", str(error)
    except Exception as error:
        missing = isinstance(error, NotImplementedError) or "Could not run" in str(error)
        status, reason = "missing" if missing else "error", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    else:
        return "pass", ""
    card.trials.setdefault((op, check, dtype_name(dtype)), trial)
    return status, reason


def _check_row(card, row, dtypes, wanted, capabilities):
    for dtype in _dtypes_of(row, dtypes):
        name = dtype_name(dtype)
        reason = capabilities.reason_to_skip(row.id, dtype)
        if reason:
            columns = ["random"] if row.random else ["forward"]
            card.results += [Result(row.id, c, name, "skip", reason) for c in columns if c in wanted]
            continue
        found = {}
        for trial in checks.trials(row, dtype, card.device, capabilities):
            sample = row["samples"][trial.index]
            for check in wanted:
                if check not in checks.CHECKS or check in found and found[check].status != "pass":
                    continue
                verdict = _judge(card, row.id, check, dtype, lambda: checks.CHECKS[check](trial), trial)
                if verdict:
                    found[check] = Result(row.id, check, name, *verdict, sample)
        card.results += found.values()


def _check_extra(card, dtypes, wanted, capabilities):
    for name, (check, column, every_dtype) in checks.EXTRA.items():
        if column not in wanted:
            continue
        for dtype in dtypes if every_dtype else (cresset.float32,):
            reason = capabilities.reason_to_skip(name, dtype)
            verdict = ("skip", reason) if reason else _judge(card, name, column, dtype, lambda: check(card.device, dtype))
            if verdict:
                card.results.append(Result(name, column, dtype_name(dtype), *verdict))


def conform(device, *, ops=None, dtypes=DTYPES, columns=COLUMNS, capabilities=None, with_models=True, progress=None):
    """The card of a device.

    ops is a pattern that operators must contain (as regular expression); dtypes and columns choose parts of the card. capabilities says
    what to leave out. progress(number, of, operator) is called for each operator.
    """
    device = check_device(device)
    capabilities = capabilities or Capabilities()
    card, key = Card(str(device)), backend_key(device)
    chosen = [row for row in rows() if ops is None or re.search(ops, row.id)]
    kinds = tuple(getattr(cresset, name) for name in dtypes)
    state = cresset.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, row in enumerate(chosen):
            if progress:
                progress(number, len(chosen), row.id)
            card.states[row.id] = state_of_row(row, key)
            _check_row(card, row, kinds, columns, capabilities)
        if ops is None:
            _check_extra(card, kinds, columns, capabilities)
        if with_models:
            card.needed = [needed_by(name, device) for name in models.MODELS]
    cresset.set_rng_state(state)
    return card
