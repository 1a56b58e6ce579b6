"""A card over several processes is the card of one."""

import json
import re

import pytest

# Ends the process at the first sine, or keeps it.
DEADLY = """
import os
import time

from cresset.library import Library

library = Library("aten", "IMPL")
library.impl("sin.out", lambda x, *, out: {end}, "PrivateUse1")
"""

PART = ["--ops", "^(relu|sin|add[.]Tensor|bernoulli|view)$", "--dtypes", "float32,int64"]


def test_the_card_is_the_same(conform, wrong_relu, tmp_path):
    """As data, as text, as a page, and in the scripts that reproduce what is wrong, which lie under the same names."""
    found = []
    for jobs in ("1", "3"):
        folder = tmp_path / jobs
        output = ["--html", folder / "card.html", "--reproduce", folder / "scripts"]
        folder.mkdir()
        data = conform(*PART, *output, "--json", "--jobs", jobs, load=[conform.tin, wrong_relu])
        assert conform.status == 1 and '"status": "wrong"' in data
        text = conform(*PART, "-j", jobs, load=[conform.tin, wrong_relu])
        scripts = {p.name: p.read_bytes() for p in sorted((folder / "scripts").iterdir())}
        assert list(scripts) == ["wrong_relu.py"]
        dated = [re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", "DATE", t) for t in (data.replace(str(folder), ""), (folder / "card.html").read_text())]
        found.append((*dated, text, scripts))
    assert found[0] == found[1]


def test_order_of_the_whole_list(conform):
    """More work than processes, extra checks and models behind the operators."""
    arguments = ["--dtypes", "float32", "--checks", "file,random,stream", "--json"]
    one, two = (json.loads(conform(*arguments, "-j", jobs)) for jobs in ("1", "2"))
    assert one.pop("about")["date"] <= two.pop("about")["date"]
    assert one == two


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("end, how", [("os._exit(3)", "the process ended with status 3"), ("os.abort()", "the process ended by SIGABRT"),
                                      ("time.sleep(1000)", "it did not end within 5 s")])
def test_a_process_that_ends(conform, tmp_path, jobs, end, how):
    """It costs the operator it was at, which is named, and nothing else."""
    (tmp_path / "deadly.py").write_text(DEADLY.format(end=end))
    timeout = ["--timeout", "5"] if "sleep" in end else []
    card = json.loads(conform(*PART, "--no-models", "-j", jobs, *timeout, "--json", load=[conform.tin, tmp_path / "deadly.py"]))
    assert conform.status == 1
    wrong = [r for r in card["results"] if r["status"] not in ("pass", "skip")]
    assert [(r["op"], r["check"], r["dtype"], r["status"], r["reason"]) for r in wrong] == [("sin", "forward", "float32", "error", how)]
    assert {r["op"] for r in card["results"] if r["status"] == "pass"} >= {"relu", "add.Tensor", "view"}


def test_backends_that_do_not_load(conform, tmp_path):
    """A process that ends before its first operator is no operator's fault."""
    (tmp_path / "deadly.py").write_text("import multiprocessing, os\nif multiprocessing.parent_process():\n    os._exit(4)\n")
    conform(*PART, "--no-models", load=[conform.tin, tmp_path / "deadly.py"])
    assert conform.status == 2
    assert conform.err.startswith("cresset conform: the process ended with status 4 while it loaded the backends.\n")


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "1.5"])
def test_number_of_processes(conform, jobs):
    conform(f"--jobs={jobs}", device="cpu", load=[])
    assert conform.status == 2 and f"--jobs: a number of processes, at least 1, was required; {jobs} was given" in conform.err
