"""The score card: a device that runs everything on the CPU is perfect, a wrong kernel costs, what is left out is counted with its reason."""

import json

import pytest


def test_text(conform):
    conform("--ops", "^(relu|add|view)($|[.])", "--dtypes", "float32,int64", "--no-models")
    assert conform.status == 0, conform.err
    assert conform.out == (
        "tin: 100.0 % of 55 checks of 4 operators pass\n"
        "native: 25.0 % (1 of 4 operators are right without the CPU; 3 need it)\n"
        "\n"
        "check      pass  wrong  error  missing  skip\n"
        "forward       8      0      0        0     0\n"
        "backward      4      0      0        0     0\n"
        "view          2      0      0        0     0\n"
        "in-place      6      0      0        0     0\n"
        "out           6      0      0        0     0\n"
        "sizes         7      0      0        0     0\n"
        "layouts       8      0      0        0     0\n"
        "values        6      0      0        0     0\n"
        "arguments     8      0      0        0     0\n"
        "\n"
        "Operators: 2 derived, 2 on the fallback\n"
    )


def test_share_of_the_device_itself(conform, wrong_relu):
    """--min-native asks for operators that run without the CPU and are right; a kernel that is wrong does not count."""
    arguments = ["--ops", "^(relu|sin|view)$", "--dtypes", "float32", "--no-models"]
    conform(*arguments, "--min-native", "33")
    assert conform.status == 0 and "\nnative: 33.3 % (1 of 3 operators are right without the CPU; 2 need it)\n" in conform.out
    conform(*arguments, "--min-native", "34")
    assert conform.status == 1
    conform(*arguments, "--threshold", "0", load=[conform.tin, wrong_relu])
    assert conform.status == 0 and "\nnative: 33.3 % (1 of 3 operators are right without the CPU; 1 need it, 1 are not right)\n" in conform.out
    card = json.loads(conform(*arguments, "--json"))
    assert card["native"] == 33.33 and card["native_operators"] == ["view"]


def test_what_it_is_a_card_of(conform):
    import cresset

    about = json.loads(conform("--ops", "^relu$", "--dtypes", "float32", "--no-models", "--json"))["about"]
    assert about["version"] == cresset.__version__ and about["date"].endswith(" UTC") and about["device"] == "tin"


def test_wrong_kernel_is_found(conform, wrong_relu):
    conform("--ops", "^(relu|add[.]Tensor)$", "--dtypes", "float32,float64", "--no-models", load=[conform.tin, wrong_relu])
    assert conform.status == 1
    lines = conform.out.splitlines()
    assert "  relu  forward  float32: result: Tensor-likes are not close! Mismatched elements: " in conform.out
    assert "      sample T(3,4)" in lines
    card = json.loads(conform("--ops", "^(relu|add[.]Tensor)$", "--dtypes", "float32", "--no-models", "--json", load=[conform.tin, wrong_relu]))
    assert {(r["op"], r["check"]): r["status"] for r in card["results"] if r["status"] != "pass"} == {
        ("relu", "forward"): "wrong", ("relu", "backward"): "wrong", ("relu", "in-place"): "wrong", ("relu", "out"): "error",  # an empty out must grow
        ("relu", "sizes"): "wrong", ("relu", "layouts"): "wrong", ("relu", "values"): "wrong"}
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
    """Meta tensors have no values: shapes and dtypes are compared, and what needs values is skipped for that reason."""
    arguments = ["--ops", "^(add|mm|sum|view|cat|nonzero)($|[.])", "--dtypes", "float32", "--no-models"]
    conform(*arguments, device="meta", load=[])
    assert conform.status == 0, conform.out
    assert " operators pass; shapes, dtypes and devices only, since meta tensors have no values\n" in conform.out
    card = json.loads(conform(*arguments, "--json", device="meta", load=[]))
    assert [r for r in card["results"] if r["status"] not in ("pass", "skip")] == []
    assert {r["op"] for r in card["results"] if r["status"] == "skip"} <= {"nonzero"}
