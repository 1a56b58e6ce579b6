"""Runs PyTorch's own Python tests against Cresset: `make peer-tests TESTS=<folder of PyTorch's test/>`, docs/guide/peer-tests.md.

Each file is a process, each test a fork of it. What fails is run with a real PyTorch, too, when CRESSET_ORACLE_PYTHON names an interpreter
that has one: a test that fails or is skipped there as well is not eligible. Prints a table by file and cause. The exit status is 1 when a
test that is eligible crashes, hangs or has a wrong result.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import json
import re
import subprocess
import sys
import threading
import tomllib
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import causes
import runs

# Files that weigh most: what programs use and extensions build on.
FILES = """
test_autograd.py autograd/*.py test_jit.py jit/test_*.py functorch/test_eager_transforms.py functorch/test_vmap.py test_nn.py nn/test_*.py test_modules.py
test_python_dispatch.py test_custom_ops.py test_torch.py test_view_ops.py test_linalg.py test_serialization.py test_subclass.py
test_overrides.py test_pytree.py profiler/test_profiler.py test_autocast.py test_indexing.py test_optim.py test_reductions.py
test_type_promotion.py test_tensor_creation_ops.py test_shape_ops.py test_sort_and_select.py test_unary_ufuncs.py test_binary_ufuncs.py
test_scatter_gather_ops.py test_segment_reductions.py test_spectral_ops.py test_complex.py test_dispatch.py test_dataloader.py
test_dlpack.py test_numpy_interop.py test_fake_tensor.py test_foreach.py test_function_schema.py test_functionalization.py
test_masked.py test_meta.py test_multiprocessing.py test_namedtuple_return_api.py test_ops.py test_ops_fwd_gradients.py
test_ops_gradients.py test_ops_jit.py test_per_overload_api.py test_stateless.py test_testing.py test_transformers.py test_utils.py
test_autograd_fallback.py test_native_mha.py test_type_info.py distributions/test_*.py test_weak.py test_flop_counter.py
distributed/test_store.py distributed/test_c10d_*.py distributed/test_pg_wrapper.py distributed/test_multi_threaded_pg.py distributed/test_fake_pg.py
distributed/test_collective_utils.py distributed/test_control_collectives.py distributed/test_backends.py distributed/test_launcher.py
distributed/launcher/*.py distributed/elastic/*/*_test.py distributed/elastic/*/*/*_test.py distributed/elastic/*/*/*/*_test.py
""".split()


def names_of(options) -> list[str]:
    """Files to run, relative to the folder of tests."""
    found: list[str] = []
    for pattern in options.files or FILES:
        matches = sorted(str(p.relative_to(options.tests)) for p in options.tests.glob(pattern) if p.suffix == ".py" and p.name != "__init__.py")
        if options.files and not matches:
            sys.exit(f"peer-tests: {options.tests} has no {pattern}.")
        found += [m for m in matches if m not in found]
    if not found:
        sys.exit(f"peer-tests: {options.tests} has none of the files; TESTS= names PyTorch's folder test/.")
    return found


def helpers_of(options) -> list[Path]:
    """The folders that hold torch/testing: the tests' own source tree, and for what that lacks (files made by a build) an installed PyTorch."""
    found = subprocess.run([str(options.python), "-c", "import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))"],
                           capture_output=True, text=True, env=runs.environment("torch"))  # fmt: skip
    places = [options.tests.parent, Path(found.stdout.strip() or "/nowhere")]
    return [place for place in places if (place / "torch/testing/_internal/common_utils.py").exists()]


class Control:
    """Answers of the real PyTorch, kept between runs: they do not change."""

    def __init__(self, options):
        self.options, self.path, self.lock = options, options.control_cache, threading.Lock()
        self.known = json.loads(self.path.read_text()) if self.path.exists() else {}

    def answers(self, file: str, ids: list[str] | None) -> dict[str, str]:
        """{id: "pass", "fail", "skip", ..., "none" for a test that the control does not have}. ids None: the sample that it chooses itself."""
        key = f"{self.options.tests.resolve()}/{file}"
        with self.lock:
            known = self.known.setdefault(key, {})
        new = None if ids is None else [i for i in ids if i not in known]
        if new is None or new:
            said = runs.run_file(self.options.python, "torch", file, self.options, new)
            found = {i: answer["outcome"] for i, answer in said["results"].items()}
            missing = [] if new is None else [i for i in new if i not in found]
            if "load" in said:
                print(f"peer-tests: the control does not load {file}: {said['load']['message'][:200]}", file=sys.stderr)
            elif "ended" not in said:
                found |= {i: "none" for i in missing}
            ids = ids if ids is not None else list(found)
            with self.lock:
                known |= found
                self.save()
        return {i: known.get(i, "none") for i in ids or ()}

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.known))
        new.replace(self.path)


def known_failures() -> dict[str, str]:
    """{pattern of `file::Class.method`: reason}."""
    return tomllib.loads((Path(__file__).parent / "known.toml").read_text())


def judge(file: str, options, control: Control | None) -> dict:
    """{tests, results: {id: answer with `cause` where an eligible test failed}, load?} of a file."""
    said = runs.run_file(options.python, "cresset", file, options)
    results = said["results"]
    if "load" in said:
        # Without the file none of its tests runs; which there are, the control knows.
        results = said["results"] = {i: dict(said["load"]) for i, answer in (control.answers(file, None) if control else {}).items() if answer == "pass"}
        said["tests"] = len(results)
    failed = [i for i, answer in results.items() if answer["outcome"] != "pass"]
    judged = control.answers(file, failed) if control else {}
    known = known_failures()
    for name in failed:
        answer = results[name]
        if any(fnmatch.fnmatchcase(f"{file}::{name}", pattern) for pattern in known):
            answer["not_eligible"] = "known"
            continue
        eligible = judged.get(name) == "pass" if control else answer["outcome"] != "skip"
        if eligible:
            answer["cause"] = causes.cause(answer)
        else:
            answer["not_eligible"] = judged.get(name, "skipped")
    return said


def counts(said: dict) -> Counter:
    line: Counter = Counter()
    for answer in said["results"].values():
        line["run"] += 1
        if answer["outcome"] == "pass" or "cause" in answer:
            line["eligible"] += 1
            line["passed" if answer["outcome"] == "pass" else answer["cause"]] += 1
    line["tests"] = said["tests"]
    line["not run"] = len([i for i in said["chosen"] if i not in said["results"]])
    return line


def report(found: dict[str, dict], options) -> Counter:
    """Prints the table; its last line."""
    columns = ("tests", "run", "eligible", "passed", "%", *causes.CAUSES)
    width = max([len(f) for f in found] + [5])
    print(f"{'':{width}}" + "".join(f"{c:>9}" for c in columns))
    total: Counter = Counter()
    for name, line in [*((f, counts(said)) for f, said in sorted(found.items())), ("total", total)]:
        if line is not total:
            total.update(line)
        percent = f"{100 * line['passed'] / line['eligible']:.1f}" if line["eligible"] else "-"
        note = f"  {line['not run']} not run" if line["not run"] else ""
        note += f"  did not load: {found[name]['load']['message'][:90]!r}" if "load" in found.get(name, {}) else ""
        print(f"{name:{width}}" + "".join(f"{percent if c == '%' else line[c]:>9}" for c in columns) + note)
    known = sum(answer.get("not_eligible") == "known" for said in found.values() for answer in said["results"].values())
    if known:
        print(f"{known} that differ on purpose (known.toml) are not counted.")
    rest = total["eligible"] - total["private"]
    if rest:
        print(f"{total['passed']} of {total['eligible']} eligible tests pass, {100 * total['passed'] / rest:.1f} % without private names.")
    return total


def print_classes(found: dict[str, dict], most: int) -> None:
    """What the failures have in common: their first lines without numbers, most frequent first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for file, said in found.items():
        for name, answer in said["results"].items():
            if "cause" in answer:
                words = causes.missing_name(answer) or f"{answer.get('type', '')}: {answer.get('message', '').strip()}".split("\n")[0]
                words = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e-?\d+)?", "N", words)[:150]
                groups.setdefault((answer["cause"], words), []).append(f"{file}::{name}")
    for (cause, words), names in sorted(groups.items(), key=lambda item: -len(item[1]))[:most]:
        print(f"{len(names):5} {cause:8} {words}\n{'':15}{names[0]}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="peer-tests", description=__doc__.split("\n")[0])
    parser.add_argument("tests", type=Path, help="PyTorch's folder test/, or one of that form")
    parser.add_argument("--files", nargs="+", metavar="GLOB", help="files below it (default: those that weigh most)")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="at most N tests of a file, always the same (default: all)")
    parser.add_argument("--seed", default="", metavar="WORD", help="another sample: the same for the same word")
    parser.add_argument("--only", default="", metavar="REGEX", help="tests whose Class.method contains a match")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all answers")
    parser.add_argument("--classes", type=int, default=0, metavar="N", help="print the N most frequent failures")
    parser.add_argument("-j", "--jobs", type=int, default=2, metavar="N", help="files at a time (default 2)")
    parser.add_argument("--seconds", type=float, default=60, help="limit of a test (default 60)")
    parser.add_argument("--file-seconds", type=float, default=1800, help="limit of a file (default 1800)")
    parser.add_argument("--python", type=Path, default=runs.default_python(), help="interpreter for both sides (default: CRESSET_ORACLE_PYTHON)")
    parser.add_argument("--no-control", action="store_true", help="do not ask a real PyTorch; every test that is not skipped is eligible")
    parser.add_argument("--control-cache", type=Path, default=runs.ROOT / "build/peer_tests/control.json", metavar="FILE")
    options = parser.parse_args()
    options.tests = options.tests.resolve()
    files = names_of(options)
    options.helpers = helpers_of(options)
    control = None if options.no_control else Control(options)
    if control and not runs.has_torch(options.python):
        print(f"peer-tests: {options.python} has no torch, so there is no control: every test that is not skipped is eligible.")
        control = None
    found = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(judge, file, options, control): file for file in files}
        for done in concurrent.futures.as_completed(running):
            found[running[done]] = done.result()
            if options.json:
                options.json.write_text(json.dumps(found, indent=1))
            if sys.stderr.isatty():
                print(f"{len(found)} of {len(files)} files", end="\r", file=sys.stderr)
    total = report(found, options)
    if options.classes:
        print_classes(found, options.classes)
    return 1 if any(total[c] for c in ("wrong", "crash", "hang")) else 0


if __name__ == "__main__":
    sys.exit(main())
