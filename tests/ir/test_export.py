"""Programs of torch.export: recorded ones, live ones where torch is installed, and damaged ones."""

import io
import json
import os
import pickle
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import cresset
from cresset import _C, export
from cresset.export._load import ir_module
from cresset.testing import assert_close

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parent / "conformance/files/pt2"


@pytest.mark.parametrize("name", ["mlp", "convbn"])
def test_recorded_programs(name):
    program = export.load(RECORDED / name / "model.pt2")
    arrays = np.load(RECORDED / name / "io.npz")
    module = ir_module(program)
    assert_close(module(cresset.from_numpy(arrays["in0"])).detach(), cresset.from_numpy(arrays["out0"]))
    module.graph.lint()
    assert set(program.state_dict) == set(dict(module.named_parameters())) | set(dict(module.named_buffers()))


def test_parts_of_a_program():
    with open(RECORDED / "convbn/model.pt2", "rb") as f:
        program = export.load(f)
    signature = program.graph_signature
    assert signature.parameters == ("c1.weight", "b1.weight", "b1.bias", "c2.weight", "c2.bias", "f.weight", "f.bias")
    assert signature.buffers == ("b1.running_mean", "b1.running_var", "b1.num_batches_tracked")
    assert signature.user_inputs == ("x",)
    assert signature.inputs_to_parameters["p_c1_weight"] == "c1.weight"
    module = ir_module(program)
    assert [k.kind() for k in module.graph.nodes() if k.kind() not in ("prim::Constant", "prim::GetAttr", "prim::ListConstruct")] == [
        "aten::conv2d", "aten::batch_norm", "aten::relu", "aten::conv2d", "aten::relu", "aten::adaptive_avg_pool2d", "aten::flatten",
        "aten::linear",
    ]  # fmt: skip
    assert {n.scopeName() for n in module.graph.nodes() if n.kind() == "aten::conv2d"} == {"__module.c1", "__module.c2"}
    assert module.c1.weight.requires_grad
    assert module.c1.weight is program.state_dict["c1.weight"]
    module(cresset.ones(2, 3, 9, 9)).sum().backward()
    assert module.c1.weight.grad is not None
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(cresset.ones(2, 3, 9, 9))


def test_inputs_are_checked_against_the_sizes_of_the_program():
    module = ir_module(export.load(RECORDED / "mlp/model.pt2"))
    for args, words in [
        ((cresset.ones(4, 8),), r"Expected input at \*args\[0\].shape\[0\] to be equal to 5, but got 4"),
        ((cresset.ones(8),), r"Expected input at \*args\[0\] to have 2 dimensions"),
        ((), "forward\\(\\) is missing value for argument 'x'"),
        ((cresset.ones(5, 8), 1), "forward\\(\\) expected at most 2 argument"),
        ((3,), "forward\\(\\): argument 'x': a value of type 'Tensor' was expected; a int was given"),
    ]:
        with pytest.raises((RuntimeError, TypeError), match=words):
            module(*args)


# ---- programs that torch writes now


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """{name: (file, calls)} of make_exported.py, run by a Python that has torch: CRESSET_ORACLE_PYTHON or this one."""
    folder = tmp_path_factory.mktemp("exported")
    python = os.environ.get("CRESSET_ORACLE_PYTHON", sys.executable)
    has_torch = subprocess.run([python, "-c", "import torch.export; print(torch.__version__)"], capture_output=True, text=True)
    if has_torch.returncode or tuple(int(v) for v in has_torch.stdout.split(".")[:2]) < (2, 8):
        pytest.skip("needs torch 2.8 or newer (CRESSET_ORACLE_PYTHON names a Python that has it)")
    subprocess.run([python, HERE / "make_exported.py", folder], check=True, capture_output=True)
    with open(folder / "calls.pickle", "rb") as f:
        calls = pickle.load(f)
    return {name: (folder / f"{name}.pt2", c) for name, c in calls.items()}


def tensors(value):
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] == "tensor":
        return cresset.from_numpy(value[1].copy())
    if isinstance(value, dict):
        return {k: tensors(v) for k, v in value.items()}
    return type(value)(tensors(v) for v in value) if isinstance(value, (list, tuple)) else value


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            assert_same(a, b)
    elif isinstance(expected, cresset.Tensor):
        assert_close(found.detach(), expected, equal_nan=True, rtol=1e-5, atol=1e-5)
    else:
        assert found == expected


LIVE = ["dynamic", "dynamic_core", "several", "condition", "loop", "transformer", "transformer_core", "lstm", "training", "linked", "views", "cnn_core"]


@pytest.mark.parametrize("name", LIVE)
def test_live_programs(live, name):
    file, calls = live[name]
    program = export.load(file)
    for module in (ir_module(program), program.module()):
        for args, kwargs, expected in calls:
            assert_same(module(*tensors(args), **tensors(kwargs)), tensors(expected))
        module.graph.lint()


