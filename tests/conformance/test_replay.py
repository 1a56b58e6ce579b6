"""One test for each recorded verdict. known_failures.toml lists the ones that fail today, and they have to fail."""

import known
import pytest
import records
import replay

KNOWN = known.read()
VERDICTS = [v for v in records.calls() if v not in records.quarantine()]


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda v: f"{v[0]}-{v[1]}")
def test_verdict(verdict, count):
    outcome = replay.replay(verdict)
    for line in (replay.family(verdict[0]), "total"):
        count("conformance with recorded calls", line, passed=int(outcome.passed), verdicts=1)
    if verdict in KNOWN:
        assert not outcome.passed, f"passes, but known_failures.toml lists it: {KNOWN[verdict]}"
    else:
        assert outcome.passed, "\n".join([*outcome.problems, *outcome.gradient_problems])


def test_known_failures_name_verdicts():
    assert set(KNOWN) <= set(VERDICTS)
    assert all(KNOWN.values())


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda r: r * 1.01, "out0 value: max abs diff"),
        (lambda r: r[:0], "out0 shape: want"),
        (lambda r: r.float(), "out0 dtype: want float64"),
        (lambda r: (r, r), "2 results, want 1"),
        (lambda r: 1.0, "out0 type: want tensor, got float"),
        (lambda r: r.detach() + (r - r.detach()) * 2, "grad0 value: max abs diff"),
    ],
)
def test_a_difference_is_found(monkeypatch, change, difference):
    real = records.function
    monkeypatch.setattr(records, "function", lambda name: lambda *args: change(real(name)(*args)))
    assert difference in replay.replay(("sinc", "float64")).first


def test_a_missing_error_is_found(monkeypatch):
    monkeypatch.setattr(records, "function", lambda name: lambda *args, **kwargs: None)
    verdict = next(v for v in VERDICTS if v[1] == "errors" and v not in KNOWN)
    assert replay.replay(verdict).first.startswith("#0 no ")


def test_known_failures_keep_reasons_written_by_hand(monkeypatch, tmp_path):
    monkeypatch.setattr(known, "FILE", tmp_path / "known.toml")
    known.write({("a", "int64"): "#0 out0 value: integer results differ", ("b", "int64"): "#0 setup AttributeError: b"})
    assert known.read() == {("a", "int64"): "auto: other values", ("b", "int64"): "auto: no such operator yet"}
    known.FILE.write_text(known.FILE.read_text().replace("auto: other values", r"the \"answer\" is another one"))
    known.write({("a", "int64"): "#0 raised ValueError: no", ("b", "int64"): None})
    assert known.read() == {("a", "int64"): 'the "answer" is another one'}
