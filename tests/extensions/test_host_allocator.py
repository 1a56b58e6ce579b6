"""What sources for PyTorch derive from and call around host memory of their devices."""

import os
import subprocess
from pathlib import Path

from cresset.utils import cpp_extension

SOURCE = Path(__file__).parent / "sources/host_allocator.cpp"


def test_blocks_are_kept_and_wait_for_streams(tmp_path):
    program = tmp_path / "program"
    includes = [f"-I{path}" for path in cpp_extension.include_paths()]
    libraries = [flag for path in cpp_extension.library_paths() for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
    command = [cpp_extension.get_cxx_compiler(), "-std=c++20", "-w", "-O0", *includes, SOURCE, "-o", program, *libraries]
    built = subprocess.run(list(map(str, [*command, "-Wl,--no-as-needed", "-lcresset_cpu", "-lcresset", "-lcresset_nn"])), capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:3000]
    settings = "max_split_size_mb:64, roundup_power2_divisions:[256:1,>:4],garbage_collection_threshold:0.8,expandable_segments:True"
    ran = subprocess.run([program], env={**os.environ, "PYTORCH_ALLOC_CONF": settings}, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "1 1 0\n0 1 2 2 0 3\n64 0.8 1 0 20\n3 2\n"
    ran = subprocess.run([program], env={**os.environ, "PYTORCH_ALLOC_CONF": "max_split_size_mb:many"}, capture_output=True, text=True, timeout=300)
    assert ran.returncode and "PYTORCH_ALLOC_CONF: a number was required; 'many' was given." in ran.stderr
