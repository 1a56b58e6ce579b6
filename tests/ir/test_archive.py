"""Archives of scripts: files that PyTorch wrote, saving and loading, and files that are damaged or hostile."""

import inspect
import io
import math
import pickle
import struct
import zipfile
from enum import Enum
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

import archive_files as files
import numpy as np
import pytest

import cresset
from cresset import jit, nn

RECORDED = sorted(Path(__file__).with_name("archives").glob("*.pt"))


def load(data, **kwargs):
    return jit.load(io.BytesIO(data), **kwargs)


def saved(m, **kwargs):
    out = io.BytesIO()
    jit.save(m, out, **kwargs)
    return out.getvalue()


def entries(data):
    """Contents by name without the folder; what depends on nothing but the module."""
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return {i.filename.partition("/")[2]: z.read(i) for i in z.infolist()}


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]


# Files of PyTorch ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_files_give_recorded_results(path):
    recorded = np.load(path.with_suffix(".npz"))
    m = jit.load(path)
    with cresset.no_grad():
        results = flat(m(*(cresset.from_numpy(recorded[k]) for k in recorded if k.startswith("in"))))
    wanted = [recorded[k] for k in recorded if k.startswith("out")]
    assert len(results) == len(wanted) > 0
    for got, want in zip(results, wanted):
        np.testing.assert_allclose(got.numpy() if isinstance(got, cresset.Tensor) else got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_files_are_written_again_with_the_same_code_and_data(path):
    before = entries(path.read_bytes())
    after = entries(saved(jit.load(path)))
    compared = [n for n in before if n.endswith(".py") or n.startswith("data/")]
    assert compared and {n: before[n] for n in compared} == {n: after[n] for n in compared}
    assert [n for n in after if n.endswith(".py")] == [n for n in before if n.endswith(".py")]


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_saving_a_loaded_file_changes_nothing(path):
    once = saved(jit.load(path))
    assert saved(load(once)) == once


def test_recorded_modules_are_modules():
    m = jit.load(next(p for p in RECORDED if p.stem == "mlp_scripted"))
    assert [n for n, _ in m.named_parameters()] == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert m.a.weight.requires_grad and not m.training and m.original_name == "MLP"
    assert list(m.state_dict()) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    state = jit.load(next(p for p in RECORDED if p.stem == "state_scripted"))
    state(cresset.ones(2, 1))
    assert state.seen()[-1] == 2 and dict(state.named_buffers())["count"].item() == 1


# Saving ----------------------------------------------------------------------------------------------------------------


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.register_buffer("seen", cresset.zeros(3))
        self.tail = self.seen[1:]
        self.names = ["a", "b"]
        self.table = {"x": 1}
        self.pair = (1, 2.5)
        self.large = 2**40
        self.text = "h\u00e9'\n\""

    def forward(self, x: cresset.Tensor, times: int = 2, scale: float = math.inf):
        for i in range(times):
            if i == 3:
                continue
            x = self.lin(x)
        while times > 0:
            times -= 1
            x = x + 1.0
        if scale < 1e-3:
            x = x * scale
        return x, [t * 2 for t in range(3)], self.table["x"], self.text


def test_what_is_saved_is_loaded():
    m = jit.script(Counter())
    back = load(saved(m))
    x = cresset.randn(4, 2)
    for a, b in zip(flat(m(x, 5)), flat(back(x, 5))):
        assert a == b if not isinstance(a, cresset.Tensor) else cresset.equal(a, b)
    assert (back.names, back.table, back.pair, back.large, back.text) == (["a", "b"], {"x": 1}, (1, 2.5), 2**40, "h\u00e9'\n\"")
    assert back.code == m.code and saved(back) == saved(m)


def test_shared_storage_stays_shared():
    back = load(saved(jit.script(Counter())))
    back.tail.fill_(7.0)
    assert back.seen.tolist() == [0.0, 7.0, 7.0]
    assert len([n for n in entries(saved(back)) if n.startswith("data/")]) == 3  # weight, bias, and one for both views


def test_data_is_aligned_and_stored(tmp_path):
    """As in PyTorch's archives: programs that map a file read the data in place; code alone is compressed."""
    jit.save(jit.script(Counter()), tmp_path / "named.pt")
    with zipfile.ZipFile(tmp_path / "named.pt") as z:
        assert {n.split("/")[0] for n in z.namelist()} == {"named"} and z.testzip() is None
        for info in z.infolist():
            z.fp.seek(info.header_offset + 26)
            name, extra = struct.unpack("<HH", z.fp.read(4))
            code = info.filename.startswith("named/code/")
            assert info.compress_type == (zipfile.ZIP_DEFLATED if code else zipfile.ZIP_STORED) and (info.header_offset + 30 + name + extra) % 64 == 0


def test_extra_files(tmp_path):
    m = jit.script(nn.Linear(2, 2))
    m.save(tmp_path / "m.pt", _extra_files={"note.txt": "words", "raw": b"\0\xff"})
    wanted = {"note.txt": "", "raw": "", "missing": ""}
    jit.load(tmp_path / "m.pt", _extra_files=wanted)
    assert wanted == {"note.txt": b"words", "raw": b"\0\xff", "missing": b""}


def test_a_function_is_the_forward_of_a_module(tmp_path):
    @jit.script
    def twice(x, n: int = 2):
        return x * n

    twice.save(tmp_path / "f.pt")
    back = jit.load(tmp_path / "f.pt")
    assert back(cresset.ones(1)).item() == 2 and back(cresset.ones(1), n=3).item() == 3


def test_the_code_of_a_function():
    @jit.script
    def f(x, y: int):
        z = cresset.relu(x) + y
        if y > 2:
            z = z * 2
        return z

    assert f.code == (
        "def f(x: Tensor,\n    y: int) -> Tensor:\n  z = torch.add(torch.relu(x), y)\n  if torch.gt(y, 2):\n    z0 = torch.mul(z, 2)\n"
        "  else:\n    z0 = z\n  return z0\n"
    )


def test_gradients_in_a_saved_script():
    def derivatives(x: cresset.Tensor):
        x = x.detach().requires_grad_(True)
        of_squares = cresset.autograd.grad([(x * x).sum()], [x], None, True, True)[0]
        cresset.autograd.backward([(x * 3).sum()])
        return of_squares, x.grad

    script = jit.script(derivatives)
    assert "torch.autograd.grad(" in script.code and "torch.autograd.backward(" in script.code
    for f in (script, load(saved(script))):
        of_squares, of_triples = f(cresset.arange(3.0))
        assert of_squares.tolist() == [0.0, 2.0, 4.0] and of_triples.tolist() == [3.0, 3.0, 3.0]


def test_constants_that_a_text_cannot_say():
    class M(nn.Module):
        def forward(self, x):
            return x, "\u00fcber"

    m = load(saved(jit.script(M())))
    code, constants = m.code_with_constants
    assert 'return (x, CONSTANTS.c0)' in code and constants.c0 == "\u00fcber" and constants.const_mapping == {"c0": "\u00fcber"}
    assert m(cresset.ones(1))[1] == "\u00fcber"


def test_loaded_containers_keep_their_protocol():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.list = nn.ModuleList([nn.Linear(2, 3), nn.ReLU()])
            self.dict = nn.ModuleDict({"a": nn.Linear(2, 3), "b-c": nn.Identity()})

        def forward(self, x):
            for m in self.list:
                x = m(x)
            return x

    m = load(saved(jit.script(M())))
    assert len(m.list) == 2 and [c.original_name for c in m.list] == ["Linear", "ReLU"] and m.list[0] is m.list._modules["0"]
    assert list(m.dict) == ["a", "b-c"] and m.dict["b-c"].original_name == "Identity"
    with pytest.raises(TypeError, match="object is not iterable"):
        len(m)


class Side(Enum):
    LEFT = "l"
    RIGHT = "r"


class Point(NamedTuple):
    x: int
    y: float


class Mixed(nn.Module):
    """Values of every kind, and statements that have a text of their own."""

    side: Side
    empty: List[int]
    maybe: Optional[Dict[str, int]]

    def __init__(self):
        super().__init__()
        self.side = Side.RIGHT
        self.point = Point(1, 2.0)
        self.empty = []
        self.maybe = None
        self.deep = [[1], [2, 3]]
        self.device = cresset.device("cpu")
        self.number = 1 + 2j

    def forward(self, x: cresset.Tensor, n: Optional[int] = None, names: Optional[List[str]] = None):
        if names is None:
            names = ["a"]
        p = Point(2, 3.5)
        if n is not None:
            p = Point(n, -math.inf)
        total = 0
        for i, (row, name) in enumerate(zip(self.deep, names)):
            total += i + len(row) + len(name)
            if total > 10:
                return p, "early", x, self.side
        d: Dict[str, List[int]] = {}
        d["k"] = [total]
        while total < 6:
            total += 1
            if total == 4:
                break
        assert total >= 0, f"total is {total}"
        a, b = x.max(0)
        with cresset.no_grad():
            x = x * a
        if self.side == Side.LEFT:
            raise ValueError("left")
        kind = "none" if n is None else "some"
        return p, kind + str(d["k"][0]), x[..., 1:] if x.dim() > 1 else x, self.side


def test_values_and_statements_of_all_kinds():
    m = jit.script(Mixed())
    back = load(saved(m))
    x = cresset.randn(3, 4)
    for arguments in [(x,), (x, 7), (x, None, ["a", "b"]), (x, 1, ["long enough", "b"])]:
        want, got = m(*arguments), back(*arguments)
        assert tuple(want[0]) == tuple(got[0]) and want[1] == got[1] and cresset.equal(want[2], got[2])
        assert (want[3].name, want[3].value) == (got[3].name, got[3].value)
    assert (back.deep, back.empty, back.maybe, back.device, back.number) == ([[1], [2, 3]], [], None, cresset.device("cpu"), 1 + 2j)
    assert saved(back) == saved(m) and back.code == m.code


def test_map_location():
    m = load(saved(jit.script(nn.Linear(2, 2))), map_location="meta")
    assert m.weight.is_meta


def test_what_cannot_be_saved():
    with pytest.raises(TypeError, match="Linear is a module in Python. Pass it to jit.script first"):
        jit.save(nn.Linear(1, 1), io.BytesIO())
    with pytest.raises(TypeError, match="a script module or function was required; a int was given"):
        jit.save(3, io.BytesIO())
    with pytest.raises(RuntimeError, match="cannot be written: No such file or directory"):
        jit.save(jit.script(nn.Linear(1, 1)), "/nowhere/at/all.pt")


# Files that are no archives, damaged ones, hostile ones ------------------------------------------------------------------


def test_where_there_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        jit.load(tmp_path / "none.pt")
    with pytest.raises(ValueError, match="is a directory"):
        jit.load(tmp_path)


WRONG_FILES = {
    "empty": (b"", "it has only 0 bytes"),
    "no zip": (b"hello, this is no archive at all", "no end record was found"),
    "no entries": (zipfile.ZipFile(io.BytesIO(), "w") and b"PK\5\6" + bytes(18), "the zip file is empty"),
    "checkpoint": (files.archive(drop=["constants.pkl", "code/__torch__.py"]), "written by torch.save, not by torch.jit.save. Use cresset.load"),
    "other zip": (files.archive(drop=["data.pkl"]), "has no 'data.pkl'"),
    "newer": (files.archive(files={"version": b"11"}), "the file has version 11; the newest that is known is 10"),
    "no version": (files.archive(files={"version": b"ten"}), "the version 'ten' is no number"),
    "big endian": (files.archive(files={"byteorder": b"big"}), "little-endian data was required; this one has 'big'"),
    "syntax": (files.archive(code="class M(Module:\n  pass\n"), "__torch__.py"),
    "no class": (files.archive(code=""), "asks for '__torch__.M', which is not allowed"),
    "other base": (files.archive(code=files.CODE.replace("(Module)", "(Thing)")), "the base class of '__torch__.M' is unknown"),
    "unknown operator": (files.archive(code=files.CODE.replace("return x", "return torch.frobnicate(x)")), "frobnicate"),
    "python's data": (files.archive(data=b"\x80\x02]q\x00h\x00a."), "a list contains itself"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_wrong_files(name):
    data, words = WRONG_FILES[name]
    with pytest.raises((RuntimeError, NotImplementedError)) as caught:
        load(data)
    assert words in str(caught.value)


# {code: (version until which the first meaning holds, that meaning, today's)}
OLD_OPERATORS = {
    "torch.div(x, y)": (3, lambda x, y: np.trunc(x / y).astype(x.dtype), lambda x, y: x / y),
    "torch.div(x, 2)": (3, lambda x, y: np.trunc(x / 2).astype(x.dtype), lambda x, y: x / 2),
    "torch.div(x, 2.)": (3, lambda x, y: x / 2, lambda x, y: x / 2),
    "torch.div(torch.to(x, 7), y)": (3, lambda x, y: x / y, lambda x, y: x / y),
    'torch.div(x, y, rounding_mode="floor")': (3, lambda x, y: x // y, lambda x, y: x // y),
    "torch.div_(x, y)": (3, lambda x, y: np.trunc(x / y).astype(x.dtype), RuntimeError),
    "torch.div_(x, 2)": (3, lambda x, y: np.trunc(x / 2).astype(x.dtype), RuntimeError),
    "torch.mul(x, torch.div(7, 2))": (3, lambda x, y: x * 3.5, lambda x, y: x * 3.5),
    "torch.full([2], 3)": (4, lambda x, y: np.full(2, 3.0, np.float32), lambda x, y: np.full(2, 3)),
    "torch.full([2], 3, dtype=4)": (4, lambda x, y: np.full(2, 3), lambda x, y: np.full(2, 3)),
    "torch.linspace(0, 1, None)": (7, lambda x, y: np.linspace(0, 1, 100, dtype=np.float32), RuntimeError),
    "torch.linspace(0, 1, 5)": (
        7,
        lambda x, y: np.linspace(0, 1, 5, dtype=np.float32),
        lambda x, y: np.linspace(0, 1, 5, dtype=np.float32),
    ),
    "torch.full([2], 3, out=torch.zeros([2]))": (4, lambda x, y: np.full(2, 3, np.float32), lambda x, y: np.full(2, 3, np.float32)),
    "torch.linspace(0, 1, None, out=torch.zeros([0]))": (7, lambda x, y: np.linspace(0, 1, 100, dtype=np.float32), RuntimeError),
    "torch.logspace(0, 1, None, 2., out=torch.zeros([0]))": (8, lambda x, y: np.logspace(0, 1, 100, base=2, dtype=np.float32), RuntimeError),
    "torch.logspace(0, 1, None, 2.)": (8, lambda x, y: np.logspace(0, 1, 100, base=2, dtype=np.float32), RuntimeError),
    "torch.logspace(0, 1, 3)": (
        8,
        lambda x, y: np.logspace(0, 1, 3, dtype=np.float32),
        lambda x, y: np.logspace(0, 1, 3, dtype=np.float32),
    ),
    "torch.gelu(torch.mul(x, 0.))": (9, lambda x, y: x * np.float32(0), lambda x, y: x * np.float32(0)),
}


@pytest.mark.parametrize("code", OLD_OPERATORS)
def test_operators_mean_what_they_meant_in_the_file_version(code):
    last, *meanings = OLD_OPERATORS[code]
    text = files.CODE.replace("x: Tensor", "x: Tensor, y: Tensor").replace("return x", "return " + code)
    for version, meaning in ((1, meanings[0]), (last, meanings[0]), (last + 1, meanings[1]), (10, meanings[1])):
        x, y = np.array([7, -7, 9]), np.array([2, 2, -4])
        data = files.archive(data=files.module(files.TRAINING), code=text, files={"version": b"%d" % version})

        def result(data):
            return load(data)(cresset.from_numpy(x.copy()), cresset.from_numpy(y)).numpy()

        if meaning is RuntimeError:
            with pytest.raises(RuntimeError):
                result(data)
            continue
        got, want = result(data), meaning(x, y)
        np.testing.assert_allclose(got, want, rtol=1e-5)
        assert got.dtype.kind == want.dtype.kind
        np.testing.assert_array_equal(result(saved(load(data))), got)  # today's version says the same


def test_old_meanings_stand_in_the_graph():
    text = files.CODE.replace("return x", "return torch.div(torch.div(x, x), 2)")
    m = load(files.archive(data=files.module(files.TRAINING), code=text, files={"version": b"3"}))
    assert "upgraders" not in m.code and str(m.graph).count("prim::If") >= 2
    assert "upgraders" not in load(saved(m)).code and load(saved(m)).code == m.code


VERSIONS = {
    "x + 1": 3, "x / 2": 4, "x.size(0) / 2 + x": 3, "cresset.full([2], 1.0)": 5, "cresset.full([2], 1.0, out=x)": 5, "cresset.linspace(0, 1, 3)": 8,
    "cresset.logspace(0, 1, 3)": 9, "cresset.nn.functional.gelu(x / 2)": 10, "cresset.arange(3)": 3,
}  # fmt: skip


@pytest.mark.parametrize("code", VERSIONS)
def test_the_oldest_version_that_means_the_same(code):
    """As PyTorch's: a program that knows no newer operators reads the file."""
    unit = cresset.jit.CompilationUnit(f"def f(x):\n    return {code}".replace("cresset.", "torch."))
    data = io.BytesIO()
    cresset.jit.save(unit.f, data)
    with zipfile.ZipFile(data) as file:
        assert int(file.read(next(n for n in file.namelist() if n.endswith("/version")))) == VERSIONS[code]


# Places ----------------------------------------------------------------------------------------------------------------


class Halves(nn.Module):
    def forward(self, x: cresset.Tensor):
        y = x + 1

        return y.view(2, -1) * 2


PLACE = inspect.getsourcelines(Halves.forward)[1] + 3


def error_of(m):
    with pytest.raises(RuntimeError) as caught:
        m(cresset.ones(3))
    return str(caught.value)


def test_errors_show_the_python_file():
    wanted = f'File "{__file__}", line {PLACE}'
    m = jit.script(Halves())
    assert wanted in error_of(m)
    once = load(saved(m))
    text = error_of(once)
    assert wanted in text and "y.view(2, -1)" in text and "code/__torch__" not in text
    assert error_of(load(saved(once))) == text
    assert f"{__file__}:{PLACE}:" in str(once.graph)


def test_files_without_places_show_their_own_code():
    text = files.CODE.replace("return x", "return torch.view(x, [2, -1])")
    assert 'File "code/__torch__.py", line 7' in error_of(
        load(files.archive(data=files.module(files.TRAINING), code=text))
    )


def _maps(*places, texts=("x\n", "f.py"), head="FORMAT_WITH_STRING_TABLE"):
    return pickle.dumps((head, texts, places), 2)


def _source(lines=(0,), name=1, line=5):
    return (list(lines), name, line)


WRONG_MAPS = {
    "no pickle": (b"words", "code/__torch__.py.debug_pkl"),
    "number": (pickle.dumps(3, 2), "something else where a tuple was required"),
    "format": (_maps(head="OTHER"), "another format"),
    "order": (_maps((9, (_source(), 0, 1), 0), (3, (_source(), 0, 1), 0)), "places that are not in order"),
    "text": (_maps((0, (_source([7]), 0, 1), 0)), "a text that is not in its table"),
    "name": (_maps((0, (_source(name=-1), 0, 1), 0)), "where a number was required"),
    "outside": (_maps((0, (_source(), 0, 99), 0)), "a place outside of its source"),
    "backwards": (_maps((0, (_source(), 2, 1), 0)), "a place outside of its source"),
    "parts": (_maps((0, (_source(), 0), 0)), "something else where a tuple was required"),
    "large": (_maps((0, (_source([0] * 300), 0, 1), 0), texts=("x" * 2**20, "f.py")), "more text than its"),
}


@pytest.mark.parametrize("name", WRONG_MAPS)
def test_wrong_maps_of_places_are_ignored_with_a_warning(name):
    data, words = WRONG_MAPS[name]
    with pytest.warns(UserWarning) as caught:
        m = load(files.archive(data=files.module(files.TRAINING), files={"code/__torch__.py.debug_pkl": data}))
    assert len(caught) == 1 and words in str(caught[0].message)
    assert str(caught[0].message).endswith("It is ignored: errors show the code of the archive.")
    assert m(cresset.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("compress", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_stored_and_deflated_files_load(compress):
    data = files.archive(data=files.module(files.TRAINING), compress=compress)
    assert load(data)(cresset.ones(2)).tolist() == [1.0, 1.0]


def test_truncated_files_say_so():
    data = RECORDED[0].read_bytes()
    for size in {*range(0, len(data), 997), *range(len(data) - 200, len(data))}:
        with pytest.raises(RuntimeError, match="archive: "):
            load(data[:size])


def test_changed_bytes_never_crash():
    """Any byte of a small archive changed: it loads or it raises."""
    data = files.archive(data=files.module(files.TRAINING), compress=zipfile.ZIP_DEFLATED)
    raised = 0
    for at in range(len(data)):
        for bit in (1, 0x80):
            broken = bytearray(data)
            broken[at] ^= bit
            try:
                load(bytes(broken))
            except Exception as error:
                assert type(error).__module__ in ("builtins", "cresset._C") and str(error)
                raised += 1
    assert raised > len(data)


def weight(pickled):
    """An archive whose module has one tensor attribute."""
    code = files.CODE.replace("  training : bool\n", "  training : bool\n  w : Tensor\n")
    return files.archive(files.module(files.TRAINING + files.text("w") + pickled), code, files={"data/0": struct.pack("<2f", 1, 2)})


def attribute(kind, pickled):
    code = files.CODE.replace("  training : bool\n", f"  training : bool\n  v : {kind}\n")
    return files.archive(files.module(files.TRAINING + files.text("v") + pickled), code)


def test_hand_made_archives_load():
    assert load(weight(files.tensor())).w.tolist() == [1.0, 2.0]
    assert load(weight(files.tensor(sizes=(2, 2), strides=(0, 1)))).w.tolist() == [[1.0, 2.0]] * 2
    assert load(attribute("int", b"\x8a\x08" + struct.pack("<q", -(2**62)))).v == -(2**62)


def fact(name, value=b"\x88"):
    pickled = b"}(" + files.text(name) + value + b"u"
    return files.glob("torch.jit._pickle", "restore_type_tag") + pickled + files.text("Dict[str, bool]") + b"\x86R"


def test_facts_say_how_elements_are_read():
    assert load(weight(files.tensor(facts=fact("neg")))).w.tolist() == [-1.0, -2.0]
    assert load(weight(files.tensor(facts=fact("neg", b"\x89")))).w.tolist() == [1.0, 2.0]
    conjugated = files.tensor(kind="ComplexFloatStorage", sizes=(1,), elements=1, facts=fact("conj"))
    assert load(weight(conjugated)).w.tolist() == [1 - 2j]
    assert load(weight(files.tensor(facts=b"N"))).w.tolist() == [1.0, 2.0]


SCALE = files.glob("torch", "per_tensor_affine") + b"G" + struct.pack(">d", 0.5) + b"K\x03"


def test_quantized_tensors():
    read = load(weight(files.quantized(SCALE))).w
    assert read.dtype is cresset.quint8 and read.int_repr().flatten().tolist() == list(struct.pack("<2f", 1, 2)) and (read.q_scale(), read.q_zero_point()) == (0.5, 3)
    rows = files.glob("torch", "per_channel_affine") + files.tensor(kind="ByteStorage", sizes=(1,), elements=8) * 2 + b"K\x00"
    with pytest.raises(RuntimeError, match="_quantized::of_parts: 2 scales were required; got a tensor of size .1.."):
        load(weight(files.quantized(rows)))
    with pytest.raises(RuntimeError, match="_quantized::of_parts: an axis from 0 to 1 was required; got 5."):
        load(weight(files.quantized(rows[:-1] + b"\x05")))
    with pytest.raises(RuntimeError, match="quantize_tensor_per_tensor_affine zero_point 300 is above upper bound."):
        load(weight(files.quantized(SCALE[:-2] + b"M" + struct.pack("<H", 300))))


SYSTEM = files.glob("os", "system") + b"(" + files.text("touch /tmp/owned") + b"tR"
HOSTILE = {
    "os.system": (attribute("int", SYSTEM), "asks for 'os.system', which is not allowed"),
    "eval": (attribute("int", files.glob("builtins", "eval") + b"(" + files.text("1") + b"tR"), "asks for 'builtins.eval', which is not allowed"),
    "a method": (attribute("int", files.glob("__torch__.M", "forward") + b")R"), "asks for '__torch__.M.forward', which is not allowed"),
    "inst": (attribute("int", b"(ios\nsystem\n"), "the instruction 105 is not allowed"),
    "quantized numbers": (weight(files.tensor(kind="QInt8Storage")), "a tensor is not described as one"),
    "numbers as quantized": (weight(files.quantized(SCALE, kind="ByteStorage")), "a tensor is not described as one"),
    "four bits": (weight(files.quantized(SCALE, kind="QUInt4x2Storage")), "quantized tensors of less than eight bits an element"),
    "too many quantized": (weight(files.quantized(SCALE, sizes=(3, 4))), "does not fit its storage"),
    "no scheme": (weight(files.quantized(b"K\x01" + SCALE[-11:])), "a tensor is quantized by an unknown scheme"),
    "a scheme of rows": (weight(files.quantized(files.glob("torch", "per_channel_affine") + SCALE[-11:])), "how a tensor is quantized is not described as that"),
    "a zero point outside": (weight(files.quantized(SCALE[:-1] + b"\xff" + b"K\x01")), "how a tensor is quantized is not described as that"),
    "huge sizes": (weight(files.tensor(sizes=(2**62, 2**62), strides=(1, 1))), "a tensor has an impossible shape"),
    "huge stride": (weight(files.tensor(sizes=(3,), strides=(2**62,))), "impossible shape"),
    "negative size": (weight(files.tensor(sizes=(-1,))), "impossible shape"),
    "too long": (weight(files.tensor(sizes=(3,))), "a tensor of 3 elements does not fit its storage"),
    "offset": (weight(files.tensor(offset=1)), "does not fit its storage"),
    "negative offset": (weight(files.tensor(offset=-1)), "impossible shape"),
    "elements": (weight(files.tensor(elements=2**61)), "should have 2305843009213693952 elements; its data has 8 bytes"),
    "no storage": (weight(files.tensor(key="7")), "the data of the tensor storage 'data/7' is missing"),
    "other folder": (weight(files.tensor(key="../code/__torch__.py")), "is missing"),
    "integer with grad": (weight(files.tensor(kind="LongStorage", sizes=(1,), elements=1, grad=b"\x88")), "a tensor of integers requires a gradient"),
    "facts of a list": (weight(files.tensor(facts=b"]")), "the facts about a tensor are no dict"),
    "a fact that is none": (weight(files.tensor(facts=b"}(" + files.text("neg") + b"K\x01u")), "a fact about a tensor is no name with a bool"),
    "wrong type": (attribute("int", files.text("three")), "the attribute 'v' of an object of '__torch__.M' is of type 'int'; the file has a value of type 'str'"),
    "no attribute": (files.archive(files.module(files.TRAINING + files.text("q") + b"N")), "has no attribute 'q', for which the file has a value"),
    "missing attribute": (files.archive(files.module()), "the attribute 'training' of an object of '__torch__.M' is of type 'bool'; the file has a value of type 'NoneType'"),
    "deep": (attribute("Any", b"]" * 3000 + b"a" * 2999), "nest more than 1000 deep"),
    "deep tuples": (attribute("Any", b")" + b"\x85" * 3000), "nest more than 1000 deep"),
    "bomb": (attribute("Any", b")" + b"q\x01h\x01\x86" * 40), "it stands for too many values"),
    "itself": (attribute("Any", b"]q\x01}q\x02(" + files.text("a") + b"h\x01uah\x01h\x02a"), "changed after it was put into another one"),
    "long string": (attribute("str", b"X\xff\xff\xff\xffabc"), "it ends too early"),
    "no mark": (attribute("int", b"t"), "a mark is missing"),
    "empty stack": (files.archive(b"\x80\x02t."), "a mark is missing"),
    "memo": (attribute("int", b"h\x63"), "refers to something that it has not made"),
    "big integer": (attribute("int", b"\x8a\x09" + bytes(9)), "more than 64 bits"),
    "protocol": (files.archive(b"\x80\x09N."), "protocol 9 is unknown"),
    "a name as value": (attribute("Any", files.glob("torch", "device")), "a name stands where a value should"),
    "twice": (files.archive(files.module(files.TRAINING + files.TRAINING)), "a key is in a dict twice"),
    "class as object": (files.archive(b"\x80\x02" + files.glob("__torch__", "M") + b"."), "a name stands where a value should"),
    "no module": (files.archive(b"\x80\x02K\x01."), "data.pkl has no module but a value of type 'int'"),
    "type text": (attribute("Any", files.glob("torch.jit._pickle", "restore_type_tag") + b"](K\x01e" + files.text("List[str]") + b"\x86R"), "a value is not of its type 'List[str]'"),
}  # fmt: skip


def test_a_saved_device_that_is_not_here():
    data = weight(files.tensor(device="npu:3"))
    with pytest.raises(RuntimeError, match="Expected one of"):
        load(data)
    assert load(data, map_location="cpu").w.device.type == "cpu"
    with pytest.raises(RuntimeError, match="Invalid device string: '/tmp/x'"):  # a path is no name, whatever lies there
        load(weight(files.tensor(device="/tmp/x")))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles(name):
    data, words = HOSTILE[name]
    with pytest.raises((RuntimeError, NotImplementedError, AttributeError)) as caught:
        load(data)
    assert words in str(caught.value)


def test_zip_files_that_claim_what_they_do_not_have():
    data = bytearray(files.archive(files={"extra/big": bytes(1 << 20)}, compress=zipfile.ZIP_DEFLATED))
    at = data.find(b"PK\1\2", data.find(b"PK\1\2"))
    struct.pack_into("<I", data, at + 24, 1 << 31)  # the size of the first entry
    with pytest.raises(RuntimeError, match="'m/data.pkl' cannot have 2147483648 bytes"):
        load(bytes(data))
    data = bytearray(files.archive())
    second = data.find(b"PK\1\2", data.find(b"PK\1\2") + 4)
    struct.pack_into("<I", data, second + 42, 0)  # the second entry's place is the first's
    with pytest.raises(RuntimeError, match="has another name in its place"):
        load(bytes(data))
    data = bytearray(files.archive())
    struct.pack_into("<H", data, len(data) - 14 + 2, 60000)  # more entries than the table can have
    with pytest.raises(RuntimeError, match="archive: "):
        load(bytes(data))
    changed = bytearray(files.archive())
    changed[changed.find(b"class M")] ^= 1
    with pytest.raises(RuntimeError, match="the contents of 'm/code/__torch__.py' do not have their checksum"):
        load(bytes(changed))
