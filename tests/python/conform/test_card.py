"""The score card: a device that runs everything on the CPU is perfect, a wrong kernel costs, what is left out is counted with its reason."""

import json

import pytest


def test_text(conform):
    conform("--ops", "^(relu|add|view)($|[.])", "--dtypes", "float32,int64", "--no-models")
    assert conform.status == 0, conform.err
    assert conform.out == (
        "tin: 100.0 % of 26 checks of 4 operators pass\n"
        "\n"
        "check     pass  wrong  error  missing  skip\n"
        "forward      8      0      0        0     0\n"
        "backward     4      0      0        0     0\n"
        "view         2      0      0        0     0\n"
        "in-place     6      0      0        0     0\n"
        "out          6      0      0        0     0\n"
        "\n"
        "Operators: 1 derived, 3 on the fallback\n"
    )


def test_wrong_kernel_is_found(conform, wrong_relu):
    conform("--ops", "^(relu|add[.]Tensor)$", "--dtypes", "float32,float64", "--no-models", load=[conform.tin, wrong_relu])
    assert conform.status == 1
    lines = conform.out.splitlines()
    assert "  relu  forward  float32: result: Tensor-likes are not close! Mismatched elements: " in conform.out
    assert "      sample T(3,4)" in lines
    card = json.loads(conform("--ops", "^(relu|add[.]Tensor)$", "--dtypes", "float32", "--no-models", "--json", load=[conform.tin, wrong_relu]))
    assert {(r["op"], r["check"]): r["status"] for r in card["results"] if r["status"] != "pass"} == {
        ("relu", "forward"): "wrong", ("relu", "backward"): "wrong", ("relu", "in-place"): "wrong", ("relu", "out"): "error"}  # an empty out must grow
    assert card["operators"] == {"add.Tensor": "fallback", "relu": "kernel"}


def test_threshold(conform, wrong_relu):
    arguments = ["--ops", "^(relu|sin|cos|exp)$", "--dtypes", "float32", "--no-models"]
    conform(*arguments, "--threshold", "50", load=[conform.tin, wrong_relu])
    assert conform.status == 0
    conform(*arguments, "--threshold", "99", load=[conform.tin, wrong_relu])
    assert conform.status == 1


def test_skips_have_reasons(conform, tmp_path):
    (tmp_path / "tin.toml").write_text('[device]\ndtypes = ["float32"]\n[skip]\n"linalg_*" = "no LAPACK"\n')
    card = json.loads(conform("--ops", "^(relu|linalg_inv)$", "--dtypes", "float32,float16,int64", "--no-models", "--capabilities", tmp_path / "tin.toml", "--json"))
    assert conform.status == 0
    assert sorted(map(tuple, card["skips"])) == [("no LAPACK", 3), ("the device has no float16", 1), ("the device has no int64", 1)]
    assert card["counts"]["skip"] == 5 and card["score"] == 100.0


def test_files_random_numbers_and_copies(conform):
    card = json.loads(conform("--dtypes", "float32", "--checks", "file,random,stream", "--no-models", "--json"))
    found = {(r["op"], r["check"]): r["status"] for r in card["results"]}
    assert found[("save and load", "file")] == "pass"
    assert found[("generator", "random")] == "pass"
    assert ("streams and events", "stream") in found


def test_models_say_what_to_write_next(conform, tmp_path):
    card = json.loads(conform("--ops", "^relu$", "--dtypes", "float32", "--json"))
    models = {m["model"]: {o["name"]: o["state"] for o in m["operators"]} for m in card["models"]}
    assert list(models) == ["mlp", "cnn", "resnet18", "transformer", "lstm", "gpt", "unet"]
    assert models["cnn"]["aten::convolution.out"] == "fallback" and models["cnn"]["aten::empty_strided"] == "kernel"
    following = card["next"]
    assert following[0]["models"] == list(models)  # what all need comes first
    counts = [len(entry["models"]) for entry in following]
    assert counts == sorted(counts, reverse=True)
    by_name = {entry["operator"]: entry for entry in following}
    assert by_name["aten::convolution.out"]["models"] == ["cnn", "resnet18", "unet"]


@pytest.mark.slow
def test_whole_card(conform):
    """Every operator through the fallback agrees with the CPU."""
    card = json.loads(conform("--json", "--no-models"))
    assert [r for r in card["results"] if r["status"] not in ("pass", "skip")] == []
    assert card["counts"]["pass"] > 14000


def test_the_cpu_agrees_with_itself(conform):
    conform("--dtypes", "float32", "--no-models", device="cpu", load=[])
    assert conform.status == 0 and conform.out.startswith("cpu: 100.0 % of ")


def test_meta_is_right_about_shapes(conform):
    """Meta tensors have no values: shapes and dtypes are compared, and operators that need values are errors there."""
    card = json.loads(conform("--ops", "^(add|mm|sum|view|cat)($|[.])", "--dtypes", "float32", "--no-models", "--json", device="meta", load=[]))
    wrong = [r for r in card["results"] if r["status"] in ("wrong", "missing")]
    assert wrong == []
