"""`cresset lower`: passes on IR text and archives, messages, pages."""

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

import cresset
from cresset import _C

COMMAND = Path(__file__).resolve().parents[2] / "build/dev/bin/cresset"
pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")

LINEAR = """graph(%x : Float(2, 3), %w : Float(4, 3), %b : Float(4)):
  %one : int = prim::Constant[value=1]()
  %wt : Tensor = aten::t(%w)
  %y : Tensor = aten::addmm(%b, %x, %wt, %one, %one)
  return (%y)
"""
CHECK = """graph(%x : Tensor, %bad : bool):
  %m : str = prim::Constant[value="bad input"]()
   = prim::If(%bad) # model.py:3:4
    block0():
       = prim::RaiseException(%m) # model.py:4:8
      -> ()
    block1():
      -> ()
  %r : Tensor = aten::relu(%x)
  return (%r)
"""


def lower(*arguments, text=None):
    return subprocess.run([COMMAND, "lower", *arguments], input=text, capture_output=True, text=True, timeout=120)


def test_one_pass():
    done = lower("--pass", "fuse-linear", text=LINEAR)
    assert done.returncode == 0, done.stderr
    graph = _C.parse_ir(done.stdout)
    assert "aten::linear(%x, %w, %b)" in done.stdout and "addmm" not in str(graph)
    assert done.stderr == ""


def test_the_phase_and_its_log():
    done = lower("--log", "graph", text=CHECK)
    assert done.returncode == 0, done.stderr
    headings = re.findall(r"^# after (\d+) (\w+) \((changed|unchanged)\)$", done.stderr, flags=re.M)
    assert [name for _, name, _ in headings] == _C._jit_lowering_passes()
    assert [int(index) for index, _, _ in headings] == list(range(len(headings)))
    # Each dump reads back; the last one is the result.
    dumps = re.split(r"^(?=# after )", done.stderr, flags=re.M)[1:]
    texts = [re.sub(r"^\[Cresset\].*\n", "", dump, flags=re.M) for dump in dumps]
    assert all(_C.parse_ir(text) for text in texts)
    assert str(_C.parse_ir(texts[-1])) == str(_C.parse_ir(done.stdout))


@pytest.mark.parametrize("level, wanted", [("error", False), ("warning", True), ("info", True)])
def test_levels(level, wanted):
    done = lower("--log", level, text=CHECK)
    assert ("warning: model.py:4:8: removed a check that raises 'bad input'" in done.stderr) == wanted
    assert "# after" not in done.stderr


def test_filters():
    done = lower("--log", "graph", "--dump-before", "cse", "--dump-after", "dce", text=LINEAR)
    assert set(re.findall(r"^# (before|after) \d+ (\w+)", done.stderr, flags=re.M)) == {("before", "cse"), ("after", "dce")}


def test_stop_only_disable():
    stopped = lower("--stop-after", "fuse-linear", text=LINEAR).stdout
    assert "aten::linear" in stopped
    assert "aten::addmm" in lower("--stop-after", "peephole-optimize", text=LINEAR).stdout
    assert "aten::linear" in lower("--only", "fuse-linear", text=LINEAR).stdout
    assert "aten::addmm" in lower("--only", "peephole-optimize", text=LINEAR).stdout
    assert "aten::addmm" in lower("--stop-after", "fuse-linear", "--disable", "fuse-linear", text=LINEAR).stdout


def test_lists():
    names = {line.split()[0] for line in lower("--list").stdout.splitlines()}
    seed = """eliminate-common-subexpression eliminate-dead-code eliminate-exception-or-pass-pattern eliminate-redundant-guards freeze-module
        fuse-addmm-branches fuse-linear fuse-flatten-linear lower-graph lower-simple-tuples lower-all-tuples notate-module-for-fallback
        mark-nodes-for-fallback peephole-optimize remove-contiguous remove-dropout remove-to unpack-addmm unpack-log-softmax unroll-loops
        replace-tile-with-repeat"""
    assert set(seed.split()) <= names
    assert "assume_inference" in lower("--list-options").stdout


def test_options():
    assert "prim::If" in lower("--option", "remove_checks=0", text=CHECK).stdout
    assert "prim::If" not in lower(text=CHECK).stdout
    done = lower("--option", "no_such=1", text=CHECK)
    assert done.returncode == 1 and "there is no lowering option 'no_such'" in done.stderr


