"""Options of the build that choose what is compiled."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def compiled_isas(folder, option, processor="x86_64"):
    """(status, what CMake said, the header that tells kernels their instruction sets)."""
    script = folder / "run.cmake"
    script.write_text(f'set(CRESSET_CPU_ISAS "{option}")\nset(CRESSET_GEN_DIR {folder})\nset(CMAKE_SYSTEM_PROCESSOR {processor})\n'
                      f'set(CMAKE_CXX_COMPILER c++)\ninclude({ROOT}/cmake/CressetIsas.cmake)\n')
    cmake = re.search("^CMAKE_COMMAND:INTERNAL=(.*)$", (ROOT / "build/dev/CMakeCache.txt").read_text(), re.M)[1]
    done = subprocess.run([cmake, "-P", str(script)], capture_output=True, text=True)
    header = folder / "src/cpu/compiled_isas.h"
    return done.returncode, done.stderr, header.read_text() if header.exists() else ""


def test_all_instruction_sets(tmp_path):
    status, _, text = compiled_isas(tmp_path, "all")
    assert status == 0
    assert "CRESSET_COMPILED_ISAS Isa::Baseline, Isa::Avx2, Isa::Avx512, \n" in text
    assert "isa() == Isa::Avx512 ? avx512::NAME : isa() == Isa::Avx2 ? avx2::NAME : baseline::NAME)" in text


def test_a_list_of_instruction_sets(tmp_path):
    status, _, text = compiled_isas(tmp_path, "baseline;avx512")
    assert status == 0
    assert "{&::cresset::cpu::baseline::NAME, nullptr, &::cresset::cpu::avx512::NAME, }" in text


def test_the_instruction_set_of_this_machine(tmp_path):
    status, _, text = compiled_isas(tmp_path, "native")
    assert status == 0
    flags = Path("/proc/cpuinfo").read_text()
    best = "Avx512" if "avx512vl" in flags else "Avx2" if " avx2 " in flags else "Baseline"
    assert f"CRESSET_COMPILED_ISAS Isa::{best}, \n" in text


def test_another_processor(tmp_path):
    status, _, text = compiled_isas(tmp_path, "all", "aarch64")
    assert status == 0
    assert '#define CRESSET_ISA_ROWS {"neon", [] { return true; }}, \n' in text and "((void)isa(), neon::NAME)" in text
    assert "#define CRESSET_ISA_HAS_NEON 1" in (tmp_path / "src/cpu/isa_target.h").read_text()
    status, said, _ = compiled_isas(tmp_path, "avx2", "aarch64")
    assert status != 0 and "a list of neon was required; 'avx2' was given" in " ".join(said.split())


def test_an_unknown_instruction_set(tmp_path):
    status, said, text = compiled_isas(tmp_path, "avx2;sse9")
    assert status != 0 and text == ""
    assert "CRESSET_CPU_ISAS: all, native, or a list of baseline, avx2, avx512 was required; 'sse9' was given." in " ".join(said.split())


def test_a_folder_without_libraries_for_aarch64(tmp_path):
    cmake = re.search("^CMAKE_COMMAND:INTERNAL=(.*)$", (ROOT / "build/dev/CMakeCache.txt").read_text(), re.M)[1]
    command = [cmake, "-D", f"CRESSET_ARM64_SYSROOT={tmp_path}", "-P", str(ROOT / "cmake/arm64.cmake")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"{tmp_path} has no libraries for AArch64. `CRESSET_SETUP_ARM=1 tools/setup` makes it;" in " ".join(done.stderr.split())
    (tmp_path / "usr/lib/aarch64-linux-gnu").mkdir(parents=True)
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_a_preset_that_is_configured_only_leaves_the_package(tmp_path):
    cache = (ROOT / "build/dev/CMakeCache.txt").read_text()
    cmake = re.search("^CMAKE_COMMAND:INTERNAL=(.*)$", cache, re.M)[1]
    info = ROOT / "python/cresset/_build_info.py"
    before = info.read_text()
    subprocess.run([cmake, "--preset", "release", "-B", str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    assert (tmp_path / "_build_info.py").exists()  # for the module of this build, which brings it along when it is linked
    assert info.read_text() == before
    assert str(tmp_path) not in before
