"""What pages say about the tree that the tree can be asked: layers, floors, keys of rows, libraries, numbers."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tools", "tools/opgen", "tests/conformance")]
import check_layers
import records
import table as rows


def page(name):
    return (ROOT / name).read_text()


@pytest.fixture(scope="module")
def operators():
    return rows.Table(ROOT / "src/ops").ops()


def number(text):
    return int(text.replace(",", ""))


def test_layers_of_the_picture():
    picture = page("ARCHITECTURE.md").split("## Layers")[1].split("A layer includes")[0]
    assert " → ".join(check_layers.CHAIN) in picture
    named = set(re.findall(r"[\w/]+", picture.replace("backends/cpu", "backends").replace("nobody includes it", "")))
    assert named == {layer for layer in check_layers.ALLOWED if "/" not in layer and layer != "umbrella"}


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "docs/design/ir.md"])
def test_floors_of_ir(name):
    sentence = re.search(r"(?:floors[:,][^.]*?)(graph\b.*?archive)", page(name), re.S)[1]
    said = re.findall(r"\w+", re.sub(r"\([^)]*\)", "", sentence))
    assert said == list(check_layers.IR_FLOORS)


def test_keys_of_a_row():
    text = page("docs/design/operator-table.md").split("## Batches")[0]
    said = {key for cell in re.findall(r"^\|([^|]*)\|", text, re.M) for key in re.findall(r"`(\w+)`", cell)}
    said |= set(re.findall(r"^`(\w+)` (?:of a pointwise row|=)", text, re.M))  # two keys that have a paragraph
    assert said - set(rows.DTYPE_RULES) == rows.ROW_KEYS


def test_words_of_batch():
    text = page("docs/design/operator-table.md").split("## Batches")[1].split("## C++ signatures")[0]
    assert {key for cell in re.findall(r"^\|([^|]*)\|", text, re.M) for key in re.findall(r"`(\w+)`", cell)} == set(rows.BATCH_RULES)


def test_number_of_operators_and_signatures(operators):
    signatures = len({op.schema.cpp_signature() for op in operators})
    said = re.search(r"\(`src/ops/shared/signature_code.h`, some ([\d,]+) for ([\d,]+)\s+operators\)", page("docs/design/operator-table.md"))
    other = re.search(r"Some ([\d,]+) operators have some ([\d,]+) C\+\+ signatures", page("docs/design/build-time.md"))
    for claimed, true in ((said[1], signatures), (said[2], len(operators)), (other[2], signatures), (other[1], len(operators))):
        assert number(claimed) == pytest.approx(true, rel=0.04), (claimed, true)


def test_number_of_recorded_calls():
    recorded = sum(map(len, records.calls().values()))
    assert number(re.search(r"replays some ([\d,]+) calls", page("CONTRIBUTING.md"))[1]) == pytest.approx(recorded, rel=0.04)


def test_layers_of_libraries():
    said = dict(re.findall(r"^\| `(libcresset\w*)` \| ([^|:]+?)(?::[^|]*)? \|", page("docs/design/libraries.md"), re.M))
    assert [name.strip() for name in said["libcresset"].split(",")] == check_layers.CHAIN[:-1]
    for name in set(said) - {"libcresset"}:
        assert said[name].split("/")[0] in check_layers.ALLOWED, name
