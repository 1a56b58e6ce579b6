"""The score card: every check of every operator in every dtype, and what to do next."""

import contextlib
import datetime
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

from . import checks, randomness
from .needed import needed_by, order_of_work
from .processes import ordered
from .streams import in_stream
from .variants import KINDS, variants

__all__ = ["COLUMNS", "Card", "DTYPES", "Result", "conform", "state_of_row"]

DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "int64", "int32", "uint8", "bool")
COLUMNS = ("forward", "backward", "view", "in-place", "out", *KINDS, "random", "file", "stream")
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
    native: dict = field(default_factory=dict)   # operator -> did its checks run without the CPU fallback?
    about: dict = field(default_factory=dict)    # version, date, device: of the run

    def add(self, part):
        """Joins the card of further operators or models."""
        self.results += part.results
        self.native |= part.native
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

    @property
    def native_share(self):
        """Per cent of the operators that were tried whose calls ran on the device alone, and passed what was checked."""
        failed = {r.op for r in self.failures()}
        return 100.0 * sum(n and op not in failed for op, n in self.native.items()) / len(self.native) if self.native else 0.0

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
            "device": self.device, "about": self.about, "score": round(self.score, 2), "native": round(self.native_share, 2),
            "native_operators": sorted(op for op, native in self.native.items() if native), "counts": {s: counts[s] for s in STATUSES},
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


def _judge(run, device):
    """Runs one check; None when it does not apply, otherwise the status and reason."""
    try:
        run()
    except checks.NotApplicable as error:
        return ("skip", str(error)) if str(error) else None
    except checks.Wrong as error:
        return "wrong", str(error)
    except Exception as error:
        if device == "meta" and _needs_values(error):
            return "skip", "needs values, which meta tensors do not have"
        missing = isinstance(error, NotImplementedError) or "Could not run" in str(error)
        return "missing" if missing else "error", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return "pass", ""


def _needs_values(error):
    return isinstance(error, (NotImplementedError, RuntimeError)) and bool(re.search("meta", str(error), re.IGNORECASE))


class _Found:
    """The results of one operator in one dtype: over all samples and variants, the first that is not right decides."""

    def __init__(self, card, row, dtype, note):
        self.card, self.row, self.dtype, self.note, self.by_check = card, row, dtype_name(dtype), note, {}

    def open(self, check):
        return check not in self.by_check or self.by_check[check].status == "pass"

    def run(self, check, run, index, sample):
        self.note((check, self.dtype, sample))
        verdict = _judge(run, self.card.device)
        if verdict and (self.open(check) or verdict[0] not in ("pass", "skip")):
            self.by_check[check] = Result(self.row.id, check, self.dtype, *verdict, sample)
            if verdict[0] not in ("pass", "skip"):
                self.card.samples[self.row.id, check, self.dtype] = index


def _check_row(card, row, dtypes, wanted, capabilities, note):
    streamed = card.states[row.id] in ("kernel", "derived")
    for dtype in _dtypes_of(row, dtypes):
        reason = capabilities.reason_to_skip(row.id, dtype)
        if reason:
            columns = ["random"] if row.random else ["forward"]
            card.results += [Result(row.id, c, dtype_name(dtype), "skip", reason) for c in columns if c in wanted]
            continue
        found = _Found(card, row, dtype, note)
        for trial in checks.trials(row, dtype, card.device, capabilities):
            sample = row["samples"][trial.index]
            note(("forward", found.dtype, sample))
            native = trial.runs_natively()
            card.native[row.id] = card.native.get(row.id, True) and native is not False
            for check in wanted:
                if check in checks.CHECKS and found.open(check):
                    found.run(check, lambda: checks.CHECKS[check](trial), trial.index, sample)
                if check in KINDS and found.open(check):
                    _check_variants(found, check, trial, sample)
            if "stream" in wanted and streamed and trial.index == 0 and found.open("stream"):
                found.run("stream", lambda: in_stream(trial), 0, sample)
                streamed = False
        card.results += found.by_check.values()


def _check_variants(found, column, trial, sample):
    for label, made, runs in variants(column, trial):
        for run in runs:
            found.run(column, lambda: run(made), trial.index, f"{sample} ({label})")
            if not found.open(column):
                return


def _check_extra(card, name, dtypes, wanted, capabilities, note):
    check, column, every_dtype = checks.EXTRA[name]
    if column not in wanted:
        return
    for dtype in dtypes if every_dtype else (cresset.float32,):
        reason = capabilities.reason_to_skip(name, dtype)
        note((column, dtype_name(dtype), ""))
        verdict = ("skip", reason) if reason else _judge(lambda: check(card.device, dtype), card.device)
        if verdict:
            card.results.append(Result(name, column, dtype_name(dtype), *verdict))


