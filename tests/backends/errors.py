"""Words of errors about devices: what failed, what was expected, and the next command to type, in at most five lines."""

import os
import re
import subprocess
import sys
import textwrap

import cresset
import pytest


DEVICES = (
    "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone "
    "device type at start of device string"
)


def words(error, call):
    with pytest.raises(error) as info:
        call()
    text = "\n".join([str(info.value), *getattr(info.value, "__notes__", ())])
    assert len(text.splitlines()) <= 5, text
    return text


def test_unknown_device():
    text = words(RuntimeError, lambda: cresset.device("nochip"))
    assert re.fullmatch(
        r"Expected one of cpu, cuda, ipu, .* device type at start of device string: nochip\n"
        r"No installed plug-in gives this name. `cresset doctor` lists the devices that are there\.", text)  # fmt: skip


def test_broken_plugin_is_reported_when_its_device_is_named(tmp_path):
    (tmp_path / "badchip.so").write_text("this is no library")
    code = textwrap.dedent("""
        import cresset  # a broken plug-in never breaks the import
        assert cresset.ones(2).sum().item() == 2
        for _ in range(2):
            try:
                cresset.ones(2, device="badchip")
            except RuntimeError as error:
                print(error)
    """)
    out = subprocess.run([sys.executable, "-c", code], env={**os.environ, "CRESSET_BACKEND_PATH": str(tmp_path)}, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    assert lines[:3] == lines[3:] and len(lines) == 6
    assert re.fullmatch(r"A plug-in should give the device 'badchip', but it does not load: backend plug-in \S+/badchip.so does not load: .*", lines[1])
    assert lines[2] == "Run `cresset doctor badchip` for its parts."


def test_broken_entry_point(tmp_path):
    package = tmp_path / "sadchip-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: sadchip\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[cresset.backends]\nsadchip = sadchip\nlazychip = json\n")
    (tmp_path / "sadchip.py").write_text("raise OSError('libvendor.so.3 is missing')\n")
    code = textwrap.dedent("""
        import cresset
        for name in ("sadchip", "lazychip"):
            try:
                cresset.device(name)
            except RuntimeError as error:
                print(str(error).splitlines()[1])
    """)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert out.stdout.splitlines() == [
        "A plug-in should give the device 'sadchip', but it does not load: OSError: libvendor.so.3 is missing",
        "A plug-in should give the device 'lazychip', but it does not load: RuntimeError: the entry point json was imported, but no device "
        "'lazychip' appeared",
    ], out.stderr  # fmt: skip


def test_want_of_memory_and_interrupts_are_not_kept(tmp_path):
    package = tmp_path / "latechip-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: latechip\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[cresset.backends]\nlatechip = latechip\n")
    (tmp_path / "latechip.py").write_text("import sys\nsys.tries.append(1)\nraise (MemoryError, KeyboardInterrupt, OSError)[len(sys.tries) - 1]('x')\n")
    code = textwrap.dedent("""
        import sys
        import cresset
        sys.tries = []
        for _ in range(4):
            try:
                cresset.device("latechip")
            except BaseException as error:
                print(type(error).__name__, len(sys.tries))
    """)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert out.stdout.splitlines() == ["MemoryError 1", "KeyboardInterrupt 2", "RuntimeError 3", "RuntimeError 3"], out.stderr


def test_missing_kernel():
    lib = cresset.library.Library("devices_test", "DEF")
    lib.define("nothing(Tensor x) -> Tensor")
    text = words(NotImplementedError, lambda: cresset.ops.devices_test.nothing(cresset.ones(2, device="minimal")))
    assert text == (
        "Could not run 'devices_test::nothing' on minimal:0: neither the device nor the CPU has a kernel for it.\n"
        "`cresset explain devices_test::nothing` shows the table."
    )  # fmt: skip


def test_mixed_devices():
    a, b, c = cresset.ones(2, device="minimal"), cresset.ones(2), cresset.ones(2, device="minimal:1")
    text = words(RuntimeError, lambda: cresset.atan2(a, b))
    assert text.startswith("Expected all tensors to be on the same device, but found at least two devices, minimal:0 and cpu!")
    assert "move one of them with .to(device)" in text
    text = words(RuntimeError, lambda: cresset.mm(a.view(1, 2), b.view(2, 1)))
    assert text == "mm: mat2 on minimal:0 was required; got cpu. Move it with to()."
    text = words(RuntimeError, lambda: a + c)
    assert text.startswith("Expected all tensors to be on the same device, but found at least two devices, minimal:0 and minimal:1!")
    text = words(RuntimeError, lambda: cresset.atan2(a, cresset.ones(2, device="simulated")))
    assert "found at least two devices, " in text and "minimal:0" in text and "simulated:0" in text
    assert (a + cresset.tensor(2.0)).tolist() == [3.0, 3.0], "a number in a tensor may stay on the CPU"


def test_no_accelerator_feature():
    text = words(RuntimeError, lambda: cresset.ones(2).pin_memory("minimal"))
    assert text == "minimal: this backend has no pinned memory. `cresset doctor minimal` lists its parts."


def test_privateuse1_names():
    code = textwrap.dedent("""
        import cresset
        def attempt(f, *args):
            try:
                f(*args)
            except (RuntimeError, ValueError) as error:
                print(str(error).splitlines()[0])
        attempt(cresset.device, "npy")
        cresset.utils.rename_privateuse1_backend("npy")
        print(cresset.device("npy:1"), cresset.device("privateuseone").type)
        cresset.utils.rename_privateuse1_backend("npy")
        attempt(cresset.utils.rename_privateuse1_backend, "other")
        attempt(cresset._register_device_module, "nochip", object())
        module = type(cresset)("cresset.npy")
        cresset._register_device_module("npy", module)
        print(cresset.npy is module, cresset.get_device_module("npy:0") is module)
        attempt(cresset._register_device_module, "npy", module)
        cresset.utils.generate_methods_for_privateuse1_backend(for_storage=True)
        print(cresset.ones(1).is_npy, callable(cresset.Tensor.npy), callable(cresset.nn.Module.npy), cresset.UntypedStorage(1).is_npy)
        attempt(cresset.utils.generate_methods_for_privateuse1_backend)
        attempt(cresset.Generator, "npy:1")
        attempt(cresset.ones(1).npy, "cpu")
    """)
    out = subprocess.run([sys.executable, "-c", code], env={**os.environ, "CRESSET_BACKEND_PATH": ""}, capture_output=True, text=True)
    assert out.stdout.splitlines() == [
        f"{DEVICES}: npy",
        "npy:1 npy",
        "torch.register_privateuse1_backend() has already been set! Current backend: npy",
        f"{DEVICES}: nochip",
        "True True",
        "The runtime module of 'npy' has already been registered with '<module 'cresset.npy'>'",
        "False True True False",
        "The custom device module of <class 'cresset.Tensor'> has already been registered with is_npy",
        "Generator: device 'npy:1' has no generator registered. Please register a generator to the PrivateUse1 dispatch key, with "
        "CRESSET_REGISTER_GENERATOR, or using the REGISTER_GENERATOR_PRIVATEUSE1 macro.",
        "Invalid device, must be npy device",
    ], out.stderr  # fmt: skip
