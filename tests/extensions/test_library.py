"""Facts about the built libraries that their users depend on."""

import re
import subprocess
import sys
from pathlib import Path

import cresset
import pytest
from cresset.utils.cpp_extension import link_flags

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/dev/lib"
LIBRARY = FOLDER / "libcresset.so"
LIBRARIES = [LIBRARY, *(FOLDER / f"libcresset_{name}.so" for name in ("cpu", "ir", "nn"))]
of_each_library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda p: p.stem)


def read(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


def test_thread_local_data_fits_the_static_block():
    # Hot thread-local state uses the initial-exec model. Libraries that are loaded later (by Python) must then fit into
    # what the C library keeps free: 512 bytes for everyone.
    rows = [row.split() for library in LIBRARIES for row in read("readelf", "-lW", str(library)).splitlines()]
    assert sum(int(row[5], 16) for row in rows if row[:1] == ["TLS"]) <= 512


def needed(library):
    return set(re.findall(r"NEEDED.*\[(.+?)\.so", read("readelf", "-d", str(library))))


@of_each_library
def test_libraries_need_the_core_and_what_their_room_is_for(library):
    theirs = {"libcresset": set(), "libcresset_cpu": {"libcresset", "libdnnl", "libopenblas"}, "libcresset_ir": {"libcresset", "libz"},
              "libcresset_nn": {"libcresset"}}  # fmt: skip
    system = {"libstdc++", "libm", "libmvec", "libgcc_s", "libc", "ld-linux-x86-64", "ld-linux-aarch64", "libatomic"}
    assert needed(library) - system == theirs[library.stem]


def exported(library):
    return {row.split(" ", 2)[2] for row in read("nm", "-D", "--defined-only", str(library)).splitlines()}


@of_each_library
def test_only_own_names_and_the_standard_library_are_exported(library):
    # Mangled names: of this project, of instantiations of standard templates, or types of functions of built-in types.
    foreign = sorted(
        n for n in exported(library) if "cresset" not in n and not re.match(r"_Z\w*(St|Sa|Ss|9__gnu_cxx)|_ZT[IS]F[a-z]+E$", n)
    )
    assert foreign == []


def test_extension_modules_find_all_their_symbols():
    modules = {file.name.split(".")[0]: file for file in Path(cresset.__file__).parent.glob("_C*.so")}
    there = set().union(*map(exported, LIBRARIES))
    for name, others in (("_C", []), ("_C_ir", [modules["_C"]])):
        rows = [row.split() for row in read("nm", "-D", "--undefined-only", str(modules[name])).splitlines()]
        wanted = {symbol for kind, symbol in rows if kind == "U" and "7cresset" in symbol}
        assert len(wanted) > 50
        assert sorted(wanted - there.union(*map(exported, others))) == []


@of_each_library
def test_no_path_of_the_build_machine_is_inside(library):
    assert str(ROOT) not in read("strings", "-a", str(library.resolve()))


# What a program loads -------------------------------------------------------------------------------------------------

PARTS = """
import sys
def parts():
    maps = open("/proc/self/maps").read()
    return sorted(p for p in ("libcresset.so", "libcresset_cpu.so", "libcresset_ir.so", "libcresset_nn.so") if p in maps) + ["_C_ir"] * ("cresset._C_ir" in sys.modules)
"""


def run(code, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PARTS + code)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_training_does_not_load_graphs(tmp_path):
    before, trained, after = run("""
import io
import cresset, cresset.nn as nn, cresset.optim
print(parts())
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(16, 3))
optimizer = cresset.optim.SGD(net.parameters(), lr=0.1)
nn.functional.cross_entropy(net(cresset.randn(2, 1, 8, 8)), cresset.tensor([0, 2])).backward()
optimizer.step()
file = io.BytesIO()
cresset.save(net.state_dict(), file)
file.seek(0)
net.load_state_dict(cresset.load(file))
assert not hasattr(cresset._C, "__no_such_name__") and not cresset._C._is_tracing()
print(parts())
def f(x: cresset.Tensor):
    return x + 1
assert cresset.jit.script(f)(cresset.ones(1)).item() == 2
print(parts())
""", tmp_path)  # fmt: skip
    assert before == trained == "['libcresset.so', 'libcresset_cpu.so']"
    assert after == "['libcresset.so', 'libcresset_cpu.so', 'libcresset_ir.so', '_C_ir']"


def test_names_of_graphs_load_them(tmp_path):
    unknown, graph = run("""
import cresset
try:
    cresset._C.no_such_name
except AttributeError as error:
    print(error)
from cresset._C import Graph
print(Graph is cresset._C.Graph, parts()[-1])
""", tmp_path)  # fmt: skip
    assert unknown == "module 'cresset._C' has no attribute 'no_such_name'"
    assert graph == "True _C_ir"


def test_without_the_graph_part_its_names_say_how_to_build_it(tmp_path):
    missing, imported, own = run("""
import cresset
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name == "cresset._C_ir":
            raise ModuleNotFoundError("none", name=name)
sys.meta_path.insert(0, Nothing())
print(hasattr(cresset._C, "Graph"))
try:
    import cresset.jit
except ImportError as error:
    print(error)
print(cresset.ones(1).item())
""", tmp_path)  # fmt: skip
    assert (missing, own) == ("False", "1.0")
    assert imported == "cresset: the graph part (scripts, traces, lowering) is not built: cmake --build build/release builds it"


CALL = """
#include <cresset/cresset.h>
#include <cstdio>
int main() try {
  std::printf("%g\\n", cresset::ones({2}).sum().item<double>());
} catch (const std::exception& e) {
  std::printf("%s\\n", e.what());
}
"""


@pytest.mark.parametrize("flags", [["-lcresset"], link_flags(program=True)], ids=["core", "program"])
def test_a_program_without_kernels_says_how_to_link_them(flags, tmp_path):
    source, program = tmp_path / "call.cpp", tmp_path / "call"
    source.write_text(CALL)
    includes = [f"-I{ROOT}/include", f"-I{ROOT}/build/dev/gen/include"]
    read("g++", "-std=c++20", "-O0", *includes, str(source), "-o", str(program), f"-L{FOLDER}", f"-Wl,-rpath,{FOLDER}", *flags)
    lines = read(str(program)).splitlines()
    if len(flags) > 1:
        assert lines == ["2"] and not needed(program) & {"libcresset_ir", "libcresset_nn"}
    else:
        assert lines[0] == "Could not run 'aten::fill_.Scalar' with arguments from the 'CPU' backend: no kernel is registered for it."
        assert lines[-1] == (
            "No kernels of the CPU are in this program: link libcresset_cpu as well (CMake: Cresset::cresset or Cresset::cpu; pkg-config: cresset; "
            "by hand: -Wl,--no-as-needed -lcresset_cpu)."
        )
