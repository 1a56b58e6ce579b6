"""Which operators a model needs: kernels, what is derived, what falls back, what is missing."""

import json
from pathlib import Path

import cresset
import pytest
from cresset.conform import needed
from cresset.testing import models

COMMAND = Path(__file__).resolve().parents[3] / "build/dev/bin/cresset"
MODEL = """
import cresset
from cresset import nn


def model():
    return nn.Linear(3, 2), (cresset.ones(4, 3),)


def loss(output):
    return (output * output).mean()
"""


def test_text(conform, tmp_path):
    (tmp_path / "small.py").write_text(MODEL)
    out = conform("--needed-by", "small.py", command=(str(COMMAND), "ops"))
    assert conform.status == 0, conform.err
    groups = [part.splitlines() for part in out.split("\n\n")]
    assert groups[0][0].startswith("small.py on tin: ") and groups[0][0].endswith(" operators in one training step")
    titles = [g[0].partition(":")[0] for g in groups[1:]]
    assert titles == ["has a kernel", "falls back", "derived, nothing to write"]
    names = {title: [line.split()[1] for line in g[1:]] for title, g in zip(titles, groups[1:])}
    assert "empty_strided" in names["has a kernel"]
    assert {"addmm.out", "mul.out", "mean.out", "mm.out"} <= set(names["falls back"])
    assert {"addmm", "t", "mul.Tensor"} <= set(names["derived, nothing to write"])


def test_json_and_errors(conform):
    data = json.loads(conform("--needed-by", "mlp", "--json"))
    assert data["device"] == data["ran_on"] == "tin" and {"name", "calls", "state"} == set(data["operators"][0])
    conform("--needed-by", "nothing")
    assert conform.status == 2
    assert conform.err == (
        "cresset conform: model: one of mlp, cnn, resnet18, transformer, lstm, gpt, unet, a Python file or a module was required; 'nothing' was given.\n"
        "Next: cresset ops --needed-by mlp\n"
    )


@pytest.mark.parametrize("name", models.MODELS)
def test_example_models_train(name):
    """Some steps of each example model lower its loss on the same batch."""
    model, inputs, loss = models.build(name)
    cresset.manual_seed(1)
    first = models.train_step(model, inputs, loss).item()
    for _ in range(8):
        last = models.train_step(model, inputs, loss).item()
    assert last < first
    again, inputs, loss = models.build(name)
    cresset.manual_seed(1)
    assert models.train_step(again, inputs, loss).item() == first


def test_backward_is_seen():
    found = needed.needed_by("mlp", "cpu")
    assert found.state["aten::threshold_backward"] == "kernel" and found.calls["aten::addmm"] == 3
    assert found.lacking == set()


def test_order_of_work():
    def run(model, **states):
        n = needed.Needed(model, "chip", "chip")
        for name, state in states.items():
            n.state[name], n.calls[name] = state, 1
        return n

    runs = [run("a", x="missing", y="fallback", z="kernel"), run("b", y="missing", w="derived")]
    assert needed.order_of_work(runs) == [("y", ["a", "b"], 2), ("x", ["a"], 1)]
