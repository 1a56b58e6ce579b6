"""Kernels read and write inside of their tensors: every argument ends, or begins, at a page without access.

One process runs everything, so a fault ends it: the test reports the call that it died in.
"""

import ctypes
import mmap
import os
import subprocess
import sys
import tomllib
from pathlib import Path


HERE = Path(__file__).resolve().parent
PAGE = mmap.PAGESIZE
# Their samples' results differ from call to call, or are the argument's address.
UNSTABLE = {"data_ptr"}


def guarded_bytes(size, at_end):
    """`size` bytes with a page that cannot be touched right behind them, or right before."""
    pages = max(1, -(-size // PAGE))
    block = mmap.mmap(-1, (pages + 2) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(block))
    libc = ctypes.CDLL(None, use_errno=True)
    for page in (0, pages + 1):
        if libc.mprotect(ctypes.c_void_p(start + page * PAGE), PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    first = PAGE + (pages * PAGE - size if at_end else 0)
    return (ctypes.c_char * size).from_buffer(block, first)


def guarded(t, at_end):
    """A tensor of the same values, contiguous, in guarded memory."""
    import cresset

    t = t.detach()
    if t.numel() == 0:
        return t.clone()
    memory = guarded_bytes(t.numel() * t.element_size(), at_end)
    flat = cresset.frombuffer(memory, dtype=cresset.uint8).view(t.dtype)
    return flat.copy_(t.reshape(-1)).view(t.shape)


def all_calls():
    """(name, row, call) of the table's samples and of the cases beside this file."""
    import op_samples
    from cresset.testing import samples

    for row in op_samples.rows():
        for index, call in row.calls():
            yield f"{row.id}({row['samples'][index]})", row, call
    names = {r.id: r for r in op_samples.rows()}
    table = op_samples.operators()
    forms = {op_samples.qualified(r): r for r in table}
    for operators in tomllib.loads((HERE / "guard_cases.toml").read_text()).values():
        for name, texts in operators.items():
            row = names.get(name) or samples.Row(forms[f"aten::{name}"], forms)
            for text in texts:
                maker = samples.Maker(f"{name} {text}")
                args, kwargs = eval(f"_({text})", {"_": lambda *a, **k: (a, k)} | maker.names())
                yield f"{name}({text})", row, samples.Call(args, kwargs).map(lambda t: t.detach())


def run_all(progress):
    import cresset
    from op_samples import array, flat

    problems, count = [], 0
    with cresset.no_grad():
        for name, row, call in all_calls():
            if row.random or row.id in UNSTABLE:
                continue
            for dtype in (None, cresset.float32):
                given = call if dtype is None else call.map(lambda t: t.float() if t.dtype == cresset.float64 else t)
                for at_end in (True, False):
                    progress(f"{name} {'end' if at_end else 'begin'}")
                    want = error = None
                    plain = given.map(lambda t: t.detach().clone())
                    try:
                        want = flat(row.op()(*plain.args, **plain.kwargs))
                    except (RuntimeError, IndexError, ValueError) as caught:
                        error = caught
                    edged = given.map(lambda t, at_end=at_end: guarded(t, at_end))
                    try:
                        have = flat(row.op()(*edged.args, **edged.kwargs))
                    except (RuntimeError, IndexError, ValueError) as caught:
                        if type(caught) is not type(error):
                            problems.append(f"{name}: {type(caught).__name__}: {caught}")
                        continue
                    count += 1
                    same = want is not None and all(
                        a.dtype == b.dtype and cresset.allclose(a.double() if not a.is_complex() else a, b.double() if not b.is_complex() else b, equal_nan=True)
                        for a, b in zip(have, want)
                    )
                    if not same and "empty" not in row.id:
                        problems.append(f"{name}: {[array(t).tolist() for t in have]}, wanted {want and [array(t).tolist() for t in want]}")
                    if row.out and row.out["returns"] and not row["view"] and want:
                        known = {a["name"] for a in row.out["arguments"]}
                        outs = {a["name"]: guarded(t, at_end) for a, t in zip((a for a in row.out["arguments"] if a["write"]), want)}
                        if len(outs) == len(want):
                            kwargs = {k: v for k, v in edged.kwargs.items() if k in known}
                            row.op(row.out)(*edged.args, **kwargs, **outs)
    return count, problems


def other_sizes(t):
    """Tensors that do not fit where t does: empty, of one element, shorter, with fewer dimensions."""
    t = t.detach()
    yield "empty", t.reshape(-1)[:0].clone()
    if t.numel() > 1:
        yield "one element", t.reshape(-1)[:1].clone()
    if t.dim() and t.shape[-1] > 1:
        yield "shorter", t.narrow(-1, 0, t.shape[-1] - 1).clone()
    if t.dim() and t.shape[0] > 1:
        yield "less", t[1:].clone()


def run_mismatched(progress):
    """Every call with one argument of another size: an error, or a result, but nothing outside is read."""
    import cresset

    count = 0
    with cresset.no_grad():
        for name, row, call in all_calls():
            for number, t in enumerate(call.tensors()):
                for what, other in other_sizes(t):
                    places = iter(range(1000))
                    given = call.map(lambda x, other=other, number=number, places=places: guarded(other if next(places) == number else x, True))
                    progress(f"{name}: argument {number} is {what}")
                    try:
                        row.op()(*given.args, **given.kwargs)
                    except Exception:  # which one is not the question here
                        pass
                    count += 1
    return count, []


def finished(kind, tmp_path):
    file = tmp_path / "progress"
    done = subprocess.run([sys.executable, "-X", "faulthandler", __file__, kind, str(file)], capture_output=True, text=True, timeout=600)
    at = file.read_text().strip() if file.exists() else ""
    assert done.returncode == 0, f"ended with {done.returncode} in {at}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return int(done.stdout.split()[0])


def test_nothing_outside_is_touched(tmp_path):
    assert finished("fitting", tmp_path) > 3000


def test_nothing_outside_is_touched_beside_arguments_of_other_sizes(tmp_path):
    assert finished("mismatched", tmp_path) > 3000


def test_guard_pages_guard():
    """A read behind a guarded tensor ends the process."""
    code = "import test_guard_pages as g, ctypes; m = g.guarded_bytes(8, True); ctypes.string_at(ctypes.addressof(m) + 8, 1)"
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, env={**os.environ, "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:handle_segv=0"})
    assert done.returncode == -11


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    progress = open(sys.argv[2], "w")

    def note(text):
        progress.seek(0)
        progress.write(text.ljust(300))
        progress.flush()

    number, found = (run_all if sys.argv[1] == "fitting" else run_mismatched)(note)
    print(number, "calls", *found, sep="\n")
    sys.exit(1 if found else 0)
