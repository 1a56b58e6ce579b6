"""What this build and this machine are, as a text for reports: `python -m cresset.utils.collect_env`."""

import collections
import locale
import os
import platform
import re
import subprocess
import sys

import cresset

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str"]

PIP_PATTERNS = {"cresset", "torch", "numpy", "mypy", "flake8", "optree", "onnx", "safetensors"}
TORCH_AVAILABLE = True

_FIELDS = (
    "torch_version", "is_debug_build", "cuda_compiled_version", "gcc_version", "clang_version", "cmake_version", "os", "libc_version", "python_version",
    "python_platform", "is_cuda_available", "cuda_runtime_version", "cuda_module_loading", "nvidia_driver_version", "nvidia_gpu_models", "cudnn_version",
    "is_xpu_available", "pip_version", "pip_packages", "conda_packages", "hip_compiled_version", "hip_runtime_version", "miopen_runtime_version",
    "caching_allocator_config", "is_xnnpack_available", "cpu_info",
)  # fmt: skip
SystemEnv = collections.namedtuple("SystemEnv", _FIELDS)


def run(command):
    """(exit status, output, errors) of a command: a list, or a text for the shell."""
    try:
        done = subprocess.run(command, shell=isinstance(command, str), capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    code = locale.getpreferredencoding()
    return done.returncode, done.stdout.decode(code, "replace").strip(), done.stderr.decode(code, "replace").strip()


def run_and_read_all(run_lambda, command):
    """The output of a command, None where it fails."""
    status, out, _ = run_lambda(command)
    return out if status == 0 else None


def run_and_parse_first_match(run_lambda, command, regex):
    """The first group of the first match in a command's output, None where there is none."""
    found = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return found[1] if found else None


def run_and_return_first_line(run_lambda, command):
    """The first line of a command's output, None where it fails."""
    out = run_and_read_all(run_lambda, command)
    return None if out is None else out.split("\n")[0]


def get_gcc_version(run_lambda):
    """What `gcc --version` says."""
    return run_and_parse_first_match(run_lambda, ["gcc", "--version"], r"gcc (.*)")


def get_clang_version(run_lambda):
    """What `clang --version` says."""
    return run_and_parse_first_match(run_lambda, ["clang", "--version"], r"clang version (.*)")


def get_cmake_version(run_lambda):
    """What `cmake --version` says."""
    return run_and_parse_first_match(run_lambda, ["cmake", "--version"], r"cmake (.*)")


def get_platform():
    """linux, win32, darwin, …"""
    return sys.platform


def get_os(run_lambda):
    """The name of the system and its processor."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name} ({platform.machine()})"


def get_libc_version():
    """Name and version of the C library."""
    return "-".join(platform.libc_ver()) if sys.platform == "linux" else "N/A"


def get_python_platform():
    """What platform.platform() says."""
    return platform.platform()


def get_pip_packages(run_lambda, patterns=None):
    """("pip3", lines of installed packages that are of interest)."""
    import importlib.metadata

    patterns = PIP_PATTERNS if patterns is None else patterns
    found = {f"{d.metadata['Name']}=={d.version}" for d in importlib.metadata.distributions() if d.metadata["Name"] and any(p in d.metadata["Name"].lower() for p in patterns)}
    return "pip3", "\n".join(sorted(found))


def get_cpu_info(run_lambda):
    """What lscpu says."""
    return run_and_read_all(run_lambda, ["lscpu"]) or ""


def get_env_info():
    """A SystemEnv."""
    none = "N/A"
    pip, packages = get_pip_packages(run)
    return SystemEnv(
        torch_version=str(cresset.__version__), is_debug_build="False", cuda_compiled_version="None", gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run), cmake_version=get_cmake_version(run), os=get_os(run), libc_version=get_libc_version(),
        python_version=f"{sys.version.splitlines()[0]} ({sys.maxsize.bit_length() + 1}-bit runtime)", python_platform=get_python_platform(),
        is_cuda_available="False", cuda_runtime_version=none, cuda_module_loading=none, nvidia_driver_version=none, nvidia_gpu_models=none,
        cudnn_version=none, is_xpu_available=False, pip_version=pip, pip_packages=packages, conda_packages=None, hip_compiled_version=none,
        hip_runtime_version=none, miopen_runtime_version=none, caching_allocator_config=os.environ.get("PYTORCH_ALLOC_CONF", none),
        is_xnnpack_available="False", cpu_info=get_cpu_info(run),
    )  # fmt: skip


def pretty_str(envinfo):
    """A SystemEnv as text."""
    show = lambda value: "Could not collect" if value is None else value  # noqa: E731
    lines = [
        f"PyTorch version: {envinfo.torch_version}", f"Is debug build: {envinfo.is_debug_build}",
        f"CUDA used to build PyTorch: {envinfo.cuda_compiled_version}", f"ROCM used to build PyTorch: {envinfo.hip_compiled_version}", "",
        f"OS: {show(envinfo.os)}", f"GCC version: {show(envinfo.gcc_version)}", f"Clang version: {show(envinfo.clang_version)}",
        f"CMake version: {show(envinfo.cmake_version)}", f"Libc version: {envinfo.libc_version}", "", f"Python version: {envinfo.python_version}",
        f"Python platform: {envinfo.python_platform}", f"Is CUDA available: {envinfo.is_cuda_available}",
        f"CUDA runtime version: {envinfo.cuda_runtime_version}", f"GPU models and configuration: {envinfo.nvidia_gpu_models}",
        f"Is XPU available: {envinfo.is_xpu_available}", "", "CPU:", envinfo.cpu_info, "", "Versions of relevant libraries:",
        *(f"[{envinfo.pip_version}] {line}" for line in envinfo.pip_packages.splitlines()), *([] if envinfo.conda_packages else ["[conda] Could not collect"]),
    ]  # fmt: skip
    return "\n".join(lines)


def get_pretty_env_info():
    """The text of this machine."""
    return pretty_str(get_env_info())


def main():
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