def _check_random(card, name, dtypes, wanted, capabilities, note):
    if "random" not in wanted:
        return
    for dtype in dict.fromkeys((*dtypes, *(getattr(cresset, n) for n in randomness.CASES[name][1] if n in ("int64",)))):
        reason = capabilities.reason_to_skip(name, dtype)
        note(("random", dtype_name(dtype), ""))
        verdict = ("skip", reason) if reason else _judge(lambda: randomness.check(name, card.device, dtype), card.device)
        if verdict:
            card.results.append(Result(name, "random", dtype_name(dtype), *verdict))


# The pieces of a card: (kind, name of an operator, of a random operator, of a check in checks.EXTRA or of an example model).
def _pieces(ops, with_models):
    operators = [("operator", row.id) for row in rows() if ops is None or re.search(ops, row.id)]
    drawn = [("random", name) for name in randomness.CASES if ops is None or re.search(ops, name)]
    extra = [("extra", name) for name in checks.EXTRA] if ops is None else []
    return operators + drawn + extra + ([("model", name) for name in models.MODELS] if with_models else [])


def _card_of(piece, note, device, dtypes, columns, capabilities):
    """The card of one piece."""
    kind, name = piece
    card, dtypes = Card(device), tuple(getattr(cresset, n) for n in dtypes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "operator":
            row = row_of(name)
            card.states[name] = state_of_row(row, backend_key(device))
            _check_row(card, row, dtypes, columns, capabilities, note)
        elif kind == "random":
            card.states[name] = state_of("aten::" + name, backend_key(device))
            before = cresset.accelerator.fallback_counts()
            _check_random(card, name, dtypes, columns, capabilities, note)
            if any(r.status != "skip" for r in card.results):
                card.native[name] = cresset.accelerator.fallback_counts() == before
        elif kind == "extra":
            _check_extra(card, name, dtypes, columns, capabilities, note)
        else:
            note(("model", "", name))
            card.needed.append(needed_by(name, device))
    return card


def _lost(piece, place, how, device):
    """The card of a piece whose process ended."""
    kind, name = piece
    check, dtype, sample = place or ("forward", "", "")
    card = Card(device)
    if kind == "operator":
        card.states[name] = state_of_row(row_of(name), backend_key(device))
    if kind in ("operator", "random"):
        card.native[name] = False
    card.results.append(Result(name, check if check in COLUMNS else "forward", dtype, "error", how, sample))
    return card


def _about(device):
    """What the card is a card of."""
    kind = cresset.device(device).type
    found = {"version": cresset.__version__, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "device": device}
    if kind not in ("cpu", "meta"):
        with contextlib.suppress(RuntimeError, NotImplementedError, AttributeError, KeyError):
            report = cresset.accelerator.report(kind)
            found |= {"description": report.get("description") or "", "library": report.get("library") or ""}
        with contextlib.suppress(RuntimeError, NotImplementedError, AttributeError):
            found["name"] = getattr(cresset, kind).get_device_name(cresset.device(device).index or 0)
    return found


def conform(device, *, ops=None, dtypes=DTYPES, columns=COLUMNS, capabilities=None, with_models=True, progress=None, jobs=1, loads=(), isolated=None, timeout=None):
    """The card of a device.

    ops is a pattern that operators must contain (as regular expression); dtypes and columns choose parts of the card. capabilities says
    what to leave out. progress(number, of, name) is called before each operator. With jobs > 1 that many processes work on the card; each
    loads the backends `loads` first, and the program that calls this needs `if __name__ == "__main__":` as for every multiprocessing.
    With `isolated` (the default where jobs > 1) an operator whose process ends, or that takes longer than `timeout` seconds, is an error of
    that operator alone.
    """
    device = str(check_device(device))
    work = _pieces(ops, with_models)
    part = functools.partial(_card_of, device=device, dtypes=dtypes, columns=columns, capabilities=capabilities or Capabilities())
    card = Card(device, about=_about(device))
    state = cresset.get_rng_state()
    lost = functools.partial(_lost, device=device) if isolated or isolated is None and jobs > 1 else None
    with contextlib.closing(ordered(part, work, jobs, loads, lost, timeout)) as parts:
        for number, (_, name) in enumerate(work):
            if progress:
                progress(number, len(work), name)
            card.add(next(parts))
    cresset.set_rng_state(state)
    return card
