"""The score card: every check of every operator in every dtype, and what to do next."""

import contextlib
import functools
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field

import cresset
from cresset.testing import models
from cresset.testing.capabilities import Capabilities, dtype_name
from cresset.testing.devices import backend_key, check_device, state_of
from cresset.testing.samples import qualified, row_of, rows

from . import checks
from .needed import needed_by, order_of_work
from .processes import ordered

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
    samples: dict = field(default_factory=dict)  # (op, check, dtype) of what is not right -> the number of its sample

    def add(self, part):
        """Joins the card of further operators or models."""
        self.results += part.results
        self.states |= part.states
        self.needed += part.needed
        self.samples |= part.samples

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


def _judge(run):
    """Runs one check; None when it does not apply, otherwise the status and reason."""
    try:
        run()
    except checks.NotApplicable as error:
        return ("skip", str(error)) if str(error) else None
    except checks.Wrong as error:
        return "wrong", str(error)
    except Exception as error:
        missing = isinstance(error, NotImplementedError) or "Could not run" in str(error)
        return "missing" if missing else "error", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return "pass", ""


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
                verdict = _judge(lambda: checks.CHECKS[check](trial))
                if verdict:
                    found[check] = Result(row.id, check, name, *verdict, sample)
                    if verdict[0] not in ("pass", "skip"):
                        card.samples[row.id, check, name] = trial.index
        card.results += found.values()


def _check_extra(card, name, dtypes, wanted, capabilities):
    check, column, every_dtype = checks.EXTRA[name]
    if column not in wanted:
        return
    for dtype in dtypes if every_dtype else (cresset.float32,):
        reason = capabilities.reason_to_skip(name, dtype)
        verdict = ("skip", reason) if reason else _judge(lambda: check(card.device, dtype))
        if verdict:
            card.results.append(Result(name, column, dtype_name(dtype), *verdict))


# The pieces of a card: (kind, name of an operator, of a check in checks.EXTRA or of an example model).
def _pieces(ops, with_models):
    operators = [("operator", row.id) for row in rows() if ops is None or re.search(ops, row.id)]
    extra = [("extra", name) for name in checks.EXTRA] if ops is None else []
    return operators + extra + ([("model", name) for name in models.MODELS] if with_models else [])


def _card_of(piece, device, dtypes, columns, capabilities):
    """The card of one piece."""
    kind, name = piece
    card, dtypes = Card(device), tuple(getattr(cresset, n) for n in dtypes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "operator":
            row = row_of(name)
            card.states[name] = state_of_row(row, backend_key(device))
            _check_row(card, row, dtypes, columns, capabilities)
        elif kind == "extra":
            _check_extra(card, name, dtypes, columns, capabilities)
        else:
            card.needed.append(needed_by(name, device))
    return card


def conform(device, *, ops=None, dtypes=DTYPES, columns=COLUMNS, capabilities=None, with_models=True, progress=None, jobs=1, loads=()):
    """The card of a device.

    ops is a pattern that operators must contain (as regular expression); dtypes and columns choose parts of the card. capabilities says
    what to leave out. progress(number, of, name) is called before each operator. With jobs > 1 that many processes work on the card; each
    loads the backends `loads` first, and the program that calls this needs `if __name__ == "__main__":` as for every multiprocessing.
    """
    device = str(check_device(device))
    work = _pieces(ops, with_models)
    part = functools.partial(_card_of, device=device, dtypes=dtypes, columns=columns, capabilities=capabilities or Capabilities())
    card = Card(device)
    state = cresset.get_rng_state()
    with contextlib.closing(ordered(part, work, jobs, loads)) as parts:
        for number, (_, name) in enumerate(work):
            if progress:
                progress(number, len(work), name)
            card.add(next(parts))
    cresset.set_rng_state(state)
    return card
