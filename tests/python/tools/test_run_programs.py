"""tools/run_programs without packages: what is compared, the table, and a run of jobs with Cresset on one side."""

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools/run_programs"


@pytest.fixture(scope="module")
def parts():
    """Its modules, by their files: other tools have a `table` too."""
    made = []
    for name in ("compare", "table"):
        spec = importlib.util.spec_from_file_location(f"run_programs_{name}", TOOL / f"{name}.py")
        made.append(importlib.util.module_from_spec(spec))
        spec.loader.exec_module(made[-1])
    return made


def test_numbers_and_words_are_compared(parts):
    compare, _ = parts
    same = [["loss", ["float32", [2], [1.0, 2.0]]], ["text", "a"]]
    assert compare.first_difference(same, same, {}) == ""
    near = [["loss", ["float32", [2], [1.0, 2.001]]], ["text", "a"]]
    assert compare.first_difference(near, same, {}) == "" and "2.001" in compare.first_difference(near, same, {"rtol": 1e-6})
    assert "float64" in compare.first_difference([["loss", ["float64", [2], [1.0, 2.0]]], same[1]], same, {})
    assert "1 answers, PyTorch has 2" in compare.first_difference(same[:1], same, {})
    assert compare.first_difference([], [], {}) == "no values to compare"


def test_printed_lines(parts):
    compare, _ = parts
    text = "epoch 1 loss 2.5e-1\ntook 3.2 s\nFutureWarning: 3\nresult nan"
    assert compare.printed(text, {}) == [["epoch # loss #", [1.0, 0.25]], ["result #", pytest.approx([float("nan")], nan_ok=True)]]
    assert compare.printed("plain words", {"words": True}) == [["plain words", []]]


def test_the_page_keeps_what_stands_around_the_table(parts):
    _, table = parts
    rows = [
        {"id": "packages/a", "group": "packages", "name": "a", "what": "x|y", "verdict": "equal"},
        {"id": "packages/b", "group": "packages", "name": "b", "what": "", "verdict": "fails", "note": "no <thing>"},
        {"id": "packages/c", "group": "packages", "name": "c", "what": "", "verdict": "unfit", "note": ""},
    ]
    page = table.page(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n", rows)
    assert page.startswith("before\n") and page.endswith("after\n") and "old" not in page and "1 of 2; 1 fail with PyTorch 2.13 as well." in page
    assert "| a | x\\|y | equal |  |" in page and "no &lt;thing>" in page and table.page(page, rows) == page


def test_the_manifest_names_what_is_there():
    manifest = tomllib.loads((TOOL / "programs.toml").read_text())
    made_up = (TOOL / "made_up.py").read_text()
    used = set()
    for group, rows in manifest["entries"].items():
        for name, entry in rows.items():
            assert ("job" in entry) != ("run" in entry), (group, name)
            if "job" in entry:
                used.add(entry["job"])
                assert (TOOL / "jobs" / f"{entry['job']}.py").exists(), name
            else:
                assert entry["source"] in manifest["sources"]
            assert all(f"def {data}(" in made_up for data in entry.get("data", ()))
    assert used == {path.stem for path in (TOOL / "jobs").glob("*.py")}
    known = tomllib.loads((TOOL / "known.toml").read_text())
    assert set(known) <= {f"{group}/{name}" for group, rows in manifest["entries"].items() for name in rows}


def test_a_job_runs_with_torch_as_cresset(tmp_path):
    out = tmp_path / "out.json"
    out.write_text("")
    path = os.pathsep.join([str(ROOT / "python"), str(ROOT / "compat/torch/python")])
    command = [sys.executable, TOOL / "worker.py", out, "job", "-", TOOL / "jobs/functorch_tutorials.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    answers = dict(json.loads(out.read_text()))
    assert len(answers) == 9 and answers["ensemble"][:2] == ["float32", [3, 5, 2]]
