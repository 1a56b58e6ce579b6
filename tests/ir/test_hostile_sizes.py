"""Texts and files that nest deeply or stand for much: errors, with little memory, also on small stacks."""

import os
import io
import pickle
import subprocess
import sys
import zipfile

import cresset
import pytest

SOURCES = {
    "True and ...": ("def f(x: bool) -> bool:\n    return " + "True and " * 20_000 + "x\n", True),
    "x and ...": ("def f(x: bool) -> bool:\n    return " + "x and " * 20_000 + "x\n", None),
    "x or ...": ("def f(x: bool) -> bool:\n    return " + "x or " * 20_000 + "x\n", None),
    "not ...": ("def f(x: bool) -> bool:\n    return " + "not " * 20_000 + "x\n", None),
    "brackets": ("def f(x: bool) -> bool:\n    return " + "(" * 5000 + "x" + ")" * 5000 + "\n", None),
    "sums": ("def f(x: bool) -> int:\n    return " + "1 + " * 20_000 + "1\n", None),
    "methods": ("def f(x: bool) -> Tensor:\n    return torch.ones(1)" + ".abs()" * 20_000 + "\n", None),
    "many statements": ("def f(x: bool) -> int:\n    y = 0\n" + "    y = y + 1\n" * 5000 + "    return y\n", 5000),
    "functions, first to last": (
        "".join(f"def f{i}(x: bool) -> bool:\n    return f{i + 1}(x)\n" for i in range(5000)) + "def f5000(x: bool) -> bool:\n    return x\ndef f(x: bool) -> bool:\n    return f0(x)\n",
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_deep_sources(name):
    source, result = SOURCES[name]
    if result is not None:
        assert cresset.jit.CompilationUnit(source).f(True) == result
        return
    try:
        cresset.jit.CompilationUnit(source).f(True)
    except RuntimeError as error:
        assert any(word in str(error) for word in ("deep", "recursi", "too many nested")), error


SMALL = """
import sys, threading
import cresset
source = sys.stdin.read()
ready = cresset.jit.CompilationUnit("def f(x: int) -> int:\\n    for i in range(3):\\n        x += i\\n    return x")
a = cresset.randn(70, 80)
image, weight = cresset.randn(2, 3, 12, 12), cresset.randn(4, 3, 3, 3)
errors = []
def work():
    try:
        assert ready.f(1) == 4
        ((a @ a.T).exp().softmax(1).sort().values.sum(), cresset.linalg.svd(a), cresset.fft.fft(a), cresset.nn.functional.conv2d(image, weight))
        x = cresset.ones(3, requires_grad=True)
        (x * x).sum().backward()
        cresset.jit.CompilationUnit(source)
    except RuntimeError as error:
        errors.append(str(error).strip().splitlines()[0][:100])
threading.stack_size(KIB << 10)
t = threading.Thread(target=work)
t.start()
t.join()
print(errors)
"""


FRAMES = 4 if "asan" in os.environ.get("LD_PRELOAD", "") else 1  # how much larger a sanitizer makes them


@pytest.mark.parametrize("kib", [64, 128, 512])
@pytest.mark.parametrize("name", ["True and ...", "brackets", "functions, first to last"])
def test_small_stacks(name, kib):
    done = subprocess.run([sys.executable, "-c", SMALL.replace("KIB", str(kib * FRAMES))], input=SOURCES[name][0], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


def archive(**entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if entries.pop("deflated", False) else zipfile.ZIP_STORED) as z:
        for name, content in ({"version": b"3\n", "constants.pkl": b"\x80\x02)."} | entries).items():
            z.writestr(f"a/{name}", content)
    return out.getvalue()


def keys_in_many_dicts():
    """One long key in many dicts."""
    key = b"X" + (100_000).to_bytes(4, "little") + b"k" * 100_000 + b"q\x00"
    return archive(**{"data.pkl": b"\x80\x02(" + key + b"0" + b"}h\x00K\x01s" * 150_000 + b"t."})


def empty_containers():
    return archive(**{"data.pkl": b"\x80\x02(" + b"]" * 1_000_000 + b"t."})


def tensors_of_one_storage():
    described = b"\x80\x02c\x74orch._utils\n_rebuild_tensor_v2\nq\x00"
    storage = b"(X\x07\x00\x00\x00storageq\x01ctorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ"
    arguments = b"(" + storage + b"K\x00K\x01\x85K\x01\x85\x89ccollections\nOrderedDict\n)Rtq\x02"
    return archive(**{"data.pkl": described + b"0" + arguments + b"0(" + b"h\x00h\x02R" * 200_000 + b"t.", "data/0": b"\0" * 4})


def zeros():
    return archive(deflated=True, **{"data.pkl": pickle.dumps({}, 2), "extra/zeros": bytes(1 << 28)})


@pytest.mark.parametrize("make", [keys_in_many_dicts, empty_containers, tensors_of_one_storage, zeros])
def test_small_archives_take_little_memory(make, tmp_path):
    file = tmp_path / "bomb.pt"
    file.write_bytes(make())
    assert file.stat().st_size < 1_700_000
    done = subprocess.run([sys.executable, "-c", f"""
import resource, cresset
cresset.jit
cresset._C._load_graph_part()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    cresset.jit.load({str(file)!r})
except RuntimeError as error:
    print(str(error)[:300])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""], capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    *said, grown = done.stdout.splitlines()
    assert said and int(grown) < 450, done.stdout


def test_a_limit_of_the_callers_own_takes_the_budgets_place():
    bomb = io.BytesIO(empty_containers())
    with pytest.raises(RuntimeError, match=r"limits=cresset\.jit\.Limits\(memory="):
        cresset.jit.load(bomb)
    bomb.seek(0)
    with pytest.raises(RuntimeError, match="has no module"):
        cresset.jit.load(bomb, limits=cresset.jit.Limits(memory=4 << 30))
