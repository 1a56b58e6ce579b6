"""Data sets of the right form, made up: what they hold does not matter, both sides read the same. Each is written below the working folder."""

import gzip  # noqa: F401  (data sets of torchvision open their files through it)
import os
import shutil
import struct
from pathlib import Path

import numpy


def _numbers(seed=0):
    return numpy.random.RandomState(seed)


def _idx(file, array):
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + b"".join(struct.pack(">I", n) for n in array.shape)
    file.write_bytes(header + array.astype(numpy.uint8).tobytes())


def mnist(root="../data", train=640, test=200):
    """MNIST's four files: noise with a bright bar at a place that depends on the digit."""
    folder = Path(root, "MNIST/raw")
    folder.mkdir(parents=True, exist_ok=True)
    random = _numbers()
    for part, count in (("train", train), ("t10k", test)):
        labels = random.randint(0, 10, count)
        images = random.randint(0, 60, (count, 28, 28))
        for image, label in zip(images, labels):
            image[2 * label : 2 * label + 4] += 180
        _idx(folder / f"{part}-images-idx3-ubyte", images)
        _idx(folder / f"{part}-labels-idx1-ubyte", labels)


def mnist_here():
    mnist("data", 200, 100)


def pictures():
    """sample/train and sample/val with a class of pictures each, and dataset/BSDS300."""
    from PIL import Image

    random = _numbers()
    for folder in ("sample/train/a", "sample/train/b", "sample/val/a", "sample/val/b", "dataset/BSDS300/images/train", "dataset/BSDS300/images/test"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for i in range(4):
            Image.fromarray(random.randint(0, 255, (260, 270, 3)).astype(numpy.uint8)).save(Path(folder, f"{i}.jpg"))
    shutil.copy("dataset/BSDS300/images/test/0.jpg", "input.jpg")


def style():
    """A network of fast_neural_style without training, saved, a picture, and a program that prints what is in one."""
    import sys

    import torch

    sys.path.insert(0, "neural_style")
    from transformer_net import TransformerNet

    torch.manual_seed(0)
    torch.save(TransformerNet().state_dict(), "style.pth")
    sys.path.pop(0)
    from PIL import Image

    Image.fromarray(_numbers().randint(0, 255, (48, 64, 3)).astype(numpy.uint8)).save("content.jpg")
    with open("show.py", "w") as f:
        f.write("import sys, numpy\nfrom PIL import Image\nfor row in numpy.asarray(Image.open(sys.argv[1]), float)[::8, ::8]: print('row', *row.mean(0).round(1))\n")


def cora():
    """A graph with Cora's two files."""
    random, nodes = _numbers(), 2708
    os.makedirs("cora", exist_ok=True)
    kinds = ["Case_Based", "Genetic_Algorithms", "Neural_Networks", "Probabilistic_Methods", "Reinforcement_Learning", "Rule_Learning", "Theory"]
    with open("cora/cora.content", "w") as f:
        for i in range(nodes):
            f.write("\t".join([str(i), *map(str, (random.rand(50) < 0.1).astype(int)), kinds[random.randint(7)]]) + "\n")
    with open("cora/cora.cites", "w") as f:
        for _ in range(5000):
            f.write(f"{random.randint(nodes)}\t{random.randint(nodes)}\n")
    _downloaded("cora")


def _downloaded(folder):
    """What requests.get answers from now on: the folder, packed."""
    import contextlib
    import io
    import tarfile
    import types

    import requests

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as f:
        f.add(folder)
    packed.seek(0)
    requests.get = lambda *args, **kwargs: contextlib.nullcontext(types.SimpleNamespace(raw=packed))


def words():
    """data/wikitext-2 with a few words."""
    random = _numbers()
    os.makedirs("data/wikitext-2", exist_ok=True)
    for part, lines in (("train", 400), ("valid", 60), ("test", 60)):
        with open(f"data/wikitext-2/{part}.txt", "w") as f:
            for _ in range(lines):
                f.write(" ".join(f"w{n}" for n in random.randint(0, 300, 12)) + "\n")


def easy_pole():
    """CartPole counts as solved soon."""
    import gymnasium

    gymnasium.spec("CartPole-v1").reward_threshold = 22.0
