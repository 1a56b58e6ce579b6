"""Every layer against recorded results: repr, output, gradients and state, and the initial values of a seed."""

import json
import pathlib
import sys

import cresset
import pytest

GOLDEN = pathlib.Path(__file__).parents[2] / "golden"
sys.path.insert(0, str(GOLDEN))
import nn_cases  # noqa: E402

LAYERS = json.loads((GOLDEN / "nn_layers.json").read_text())
INITIAL = json.loads((GOLDEN / "nn_initial.json").read_text())


def close(have, want):
    if isinstance(want, list):
        return len(have) == len(want) and all(close(h, w) for h, w in zip(have, want))
    if isinstance(want, float):
        return have == pytest.approx(want, rel=1e-7, abs=1e-9)
    return have == want


def test_recorded_cases_are_the_current_ones():
    assert [row["case"] for row in LAYERS] == [case[0] for case in nn_cases.LAYERS]
    assert [row["case"] for row in INITIAL] == nn_cases.INITIAL


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(LAYERS)), ids=lambda i: f"{i}-{LAYERS[i]['case']}")
def test_layer(number):
    want = LAYERS[number]
    have = nn_cases.run(cresset, cresset.nn, nn_cases.LAYERS[number])
    assert have["repr"] == want["repr"]
    for part in ("out", "grad", "state"):
        assert len(have[part]) == len(want[part])
        for h, w in zip(have[part], want[part]):
            assert close(h, w), (part, h, w)


@pytest.mark.parametrize("row", INITIAL, ids=lambda row: row["case"])
def test_initial_values_of_a_seed(row):
    cresset.manual_seed(0)
    module = eval(row["case"], vars(cresset.nn))
    for (name, value), want in zip(module.state_dict().items(), row["state"], strict=True):
        assert name == want[0]
        have = [list(value.shape), *nn_cases.digest(value)]
        # float32 values whose last bit may differ where a logarithm or a cosine is involved
        assert have[0] == want[1]
        assert have[1:] == pytest.approx(want[2:], rel=1e-6, abs=1e-6), name
    # the layer took exactly as many numbers from the stream
    assert cresset.rand(1).item() == pytest.approx(row["next"], abs=1e-8)


def test_seeds_named_in_the_documentation():
    cresset.manual_seed(0)
    assert cresset.rand(3).tolist() == pytest.approx([0.4963, 0.7682, 0.0885], abs=5e-5)
    cresset.manual_seed(0)
    assert cresset.nn.Linear(2, 2).weight[0][0].item() == pytest.approx(-0.0053, abs=5e-5)


def test_padding_layers_are_of_the_families_that_libraries_ask_for():
    families = cresset.nn.modules.padding
    for n in "123":
        for kind in ("Constant", "Reflection", "Replication", "Circular"):
            assert issubclass(getattr(cresset.nn, f"{kind}Pad{n}d"), getattr(families, f"_{kind}PadNd"))
        zeros = getattr(cresset.nn, f"ZeroPad{n}d")(1)
        assert isinstance(zeros, getattr(cresset.nn, f"ConstantPad{n}d")) and zeros.value == 0.0 and "value" not in repr(zeros)


@pytest.mark.parametrize("name", [f"Conv{kind}{n}d" for kind in ("", "Transpose") for n in (1, 2, 3)] + ["Linear"])
def test_a_lazy_layer_is_one_of_its_kind_before_its_first_input(name):
    layer = getattr(cresset.nn, f"Lazy{name}")(*((3,) if name == "Linear" else (3, 1)))
    assert isinstance(layer, getattr(cresset.nn, name)) and layer.has_uninitialized_params()