def test_errors_have_places(tmp_path):
    file = tmp_path / "bad.ir"
    file.write_text("graph(%x : Tensor):\n  %y = aten::relu(%z)\n  return (%y)\n")
    done = lower("--pass", "dce", str(file))
    assert done.returncode == 1 and done.stdout == ""
    assert re.search(re.escape(str(file)) + r":2:\d+: ", done.stderr)
    for arguments, words in (
        (("--pass", "nothing"), "there is no pass 'nothing'"),
        (("--stop-after", "unroll-loops"), "is not among the passes that run"),
        (("--log", "loud"), "log level: one of internal_error, error, warning, info, debug, graph was required; 'loud' was given"),
        (("--pass", "freeze-module"), "a module is required; IR text was given"),
    ):
        done = lower(*arguments, text=LINEAR)
        assert done.returncode == 1 and words in done.stderr, done.stderr
    assert "cannot be read" in lower(str(tmp_path / "none.ir")).stderr


def test_check_and_bisect():
    inputs = ["--input", "float32[2,3]", "--input", "float32[4,3]", "--input", "float32[4]"]
    done = lower("--check", *inputs, text=LINEAR)
    assert done.returncode == 0, done.stderr
    done = lower("--bisect", *inputs, text=LINEAR)
    assert done.returncode == 0 and "no pass changes the answer" in done.stdout
    # Taking the arm that does not raise changes the answer where it does raise.
    done = lower("--bisect", "--input", "float32[2]", "--input", "true", text=CHECK)
    assert done.returncode == 1 and "eliminate_exceptions_safe: " in done.stdout