def test_ranges_and_structures_are_checked(live):
    module = ir_module(export.load(live["dynamic"][0]))
    d = {"k": cresset.ones(3)}
    for args, words in [
        ((cresset.ones(2, 4), d), r"\*args\[0\].shape\[0\] to be >= 3, but got 2"),
        ((cresset.ones(65, 4), d), r"\*args\[0\].shape\[0\] to be <= 64, but got 65"),
        ((cresset.ones(5, 3), d), r"\*args\[0\].shape\[1\] to be equal to 4, but got 3"),
        ((cresset.ones(5, 4), {"k": cresset.ones(4)}), r"\*args\[1\]\['k'\].shape\[0\] to be equal to 3, but got 4"),
        ((cresset.ones(5, 4), {"z": cresset.ones(3)}), r"input tree spec: at \*args\[1\] {'k': \*} was expected"),
    ]:
        with pytest.raises((RuntimeError, ValueError), match=words):
            module(*args)
    linked = ir_module(export.load(live["linked"][0]))
    with pytest.raises(RuntimeError, match=r"to be equal to 6, but got 8"):
        linked(cresset.ones(3), cresset.ones(8))


def test_constant_inputs_are_checked_and_may_be_left_out(live):
    module = ir_module(export.load(live["several"][0]))
    module(cresset.ones(4, 4), b=cresset.ones(2))
    with pytest.raises(RuntimeError, match=r"\*\*kwargs\['flag'\] to be equal to True, but got False"):
        module(cresset.ones(4, 4), b=cresset.ones(2), flag=False)


def test_written_buffers(live):
    for name in ["dynamic", "dynamic_core"]:
        program = export.load(live[name][0])
        args, kwargs, _ = live[name][1][0]
        for _ in range(3):
            ir_module(program)(*tensors(args), **tensors(kwargs))
        assert float(program.state_dict["calls"]) == 3


def test_shared_weights_stay_shared(live):
    module = ir_module(export.load(live["training"][0]))
    assert module.small.data_ptr() == module.same.data_ptr()
    assert module.small.dtype == cresset.bfloat16


# ---- damaged programs


def parts():
    with zipfile.ZipFile(RECORDED / "convbn/model.pt2") as z:
        return {n: z.read(n) for n in z.namelist()}


