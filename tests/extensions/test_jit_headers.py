"""Programs over TorchScript's C++ headers compile, forward declarations of theirs included, and do what they say."""

import re
import subprocess
from pathlib import Path

from cresset.utils import cpp_extension

SOURCE = Path(__file__).parent / "sources/jit_program.cpp"
WANTED = """01010 -3
aten::mul mine::square aten::neg prim::Constant prim::Constant aten::add 2
int[2] Sized 01 prim::Constant onnx::Add aten::add
2 1
10 Tensor
Byte1 Char1 Short2 Int4 Long8 Float4 Double8 Half2 Bool1 30 1
'text' Half f(int[] x) -> () 1 Constant constant add 0
f(a, b, c)(b, c, z)(b, c) $ 3
  one
  two
  three
graph(%x : Tensor,
      %y : Tensor):
  %N : int = prim::Constant[value=1]()
  %N : Tensor = program::constant(%y)
  %N : Tensor = aten::add(%x, %N, %N)
  return (%N)
aten::add 0
10100 __torch__.a.B.___torch_mangle_B
100 12 1
1000
3
forward model.py 8 2 0
112
4
Dict(str, int[]) 1 1
f(Tensor x) -> int x
aten::relu(Tensor self) -> Tensor
0
"""


def test_a_program_of_passes(tmp_path):
    program = tmp_path / "program"
    includes = [f"-I{path}" for path in cpp_extension.include_paths()]
    libraries = [flag for path in cpp_extension.library_paths() for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
    command = [cpp_extension.get_cxx_compiler(), "-std=c++20", "-w", "-O0", "-include", "cresset_compat/namespaces.h", *includes, SOURCE, "-o", program, *libraries]
    built = subprocess.run(list(map(str, [*command, "-Wl,--no-as-needed", "-lcresset_ir", "-lcresset_cpu", "-lcresset"])), capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:3000]
    ran = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert re.sub(r"%\d+", "%N", ran.stdout) == WANTED
