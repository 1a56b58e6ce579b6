"""tools/peer_tests: a folder of made-up tests beside a made-up PyTorch gives each cause its row."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

TESTS = '''
import os, signal, time, unittest
import torch
import torch.no_such_module
from torch import tensor, _no_such_name
from torch.nowhere import public_name

CONTROL = hasattr(torch, "the_control")
LOOKED_UP = torch.another_public_name if not CONTROL else None


class TestSmall(unittest.TestCase):
    def test_passes(self):
        self.assertEqual(torch.ones(2).sum().item(), 2)

    @unittest.expectedFailure
    def test_expected_failure(self):
        self.fail()

    def test_a_sample_that_was_expected_to_fail(self):
        for sample in range(2):
            with self.subTest(sample):
                if not CONTROL:
                    self.fail("RuntimeError not raised\\nAssociated xfail rule: rule_of_the_other_one")

    def test_wrong(self):
        self.assertTrue(CONTROL)

    def test_raises(self):
        if not CONTROL:
            torch.ones(2).view(3)

    def test_does_not_raise(self):
        if not CONTROL:
            self.assertRaises(ValueError, lambda: torch.ones(2))

    def test_message(self):
        if not CONTROL:
            with self.assertRaisesRegex(RuntimeError, "words of the other one"):
                torch.ones(2).view(3)

    def test_absent_import(self):
        public_name(2)

    def test_absent_lookup(self):
        self.assertEqual(CONTROL or torch.yet_another.name, True)

    def test_absent_while_loading(self):
        self.assertTrue(CONTROL or LOOKED_UP.thing())

    def test_private(self):
        _no_such_name(2)

    def test_refused_feature(self):
        CONTROL or torch.mkldnn_rnn_layer(2)

    def test_crash(self):
        CONTROL or os.kill(os.getpid(), signal.SIGSEGV)

    def test_exit(self):
        CONTROL or os._exit(3)

    def test_hang(self):
        CONTROL or time.sleep(100)

    def test_fails_there_too(self):
        self.fail()

    @unittest.skipIf(True, "not on this machine")
    def test_skipped_there_too(self):
        pass

    @unittest.skipIf(not CONTROL, "a capability")
    def test_skipped_here_only(self):
        pass

    def test_in_subprocess(self):
        import subprocess, sys
        subprocess.run([sys.executable, "-c", "import torch; torch.ones(2)"], check=True)
'''

PEER = """
import sys
the_control = True
class Anything:
    def __getattr__(self, name):
        return lambda *args: self
    def item(self):
        return 2
def ones(*sizes):
    return Anything()
def tensor(*values):
    return Anything()
def public_name(number):
    pass
_no_such_name = public_name
import torch.no_such_module, torch.nowhere
"""

CAUSES = {"wrong": 1, "raises": 2, "message": 1, "absent": 5, "private": 1, "crash": 2, "hang": 1}


@pytest.fixture
def folders(tmp_path):
    peer = tmp_path / "site/torch"
    (peer / "testing").mkdir(parents=True)
    (peer / "__init__.py").write_text(PEER)
    (peer / "testing/__init__.py").write_text("")
    (peer / "no_such_module.py").write_text("")
    (peer / "nowhere.py").write_text("from torch import public_name")
    tests = tmp_path / "test"
    tests.mkdir()
    (tests / "test_small.py").write_text(TESTS)
    return tests, tmp_path / "site"


def run(tests, site, *options):
    report = tests.parent / "report.json"
    done = subprocess.run(
        [sys.executable, ROOT / "tools/peer_tests", tests, "--python", sys.executable, "--json", report, "--seconds", "5", "--control-cache", tests.parent / "control.json",
         *options],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(site)}, timeout=120,
    )  # fmt: skip
    return done, json.loads(report.read_text())


def table(text):
    """{column: number} of the last line of the table."""
    lines = text.splitlines()
    columns = lines[0].split()
    values = next(line for line in lines if line.startswith("total")).split()[1:]
    return dict(zip(columns, values))


def test_each_cause_is_told_from_the_others(folders):
    done, found = run(*folders, "--files", "test_small.py", "--classes", "5")
    assert done.returncode == 1, done.stderr
    total = table(done.stdout)
    assert {cause: int(total[cause]) for cause in CAUSES} == CAUSES, done.stdout
    assert (total["tests"], total["run"], total["eligible"], total["passed"]) == ("19", "19", "17", "4")
    results = found["test_small.py"]["results"]
    assert results["TestSmall.test_crash"]["message"] == "ended by SIGSEGV"
    assert results["TestSmall.test_exit"]["message"] == "exited with 3"
    assert results["TestSmall.test_hang"]["message"] == "no end after 5 s"
    assert results["TestSmall.test_fails_there_too"]["not_eligible"] == "fail"
    assert "torch.another_public_name" in found["test_small.py"]["absent"]
    assert "NotImplementedError: mkldnn_rnn_layer" in done.stdout


def test_a_sample_is_the_same_each_time_and_the_control_is_remembered(folders):
    _, first = run(*folders, "--files", "*.py", "--sample", "4", "--only", "wrong|raise|message|passes|private")
    (folders[1] / "torch/__init__.py").write_text("raise ImportError")
    done, second = run(*folders, "--files", "*.py", "--sample", "4", "--only", "wrong|raise|message|passes|private")
    assert len(first["test_small.py"]["results"]) == 4
    assert list(first["test_small.py"]["results"]) == list(second["test_small.py"]["results"])
    assert "so there is no control" in done.stdout


def test_a_file_that_does_not_load_loses_all_the_tests_of_the_control(folders):
    tests, site = folders
    (tests / "test_broken.py").write_text(
        "import torch, unittest\nif not hasattr(torch, 'the_control'): torch.ones(2).view(3)\n"
        "class TestBroken(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): pass\n    def test_c(self): self.fail()\n"
    )
    done, found = run(tests, site, "--files", "test_broken.py")
    assert "did not load" in done.stdout and table(done.stdout)["raises"] == "2"


def test_what_does_not_exist_is_said(folders):
    done = subprocess.run([sys.executable, ROOT / "tools/peer_tests", folders[0], "--files", "test_none.py"], capture_output=True, text=True)
    assert done.returncode and "has no test_none.py" in done.stderr


def test_functions_of_a_file_that_was_rewritten_have_the_instructions_of_its_source(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools/peer_tests"))
    absent = importlib.import_module("absent")
    text = "import torch\nfrom torch import nn\n\ndef f(x):\n    return torch.clamp(nn.functional(x), 0)\n"

    def function(code):
        return next(c for c in code.co_consts if getattr(c, "co_name", "") == "f")

    assert function(absent.compiled(text, "file.py", "")) == function(compile(text, "file.py", "exec"))
