"""`cresset run` and `cresset show` on archives."""

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
ARCHIVES = Path(__file__).with_name("archives")


@pytest.fixture
def cresset_command(tmp_path):
    def run(*arguments, status=0):
        done = subprocess.run([ROOT / "build/dev/bin/cresset", *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    run.folder = tmp_path
    return run


def test_run_writes_what_was_recorded(cresset_command):
    recorded = np.load(ARCHIVES / "mlp_scripted.npz")
    np.save(cresset_command.folder / "x.npy", np.asfortranarray(recorded["in0"]))
    line = cresset_command("run", ARCHIVES / "mlp_scripted.pt", "--input", "x.npy", "--output", "y.npy")
    assert line == "0: Float(5, 4, strides=[4, 1], requires_grad=0, device=cpu) > y.npy\n"
    np.testing.assert_allclose(np.load(cresset_command.folder / "y.npy"), recorded["out0"], rtol=1e-5, atol=1e-6)


def test_run_takes_numbers_and_gives_several_results(cresset_command):
    recorded = np.load(ARCHIVES / "control_scripted.npz")
    np.save(cresset_command.folder / "x.npy", recorded["in0"])
    out = cresset_command("run", ARCHIVES / "control_scripted.pt", "-i", "x.npy", "-i", "6", "-o", "a.npy", "-o", "b.npy")
    assert [line.partition(": ")[0] for line in out.splitlines()] == ["0", "1"]
    np.testing.assert_allclose(np.load(cresset_command.folder / "a.npy"), recorded["out0"], rtol=1e-4)
    assert np.load(cresset_command.folder / "b.npy") == recorded["out1"]


@pytest.mark.parametrize("dtype", ["bool", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_types_of_npy_files(cresset_command, dtype):
    x = np.arange(6).reshape(2, 1, 3).astype(dtype)
    np.save(cresset_command.folder / "x.npy", x)
    code = {"bool": "Bool", "u1": "Byte", "i1": "Char", "i2": "Short", "i4": "Int", "i8": "Long", "f2": "Half", "f4": "Float", "f8": "Double",
            "c8": "ComplexFloat", "c16": "ComplexDouble"}[dtype]  # fmt: skip
    from archive_files import archive, module, TRAINING  # the module whose forward gives its argument

    (cresset_command.folder / "m.pt").write_bytes(archive(module(TRAINING)))
    assert cresset_command("run", "m.pt", "-i", "x.npy", "-o", "y.npy").startswith(f"0: {code}(2, 1, 3")
    y = np.load(cresset_command.folder / "y.npy")
    assert y.dtype == x.dtype and np.array_equal(x, y)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-i", "none.npy"], "none.npy cannot be opened: No such file or directory"),
        (["-i", "text.npy"], "text.npy: a .npy file was required; it does not begin like one"),
        (["-i", "cut.npy"], "cut.npy: a .npy file was required; its shape needs 24 bytes; it has 20"),
        (["-i", "big.npy"], "its type '>f4' is not one of little-endian numbers"),
        (["--method", "backward"], "backward"),
        (["-i", "x.npy", "-i", "x.npy", "-i", "x.npy"], "forward takes 1 inputs; 3 were given"),
    ],
)
def test_run_says_what_is_wrong(cresset_command, arguments, words):
    folder = cresset_command.folder
    np.save(folder / "x.npy", np.ones((2, 3), "f4"))
    np.save(folder / "big.npy", np.ones(2, ">f4"))
    (folder / "text.npy").write_text("no numbers in here")
    (folder / "cut.npy").write_bytes((folder / "x.npy").read_bytes()[:-4])
    assert words in cresset_command("run", ARCHIVES / "mlp_scripted.pt", *arguments, status=1)


def test_show_lists_modules_and_operators(cresset_command):
    modules = cresset_command("show", ARCHIVES / "convbn_traced.pt")
    assert modules.splitlines()[0] == "ConvBN" and "c1: torch.nn.modules.conv.Conv2d" in modules
    assert "  c1.weight: Float [8, 3, 3, 3]" in modules and "  b1.running_mean: Float [8] (buffer)" in modules
    operators = json.loads(cresset_command("--json", "show", ARCHIVES / "convbn_traced.pt", "--ops"))
    assert operators["aten::_convolution"] == {"count": 2, "known": True} and operators["aten::relu"]["count"] == 2
    graph = cresset_command("show", ARCHIVES / "convbn_traced.pt", "--graph")
    assert graph.startswith("graph(%self : __torch__.ConvBN") and "CallMethod" not in graph
    assert cresset_command("show", ARCHIVES / "state_scripted.pt", "--code", "--method", "seen") == "def seen(s) -> List[int]:\n  return s.hist\n"


class Outline(HTMLParser):
    """Are tags closed in order, and is anything loaded from elsewhere?"""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.ids = [], [], set()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert "src" not in attributes
        self.links += [attributes["href"]] if "href" in attributes else []
        self.ids |= {attributes["id"]} if "id" in attributes else set()
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole(cresset_command):
    cresset_command("show", ARCHIVES / "lstm_scripted.pt", "--html", "page.html")
    text = (cresset_command.folder / "page.html").read_text()
    page = Outline()
    page.feed(text)
    assert page.open == [] and page.links and "http" not in text
    assert {link[1:] for link in page.links} <= page.ids
    assert "aten::lstm" in text and "weight_ih_l0 : Float(48, 8, strides=[8, 1], requires_grad=1, device=cpu)" in text


def test_the_page_in_a_browser(cresset_command, open_page):
    cresset_command("show", ARCHIVES / "mlp_scripted.pt", "--html", "page.html")
    file = cresset_command.folder / "page.html"
    document = open_page(file, "#find=aten::linear")
    hits = re.findall(r'<div class="node hit">(.*?)</div>', document)
    assert len(hits) == 2 and all("aten::linear" in h for h in hits) and '<span id="found">2 found</span>' in document
    # The calls around what was found are open, others are not.
    assert document.count('<details class="call" open="">') == 2 and '<details class="call"><summary>' in document
