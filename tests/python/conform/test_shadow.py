"""The shadow run: agrees, or stops at the first wrong operator with a script that shows the difference by itself."""

import os
import subprocess
import sys


def python(path):
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=os.environ)


def test_models_agree(conform):
    conform("--shadow", "gpt")
    assert conform.status == 0 and conform.out.startswith("gpt on tin: all ") and conform.out.endswith(" calls agree with the CPU\n")


def test_first_wrong_operator(conform, wrong_relu, tmp_path):
    conform("--shadow", "mlp", "--reproduce", "scripts", load=[conform.tin, wrong_relu])
    assert conform.status == 1
    first, last = conform.out.splitlines()
    assert " calls that agree: aten::relu.out: result 0: Tensor-likes are not close! Mismatched elements: " in first
    assert last == "Next: python scripts/wrong_relu_out.py"
    script = tmp_path / "scripts/wrong_relu_out.py"
    assert len(script.read_text().splitlines()) < 40
    failed = python(script)
    assert failed.returncode == 1 and "AssertionError: Tensor-likes are not close!" in failed.stderr
    # Without the wrong kernel the same script is content.
    lines = script.read_text().splitlines()
    script.write_text("\n".join(line for line in lines if "wrong_relu" not in line or "load_backend" not in line))
    assert python(script).stdout == "the device and the CPU agree\n"


def test_large_arguments_lie_beside_the_script(conform, wrong_relu, tmp_path):
    conform("--shadow", "transformer", load=[conform.tin, wrong_relu])
    assert (tmp_path / "wrong_relu_out.safetensors").exists() and python(tmp_path / "wrong_relu_out.py").returncode == 1


WRONG_BACKWARD = """
from cresset.library import Library

library = Library("aten", "IMPL")


def tanh_backward(grad, output, *, grad_input):
    g, y = grad.cpu(), output.cpu()
    return grad_input.copy_((g * (1 - y)).to(grad.device))


library.impl("tanh_backward.grad_input", tanh_backward, "PrivateUse1")
"""


def test_backward_is_watched(conform, tmp_path):
    (tmp_path / "wrong_backward.py").write_text(WRONG_BACKWARD)
    conform("--shadow", "mlp", load=[conform.tin, tmp_path / "wrong_backward.py"])
    assert conform.status == 1 and "aten::tanh_backward.grad_input: result 0: " in conform.out


def test_card_writes_scripts(conform, wrong_relu, tmp_path):
    conform("--ops", "^relu$", "--dtypes", "float32", "--no-models", "--reproduce", "scripts", load=[conform.tin, wrong_relu])
    assert "wrote scripts/wrong_relu.py" in conform.out
    assert python(tmp_path / "scripts/wrong_relu.py").returncode == 1
