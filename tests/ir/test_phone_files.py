"""jit.mobile: files with bytecode, beside PyTorch's runtime for phones where CRESSET_ORACLE_PYTHON names an interpreter that has it."""

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Dict, List

import pytest

import cresset
from cresset import jit, nn
from cresset.jit import mobile
from cresset.jit.mobile._pickled import read_plain

ORACLE = os.environ.get("CRESSET_ORACLE_PYTHON")
PROGRAM = Path(__file__).with_name("phone_programs.py")
FOREIGN = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}


def run(python, package, todo, folder):
    env = FOREIGN if python == ORACLE else None
    done = subprocess.run([python, PROGRAM, package, todo, folder], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("reader", ["cresset", "torch"])
@pytest.mark.parametrize("writer", ["cresset", "torch"])
def test_files_of_either_package_run_in_both(tmp_path, writer, reader):
    if "torch" in (writer, reader) and not ORACLE:
        pytest.skip("CRESSET_ORACLE_PYTHON is not set")
    python = {"cresset": sys.executable, "torch": ORACLE}
    run(python[writer], writer, "write", tmp_path)
    said = run(python[reader], reader, "check", tmp_path)
    assert len(said) >= 11
    assert [line for line in said if not line.endswith(" same")] == []


def lite(module):
    return mobile._load_for_lite_interpreter(io.BytesIO(jit.script(module)._save_to_buffer_for_lite_interpreter()))


NAME = f"__torch__.{__name__}.Steps"


class Steps(nn.Module):
    def forward(self, x, n: int = 2):
        for _ in range(n):
            if n > 1:
                x = x + x
        return [x], n


def test_instructions():
    # PyTorch's runtime runs these: the jumps, the registers and the two numbers of LOOP are what it asks for.
    data = jit.script(Steps())._save_to_buffer_for_lite_interpreter()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        version, (name, code, schema) = read_plain(archive.read("archive/bytecode.pkl"))
    assert (version, name) == (8, NAME + ".forward")
    assert dict(code) == {
        "instructions": (
            ("STOREN", 1, 3), ("DROPR", 1, 0), ("LOADC", 0, 0), ("LOAD", 3, 0), ("LOADC", 1, 0), ("MOVE", 2, 0), ("LOOP", 18, 3),
            ("STOREN", 4, 2), ("DROPR", 4, 0), ("LOAD", 3, 0), ("LOADC", 2, 0), ("OP", 0, 0), ("JF", 6, 0), ("LOAD", 5, 0), ("LOAD", 5, 0),
            ("LOADC", 2, 0), ("OP", 1, 0), ("JMP", 2, 0), ("LOAD", 5, 0), ("STORE", 8, 0), ("DROPR", 5, 0), ("LOADC", 1, 0), ("MOVE", 8, 0),
            ("JMP", -17, 0), ("LIST_CONSTRUCT", 0, 1), ("MOVE", 3, 0), ("TUPLE_CONSTRUCT", 2, 0), ("RET", 0, 0),
        ),
        "operators": (("aten::gt", "int", 2), ("aten::add", "Tensor", 3)), "constants": (0, True, 1), "types": ("List[Tensor]",),
        "register_size": 11,
    }  # fmt: skip
    assert dict(schema) == {
        "arguments": (
            (("name", "self"), ("type", NAME), ("default_value", None)),
            (("name", "x"), ("type", "Tensor"), ("default_value", None)),
            (("name", "n"), ("type", "int"), ("default_value", 2)),
        ),
        "returns": ((("name", ""), ("type", "Tuple[List[Tensor], int]"), ("default_value", None)),),
    }


def test_every_jump_stays_inside_and_every_register_is_written_before_it_is_read():
    data = jit.script(Steps())._save_to_buffer_for_lite_interpreter()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        code = dict(read_plain(archive.read("archive/bytecode.pkl"))[1][1])
    written = set()
    for at, (name, x, n) in enumerate(code["instructions"]):
        if name in ("JF", "JMP", "LOOP"):
            assert 0 <= at + x < len(code["instructions"])
        elif name in ("STORE", "STOREN"):
            written |= set(range(x, x + max(n, 1)))
        elif name in ("LOAD", "MOVE", "DROPR"):
            assert x in written
    assert max(written) <= code["register_size"]


def test_a_loaded_model():
    m = lite(Steps())
    assert isinstance(m, mobile.LiteScriptModule)
    for call in (m, m.forward, lambda *a: m.run_method("forward", *a)):
        assert call(cresset.ones(1))[0][0].item() == 4.0
    assert m(cresset.ones(1), 3)[0][0].item() == 8.0
    assert m.find_method("forward") and not m.find_method("nope")
    with pytest.raises(RuntimeError, match=r"Method 'nope' is not defined\."):
        m.run_method("nope")
    assert mobile._export_operator_list(m) == {"aten::gt.int", "aten::add.Tensor"}


def test_what_a_file_says():
    data = jit.script(Steps())._save_to_buffer_for_lite_interpreter(_extra_files={"a": "b"})
    assert mobile._get_model_bytecode_version(io.BytesIO(data)) == 8
    assert {k: v.num_schema_args for k, v in mobile._get_model_ops_and_info(io.BytesIO(data)).items()} == {"aten::gt.int": 2, "aten::add.Tensor": 3}
    assert mobile._get_mobile_model_contained_types(io.BytesIO(data)) == {"List[Tensor]"}
    files = {"a": ""}
    again = jit.load(io.BytesIO(data), _extra_files=files)
    assert files["a"] == b"b" and again(cresset.ones(1))[1] == 2


def test_constants_share_records_with_the_code():
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(64, 64)

        def forward(self, x):
            return self.lin(x)

    data = jit.freeze(jit.script(Frozen().eval()))._save_to_buffer_for_lite_interpreter()
    assert 4 * 64 * 64 < len(data) < 2 * 4 * 64 * 64


def test_refusals(tmp_path):
    plain = io.BytesIO()
    jit.save(jit.script(Steps()), plain)
    for read in (mobile._load_for_lite_interpreter, mobile._get_model_bytecode_version):
        with pytest.raises(RuntimeError, match=r"a file with bytecode was required; it has no bytecode\.pkl"):
            read(io.BytesIO(plain.getvalue()))
        with pytest.raises(RuntimeError, match="Unrecognized data format"):
            read(io.BytesIO(b"abc"))
        with pytest.raises(ValueError, match="The provided filename /nonexistent does not exist"):
            read("/nonexistent")
        with pytest.raises(ValueError, match="is a directory"):
            read(tmp_path)
    with pytest.raises(ValueError, match="map_location should be either None, string or torch.device, but got type: <class 'int'>"):
        mobile._load_for_lite_interpreter(io.BytesIO(plain.getvalue()), map_location=3)
    with pytest.raises(NotImplementedError, match="flatbuffers are not part of Cresset"):
        jit.script(Steps())._save_to_buffer_for_lite_interpreter(_use_flatbuffer=True)


class Other:
    def __init__(self) -> None:
        self.x = 1


class UsesOther(nn.Module):
    def forward(self):
        return Other().x


class Forks(nn.Module):
    def forward(self, x):
        return jit.wait(jit.fork(cresset.neg, x))


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Steps()


class ListOfModules(Holder):
    def forward(self):
        found: List[Steps] = [self.inner]
        return found


class DictOfModules(Holder):
    def forward(self):
        found: Dict[int, Steps] = {1: self.inner}
        return found


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (UsesOther, r"Workaround: instead of using arbitrary class type \(class Other\(\)\), define a pytorch class "
                    r"\(class Other\(torch\.nn\.Module\)\)\. The problematic type is: "),
        (Forks, r"FORK is not supported in mobile module\."),
        (ListOfModules, r"^Returning a list or dictionary with pytorch class type is not supported in mobile module "
                        r"\(List\[Steps\] or Dict\[int, Steps\] for class Steps\(torch\.nn\.Module\)\)\. Workaround: "),
        (DictOfModules, r"^Returning a list or dictionary with pytorch class type is not supported in mobile module "),
    ],
)  # fmt: skip
def test_what_phones_cannot_run(module, words):
    with pytest.raises(RuntimeError, match=words):
        jit.script(module())._save_to_buffer_for_lite_interpreter()
