"""A project written for libtorch, with find_package(Torch) and the C++ front end, builds against the installed package and learns."""

import shutil
import struct
import subprocess
from pathlib import Path

import numpy
import pytest

import cresset

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Path(__file__).parent / "frontend"
LAYERS = """torch::nn::Sequential(
  (0): torch::nn::Conv2d(1, 4, kernel_size=[4, 4], stride=[2, 2], padding=[1, 1], bias=false)
"""


def program(name):
    """A working program: what pip installed may need a Python that is not there."""
    found = shutil.which(name)
    return (
        found
        if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0
        else f"/usr/bin/{name}"
    )


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}"
    return result.stdout


def write_digits(folder):
    """The digits of scikit-learn as MNIST publishes its files: 640 to learn from and 360 others, enlarged to 28 x 28."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = numpy.random.default_rng(1).permutation(len(digits.target))
    images = (numpy.pad(numpy.kron(digits.images, numpy.ones((1, 3, 3))), ((0, 0), (2, 2), (2, 2))) * 15).astype(
        numpy.uint8
    )
    labels = digits.target.astype(numpy.uint8)
    for prefix, part in (("train", order[:640]), ("t10k", order[640:1000])):
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(
            struct.pack(">4i", 2051, len(part), 28, 28) + images[part].tobytes()
        )
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2i", 2049, len(part)) + labels[part].tobytes()
        )


@pytest.mark.slow
def test_a_project_for_libtorch(tmp_path):
    prefix, build, data = tmp_path / "prefix", tmp_path / "build", tmp_path / "data"
    run(program("cmake"), "--install", ROOT / "build/dev", "--prefix", prefix)
    run(
        program("cmake"),
        "-S",
        PROJECT,
        "-B",
        build,
        "-G",
        "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Release",
    )
    run(program("cmake"), "--build", build)
    data.mkdir()
    write_digits(data)
    accuracy, generator, *layers = run(build / "digits", data).splitlines()
    assert float(accuracy.removeprefix("accuracy ")) > 0.8
    assert generator == "generator learns 1, copy agrees 1"
    assert "\n".join(layers).startswith(LAYERS)
    # Python reads what C++ saved.
    state = cresset.jit.load(str(data / "generator.pt")).state_dict()
    assert {name: tuple(value.shape) for name, value in state.items() if "conv" in name} == {
        "conv1.weight": (8, 16, 4, 4),
        "conv2.weight": (16, 1, 4, 4),
    }