def archive(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue()


MODEL, WEIGHTS = "model/models/model.json", "model/data/weights/model_weights_config.json"


def changed(change, name=MODEL):
    """The program after `change` of a JSON document."""
    files = parts()
    document = json.loads(files[name])
    change(document)
    files[name] = json.dumps(document).encode()
    return archive(files)


def graph(document):
    return document["graph_module"]["graph"]


def node(document, i):
    return graph(document)["nodes"][i]


def put(mapping, key, value):
    mapping[key] = value


def weight(document):
    return document["config"]["c1.weight"]["tensor_meta"]


DAMAGED = {
    "empty": (lambda: b"", "zip|archive"),
    "no zip": (lambda: b"hello" * 100, "zip|archive"),
    "no program": (lambda: archive({"a": b""}), "no entry 'archive_format'"),
    "old form": (lambda: archive({"serialized_exported_program.json": b"{}"}), "before PyTorch 2.8"),
    "other archive": (lambda: archive({**parts(), "model/archive_format": b"xx"}), "it says to be 'xx'"),
    "byte order": (lambda: archive({**parts(), "model/byteorder": b"big"}), "this one has 'big'"),
    "no graph": (lambda: archive({n: d for n, d in parts().items() if n != MODEL}), "there is no graph in 'models/'"),
    "no JSON": (lambda: archive({**parts(), MODEL: b"{"}), "model.json is no JSON"),
    "deep JSON": (lambda: archive({**parts(), MODEL: b"[" * 100000}), "nests more than 200 deep"),
    "a list": (lambda: archive({**parts(), MODEL: b"[]"}), "an entry 'schema_version' was required"),
    "version": (lambda: changed(lambda d: put(d["schema_version"], "major", 9)), "this one has version 9"),
    "no weight": (lambda: archive({n: d for n, d in parts().items() if n != "model/data/weights/weight_0"}), "weight_0' is missing"),
    "short weight": (lambda: archive({**parts(), "model/data/weights/weight_0": b"1234"}), "weight_0' has 4 bytes"),
    "huge weight": (lambda: changed(lambda d: put(weight(d)["sizes"][0], "as_int", 2**60), WEIGHTS), "fit into memory|bytes"),
    "negative size": (lambda: changed(lambda d: put(weight(d)["sizes"][0], "as_int", -1), WEIGHTS), "fit into memory"),
    "negative offset": (lambda: changed(lambda d: put(weight(d)["storage_offset"], "as_int", -8), WEIGHTS), "fit into memory"),
    "strides": (lambda: changed(lambda d: put(weight(d), "strides", []), WEIGHTS), "a stride for each"),
    "dtype": (lambda: changed(lambda d: put(weight(d), "dtype", 99), WEIGHTS), r"a known dtype \(99 is none\)"),
    "pickled weight": (
        lambda: changed(lambda d: put(d["config"]["c1.weight"], "use_pickle", True), WEIGHTS),
        "'c1.weight' is stored as a pickle, which is not read",
    ),
    "path out of the archive": (
        lambda: changed(lambda d: put(d["config"]["c1.weight"], "path_name", "../../../etc/passwd"), WEIGHTS),
        "is missing",
    ),
    "unknown weight": (lambda: changed(lambda d: d["config"].pop("c1.weight"), WEIGHTS), "data of 'c1.weight' was required"),
    "unknown operator": (lambda: changed(lambda d: put(node(d, 0), "target", "torch.ops.my.op.default")), "the operator 'my::op' is not known"),
    "unknown overload": (
        lambda: changed(lambda d: put(node(d, 2), "target", "torch.ops.aten.relu.none")),
        "the operator 'aten::relu.none' is not known",
    ),
    "function": (lambda: changed(lambda d: put(node(d, 0), "target", "os.system")), "the function 'os.system' is not supported"),
    "control flow": (
        lambda: changed(lambda d: put(node(d, 0), "target", "torch.ops.higher_order.scan")),
        "the control flow operator 'torch.ops.higher_order.scan' is not supported",
    ),
    "unknown value": (
        lambda: changed(lambda d: put(node(d, 2)["inputs"][0]["arg"]["as_tensor"], "name", "later")),
        r"a value that was computed before \('later'\)",
    ),
    "value given twice": (
        lambda: changed(lambda d: put(node(d, 2)["outputs"][0]["as_tensor"], "name", "conv2d")),
        r"a name that is given once \('conv2d'\)",
    ),
    "argument kind": (lambda: changed(lambda d: put(node(d, 2)["inputs"][0], "arg", {"as_pickle": 1})), "'as_pickle' cannot"),
    "argument of another type": (lambda: changed(lambda d: put(node(d, 2)["inputs"][0], "arg", {"as_string": "x"})), "aten::relu"),
    "unknown argument": (lambda: changed(lambda d: put(node(d, 2)["inputs"][0], "name", "nobody")), "an argument of aten::relu"),
    "missing argument": (lambda: changed(lambda d: put(node(d, 2), "inputs", [])), "a value for the argument 'self'"),
    "too many results": (
        lambda: changed(lambda d: put(node(d, 2), "outputs", node(d, 2)["outputs"] * 2)),
        "at most 1 results was required",
    ),
    "outputs": (lambda: changed(lambda d: put(graph(d), "outputs", [])), "a description for each output"),
    "tree": (
        lambda: changed(lambda d: put(d["graph_module"]["module_call_graph"][0]["signature"], "in_spec", "[1, {}]")),
        "an entry 'children_spec' was required",
    ),
    "tree of another class": (
        lambda: changed(
            lambda d: put(
                d["graph_module"]["module_call_graph"][0]["signature"],
                "out_spec",
                json.dumps([1, {"type": "os.PathLike", "context": "null", "children_spec": [{"type": None, "context": None, "children_spec": []}]}]),
            )
        ),
        "inputs and outputs of class 'os.PathLike' are not supported",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_programs(name):
    make, words = DAMAGED[name]
    with pytest.raises(RuntimeError, match=words):
        _C._export_load(make())


def test_truncated_and_flipped_files_never_crash():
    data = (RECORDED / "mlp/model.pt2").read_bytes()
    rng = random.Random(0)
    for cut in range(0, len(data), 257):
        with pytest.raises(RuntimeError):
            _C._export_load(data[:cut])
    for _ in range(300):
        flipped = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            flipped[rng.randrange(len(flipped))] = rng.randrange(256)
        try:
            _C._export_load(bytes(flipped))
        except RuntimeError:
            pass


def test_documents_with_pieces_exchanged_never_crash():
    files = parts()
    text = files[MODEL]
    document = json.loads(text)
    places = []

    def walk(value, path):
        places.append(path)
        for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            walk(part, [*path, key])

    walk(document, [])
    rng = random.Random(1)
    for _ in range(400):
        changed_document = json.loads(text)
        path, other = rng.choice(places[1:]), rng.choice(places[1:])
        target, source = changed_document, changed_document
        for key in other:
            source = source[key]
        source = json.loads(json.dumps(source))
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = rng.choice([source, None, -1, 2**62, "x", [], {}])
        files[MODEL] = json.dumps(changed_document).encode()
        try:
            _C._export_load(archive(files))
        except RuntimeError:
            pass


def test_what_is_not_read():
    with pytest.raises(RuntimeError, match="no_such_file"):
        export.load("/no_such_file.pt2")
