"""The score card and the needs of a model as text."""

from .card import COLUMNS, STATUSES

__all__ = ["card_text", "native_text", "needed_text"]

_SHOWN = 10


def _table(head, lines):
    """Columns with aligned numbers; the first is text."""
    rows = [head, *lines]
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(head))]
    return "\n".join("  ".join(f"{cell:<{w}}" if i == 0 else f"{cell:>{w}}" for i, (cell, w) in enumerate(zip(row, widths))) for row in rows)


def card_text(card, verbose=False):
    """Score, a table of the columns, reasons of skips, first failures, and what to write next."""
    counts = card.count()
    tried = sum(counts.values()) - counts["skip"]
    parts = [f"{card.device}: {card.score:.1f} % of {tried} checks of {len(card.states)} operators pass{_CHECKED.get(card.device, '')}\n{native_text(card)}"]
    columns = [(c, card.count(c)) for c in COLUMNS]
    parts.append(_table(("check", *STATUSES), [(c, *(n[s] for s in STATUSES)) for c, n in columns if n]))
    states = [s for s in ("kernel", "derived", "fallback", "missing") if s in card.states.values()]
    parts.append("Operators: " + ", ".join(f"{sum(v == s for v in card.states.values())} {_STATE[s]}" for s in states))
    if card.skips():
        parts.append("Skipped\n" + "\n".join(f"  {n:6}  {reason}" for reason, n in card.skips()))
    failures = card.failures()
    if failures:
        shown = failures if verbose else failures[:_SHOWN]
        lines = [f"  {f.op}  {f.check}  {f.dtype}: {f.reason}" + (f"\n      sample {f.sample}" if f.sample else "") for f in shown]
        more = f"\n  and {len(failures) - len(shown)} more; -v shows all" if len(failures) > len(shown) else ""
        parts.append("Not right\n" + "\n".join(lines) + more)
    if card.needed:
        parts.append(_models_text(card, verbose))
    return "\n\n".join(parts)


# What the score means where it is not what a device computes.
_CHECKED = {"meta": "; shapes, dtypes and devices only, since meta tensors have no values"}


def native_text(card):
    """One sentence: how much of the card the device did itself."""
    count = sum(card.native.values())
    right = round(card.native_share / 100 * len(card.native))
    wrong = f", {count - right} are not right" if count > right else ""
    return (
        f"native: {card.native_share:.1f} % ({right} of {len(card.native)} operators are right without the CPU; "
        f"{len(card.native) - count} need it{wrong})"
    )


_STATE = {"kernel": "with a kernel", "derived": "derived", "fallback": "on the fallback", "missing": "missing"}


def _models_text(card, verbose):
    lines = [(f"  {n.model}", len(n.state), len(n.by_state("kernel")), len(n.by_state("derived")), len(n.lacking)) for n in card.needed]
    text = "Example models\n" + _table(("  model", "operators", "kernel", "derived", "to write"), lines)
    following = card.next_operators()
    if following:
        shown = following if verbose else following[:_SHOWN]
        open_models = {n.model: set(n.lacking) for n in card.needed}
        rows = []
        for name, models, calls in shown:
            for model in models:
                open_models[model].discard(name)
            done = [m for m in models if not open_models[m]]
            rows.append((f"  {name.removeprefix('aten::')}", len(models), calls, "completes " + ", ".join(done) if done else ""))
        more = f"\n  and {len(following) - len(shown)} more; -v shows all" if len(following) > len(shown) else ""
        text += "\n\nNext operators to write\n" + _table(("  operator", "models", "calls", ""), rows) + more
    return text


def needed_text(needed):
    """Four groups: kernels that are there, what is required, what follows from others, what falls back."""
    groups = [("has a kernel", "kernel"), ("required, and missing", "missing"), ("falls back", "fallback"), ("derived, nothing to write", "derived")]
    where = "" if needed.ran_on == needed.device else f", seen on {needed.ran_on}"
    parts = [f"{needed.model} on {needed.device}: {len(needed.state)} operators in one training step{where}"]
    for title, state in groups:
        names = needed.by_state(state)
        if names:
            parts.append(f"{title}: {len(names)}\n" + "\n".join(f"  {needed.calls[n]:6}  {n.removeprefix('aten::')}" for n in names))
    return "\n\n".join(parts)
