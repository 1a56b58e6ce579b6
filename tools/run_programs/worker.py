"""Runs one job or program: worker.py OUT MODE DATA FILE [arguments]. MODE is job, program or import; DATA names made-up data sets.

A job is a Python file that calls answers.show; what it shows is written to OUT as JSON. A
program runs as it is, after the random generators were seeded, and its printed numbers are its answer.
"""

import ast
import json
import random
import runpy
import sys
import warnings

import answers

warnings.simplefilter("ignore")
sys.path.pop(0)  # this folder, whose modules are not the programs'



def seed():
    import numpy
    import torch

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)


def place_torchvision():
    """torchvision declares its own operators to PyTorch's compiler and does not load where its library was built for another PyTorch: their
    schemas, as the library has them."""
    import importlib.util
    import os

    spec = importlib.util.find_spec("torchvision")
    if spec is None:
        return
    import torch

    library = next((f for f in os.scandir(os.path.dirname(spec.origin)) if f.name.startswith("_C") and f.name.endswith(".so")), None)
    try:
        torch.ops.load_library(library.path)
    except (OSError, AttributeError):
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def imports_of(file):
    """The import statements of a job, wherever they stand."""
    tree = ast.parse(open(file).read())
    found = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return ast.unparse(ast.Module(found, []))


def main():
    out, mode, data, file, *arguments = sys.argv[1:]
    sys.argv = [file, *arguments]
    if data != "-":
        sys.path.append(__file__.rpartition("/")[0])
        import made_up

        sys.path.pop()
        for name in data.split(","):
            getattr(made_up, name)()
    place_torchvision()
    if mode == "import":
        exec(compile(imports_of(file), file, "exec"), {})
        return
    seed()
    if mode == "program":
        sys.path.insert(0, file.rpartition("/")[0] or ".")
        runpy.run_path(file, run_name="__main__")
        return
    sys.path.append(__file__.rpartition("/")[0])  # models that several jobs have, behind all that the packages have
    try:
        runpy.run_path(file, run_name="job")
    finally:
        with open(out, "w") as f:
            json.dump(answers.values, f)


if __name__ == "__main__":
    main()
