"""A card over several processes is the card of one."""

import pytest

# Ends the process at the first sine.
DEADLY = """
import os

from cresset.library import Library

library = Library("aten", "IMPL")
library.impl("sin.out", lambda x, *, out: os._exit(3), "PrivateUse1")
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
        found.append((data.replace(str(folder), ""), text, (folder / "card.html").read_text(), scripts))
    assert found[0] == found[1]


def test_order_of_the_whole_list(conform):
    """More work than processes, extra checks and models behind the operators."""
    arguments = ["--dtypes", "float32", "--checks", "file,random,stream", "--json"]
    assert conform(*arguments, "-j", "2") == conform(*arguments)


def test_a_process_that_ends(conform, tmp_path):
    (tmp_path / "deadly.py").write_text(DEADLY)
    conform(*PART, "--no-models", "-j", "2", load=[conform.tin, tmp_path / "deadly.py"])
    assert conform.status == 2
    assert conform.err == ("cresset conform: a process of the card ended before its work was done.\n"
                           "Next: run with --jobs 1 --verbose, which names the operator\n")


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "1.5"])
def test_number_of_processes(conform, jobs):
    conform(f"--jobs={jobs}", device="cpu", load=[])
    assert conform.status == 2 and f"--jobs: a number of processes, at least 1, was required; {jobs} was given" in conform.err
