"""Settings of backends: precision of float32 from the top down, and freezing. The expected lines are PyTorch 2.13's for CPU."""

import subprocess
import sys

import pytest

import cresset
from cresset.backends import cudnn, mkldnn

PLACES = [cresset.backends, mkldnn, mkldnn.matmul, mkldnn.conv, mkldnn.rnn, cresset.backends.cuda.matmul, cudnn, cudnn.conv, cudnn.rnn]
STEPS = [
    (None, None, "none none none none none none none tf32 tf32"),
    (mkldnn.matmul, "bf16", "none none bf16 none none none none tf32 tf32"),
    (cresset.backends, "ieee", "ieee ieee bf16 ieee ieee ieee ieee ieee ieee"),
    (cresset.backends, "bf16", "bf16 bf16 bf16 bf16 bf16 none none none none"),
    (cresset.backends, "tf32", "tf32 tf32 bf16 tf32 tf32 tf32 tf32 tf32 tf32"),
    (mkldnn.matmul, "none", "tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32 tf32"),
    (cresset.backends, "none", "none none none none none none none tf32 tf32"),
]


@pytest.fixture(autouse=True)
def unset():
    for place in PLACES:
        place.fp32_precision = "none"


def test_precision_goes_down_the_tree():
    for place, name, expected in STEPS:
        if place is not None:
            place.fp32_precision = name
        assert [p.fp32_precision for p in PLACES] == expected.split()
    with pytest.raises(RuntimeError, match="Unknown precision: foo"):
        mkldnn.matmul.fp32_precision = "foo"
    with pytest.raises(RuntimeError, match="backend 'cuda' does not support precision 'bf16'"):
        cudnn.conv.fp32_precision = "bf16"


FROZEN = """
import cresset as torch
b = torch.backends
b.disable_global_flags()
assert b.flags_frozen()
for module, name in ((b.cudnn, "benchmark"), (b.mkldnn, "deterministic")):
    try:
        setattr(module, name, True)
        raise SystemExit("not frozen")
    except RuntimeError as error:
        short = module.__name__.rpartition(".")[2]
        assert str(error) == f"not allowed to set torch.backends.{short} flags after disable_global_flags; please use flags() context manager instead", error
with getattr(b, "__allow_nonbracketed_mutation")():
    b.cudnn.benchmark = True
    assert not b.flags_frozen()
assert b.cudnn.benchmark and b.flags_frozen()
with b.cudnn.flags(benchmark=False):
    assert not b.cudnn.benchmark
assert b.cudnn.benchmark
"""


def test_frozen_settings_are_written_in_blocks_only():
    done = subprocess.run([sys.executable, "-c", FROZEN], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("level, capability", [("baseline", "DEFAULT"), ("avx2", "AVX2")])
def test_capability_of_a_lowered_level(level, capability, monkeypatch):
    if cresset.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("a processor with AVX2 is needed")
    monkeypatch.setenv("CRESSET_ISA", level)
    assert cresset.backends.cpu.get_cpu_capability() == capability


def test_older_switches_of_precision():
    """set_float32_matmul_precision and allow_tf32 are two names of one setting, which the tree shows."""
    cuda = cresset.backends.cuda

    def shown():
        return cresset.get_float32_matmul_precision(), cuda.matmul.allow_tf32, cuda.matmul.fp32_precision, mkldnn.matmul.fp32_precision

    try:
        cuda.matmul.allow_tf32 = True
        assert shown() == ("high", True, "tf32", "none")
        cresset.set_float32_matmul_precision("medium")
        assert shown() == ("medium", True, "tf32", "bf16")
        cresset.set_float32_matmul_precision("high")
        assert shown() == ("high", True, "tf32", "tf32")
        cuda.matmul.allow_tf32 = False
        assert shown() == ("highest", False, "ieee", "tf32")
    finally:
        cresset.set_float32_matmul_precision("highest")
    assert shown() == ("highest", False, "ieee", "ieee")
    assert not cudnn.is_acceptable(cresset.ones(1))