class Net(cresset.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = cresset.nn.Linear(3, 4)
        self.drop = cresset.nn.Dropout(0.5)

    def forward(self, x):
        return cresset.relu(self.drop(self.fc(x)))


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "net.pt"
    cresset.jit.save(cresset.jit.script(Net().eval()), str(path))
    return path


def test_archive(archive):
    done = lower("--no-constants", str(archive))
    assert done.returncode == 0, done.stderr
    assert "prim::CallMethod" not in done.stdout and "prim::GetAttr" not in done.stdout and "aten::relu" in done.stdout
    frozen = lower("--pass", "freeze-module", str(archive))
    assert "prim::Constant[value=<Tensor" in frozen.stdout and "graph(%self" in frozen.stdout
    lowered = lower("--pass", "lower-graph", str(archive))
    assert '%"self.fc.weight"' in lowered.stdout or "%self.fc.weight" in lowered.stdout


class Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.outside = []

    def handle_starttag(self, tag, attributes):
        self.outside += [v for k, v in attributes if k in ("src", "href")]


def test_page_is_whole(tmp_path):
    page = tmp_path / "page.html"
    source = CHECK.replace("bad input", "</script><b>")
    assert lower("--html", str(page), text=source).returncode == 0
    text = page.read_text()
    outline = Outline()
    outline.feed(text)
    assert outline.outside == [] and "http" not in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert [step["name"] for step in data["steps"]] == [p.replace("_", "-") if p not in TITLES else TITLES[p] for p in _C._jit_lowering_passes()]
    changed = next(step for step in data["steps"] if step["changed"])
    assert data["texts"][changed["before"]] != data["texts"][changed["after"]]
    assert any("removed a check" in note for step in data["steps"] for note in step["notes"])


TITLES = {row[0]: row[3] for row in _C._jit_passes()}


def test_page_in_a_browser(tmp_path, open_page):
    page = tmp_path / "page.html"
    assert lower("--html", str(page), text=CHECK).returncode == 0
    document = open_page(page)
    assert "eliminate-exceptions-safe (changed)" in document
    before = re.search(r'<pre id="before">(.*?)</pre>', document, re.S)[1]
    after = re.search(r'<pre id="after">(.*?)</pre>', document, re.S)[1]
    assert 'class="gone"' in before and "prim::If" in before
    assert "prim::If" not in after and "aten::relu" in after
    assert "removed a check that raises 'bad input'" in re.search(r"<header>(.*?)</header>", document, re.S)[1]
    assert 'aria-current="step"' in document


# ---- folders, JSON, differences


def write_folder(folder):
    (folder / "inner").mkdir(parents=True)
    (folder / "a.ir").write_text(LINEAR)
    (folder / "inner" / "b.ir").write_text(CHECK)
    (folder / "notes.txt").write_text("no graph")


def test_a_folder_in_one_process(tmp_path):
    write_folder(tmp_path / "graphs")
    done = lower("--pass", "fuse-linear", tmp_path / "graphs")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^# (.*)$", done.stdout, flags=re.M) == [str(tmp_path / "graphs/a.ir"), str(tmp_path / "graphs/inner/b.ir")]
    assert done.stdout.count("aten::linear") == 1
    done = lower("--pass", "fuse-linear", tmp_path / "graphs", "--output", tmp_path / "out")
    assert done.returncode == 0 and done.stdout == ""
    assert "aten::linear" in (tmp_path / "out/a.ir").read_text() and "aten::relu" in (tmp_path / "out/inner/b.ir").read_text()


def test_a_folder_with_a_bad_file(tmp_path):
    write_folder(tmp_path / "graphs")
    (tmp_path / "graphs" / "a.ir").write_text("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%z)\n  return (%y)\n")
    done = lower(tmp_path / "graphs", "--format", "json")
    assert done.returncode == 1 and "a.ir" in done.stderr
    first, second = json.loads(done.stdout)
    assert "error" in first and "aten::relu" in second["graph"]


def test_an_empty_folder(tmp_path):
    done = lower(tmp_path)
    assert done.returncode == 1 and "files .ir or .pt were expected" in done.stderr


def test_json():
    done = lower("--format", "json", text=CHECK)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [s["name"] for s in found["steps"]] == _C._jit_lowering_passes() and _C.parse_ir(found["graph"])
    changed = [s for s in found["steps"] if s["changed"]]
    assert changed and all(s["seconds"] >= 0 for s in found["steps"])
    notes = [n for s in found["steps"] for n in s["notes"]]
    assert any(n["place"] == "model.py:4:8" and "bad input" in n["text"] for n in notes)


def diff(*arguments, text=None):
    return subprocess.run([COMMAND, "diff", *arguments], input=text, capture_output=True, text=True, timeout=120)


def test_differences_of_two_graphs(tmp_path):
    (tmp_path / "a.ir").write_text(LINEAR)
    (tmp_path / "b.ir").write_text(lower("--pass", "fuse-linear,dce", text=LINEAR).stdout)
    done = diff(tmp_path / "a.ir", tmp_path / "b.ir")
    assert done.returncode == 1 and done.stdout.endswith("0 nodes are the same, 0 changed, 3 gone, 1 new\n"), done.stdout
    assert re.search(r"^- .*aten::addmm", done.stdout, flags=re.M) and re.search(r"^\+ .*aten::linear", done.stdout, flags=re.M)
    found = json.loads(diff(tmp_path / "a.ir", "-", "--format", "json", text=LINEAR.replace("%one ", "%eins ").replace("%one)", "%eins)").replace("%one,", "%eins,")).stdout)
    assert found["equal"] and found["same"] == 3
    done = diff(tmp_path / "a.ir", tmp_path / "a.ir")
    assert done.returncode == 0 and done.stdout == "3 nodes are the same, 0 changed, 0 gone, 0 new\n"


def test_places_do_not_count(tmp_path):
    """The line of a script, or the module whose call was inlined, says nothing of what a node does."""
    (tmp_path / "a.ir").write_text("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x), scope: A::/B::b # /a/model.py:3:8\n  return (%y)\n")
    (tmp_path / "b.ir").write_text("graph(%x : Tensor):\n  %other : Tensor = aten::neg(%x) # /b/elsewhere.py:111:12\n  return (%other)\n")
    done = diff(tmp_path / "a.ir", tmp_path / "b.ir", "--format", "json")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert found["equal"] and found["lines"][1] == {"kind": "same", "before": "  %y : Tensor = aten::neg(%x)", "after": "  %y : Tensor = aten::neg(%x)"}
    (tmp_path / "b.ir").write_text("graph(%x : Tensor):\n  %y : Tensor = aten::abs(%x) # /a/model.py:3:8\n  return (%y)\n")
    done = diff(tmp_path / "a.ir", tmp_path / "b.ir")
    assert done.returncode == 1 and "-   %y : Tensor = aten::neg(%x)\n" in done.stdout, done.stdout


def test_a_folder_is_no_graph(tmp_path):
    (tmp_path / "a.ir").write_text(LINEAR)
    done = diff(tmp_path / "a.ir", tmp_path)
    assert done.returncode == 1 and "a file was required; this is a folder" in done.stderr
