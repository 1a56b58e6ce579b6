"""Building C++ extensions: with setuptools (CppExtension, BuildExtension) or while a program runs (load, load_inline).

Extensions include `cresset/extension.h`, or `torch/extension.h` and PyTorch's other headers, which forward to Cresset's. They
link with Cresset's libraries, of which the linker keeps what they use. Compiling needs no more than headers and libraries, so nothing
of Cresset is started for it.
"""

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig

import setuptools
from setuptools.command.build_ext import build_ext

from .. import _build_info

__all__ = [
    "BuildExtension", "CppExtension", "CUDAExtension", "SyclExtension", "include_paths", "library_paths", "link_flags", "load", "load_inline",
    "is_ninja_available", "verify_ninja_availability", "get_cxx_compiler", "get_default_build_root", "check_compiler_is_gcc",
    "CUDA_HOME", "ROCM_HOME", "CUDNN_HOME", "SYCL_HOME", "IS_HIP_EXTENSION",
]  # fmt: skip

CUDA_HOME = ROCM_HOME = CUDNN_HOME = SYCL_HOME = None
IS_HIP_EXTENSION = IS_WINDOWS = IS_MACOS = False
IS_LINUX = True
TORCH_LIB_PATH = _build_info.library_dirs[0]
COMMON_NVCC_FLAGS, COMMON_HIP_FLAGS, COMMON_HIPCC_FLAGS = [], [], []

_STANDARD = "-std=c++20"
# Older standards that sources ask for; the headers need C++20, which compiles them as well.
_OLDER_STANDARD = re.compile(r"-std=(c|gnu)\+\+(98|03|11|0x|14|1y|17|1z)$")

# --- where things are

def _pybind11_include():
    """The folder with pybind11's headers, or None. torch/extension.h needs them, cresset/extension.h does not."""
    spec = importlib.util.find_spec("pybind11")
    if spec is not None and spec.submodule_search_locations:
        folder = os.path.join(list(spec.submodule_search_locations)[0], "include")
        if os.path.isdir(folder):
            return folder
    for folder in (sysconfig.get_path("include"), "/usr/include", "/usr/local/include"):
        if os.path.exists(os.path.join(folder, "pybind11", "pybind11.h")):
            return None if folder == "/usr/include" else folder
    return None

def include_paths(device_type="cpu", torch_include_dirs=True):
    """Folders for -I: Cresset's headers, PyTorch's header names, pybind11."""
    if device_type not in ("cpu", False):
        _refuse_cuda("include_paths")
    if not torch_include_dirs:
        return []
    pybind11 = _pybind11_include()
    return [*_build_info.include_dirs, *_build_info.compat_include_dirs, *([pybind11] if pybind11 else [])]

def library_paths(device_type="cpu", torch_include_dirs=True, cross_target_platform=None):
    """Folders for -L: where libcresset.so and the libraries beside it are."""
    if device_type not in ("cpu", False):
        _refuse_cuda("library_paths")
    return list(_build_info.library_dirs)

def get_cxx_compiler():
    """The compiler: $CXX, else the one Cresset was built with, else c++."""
    built_with = getattr(_build_info, "cxx_compiler", "")
    return os.environ.get("CXX") or (built_with if built_with and shutil.which(built_with) else "c++")

def check_compiler_is_gcc(compiler):
    """Is it GCC?"""
    try:
        text = subprocess.run([*shlex.split(compiler), "--version"], capture_output=True, text=True).stdout
    except OSError:
        return False
    return "Free Software Foundation" in text

def get_compiler_abi_compatibility_and_version(compiler):
    """(whether extensions that this compiler makes fit, its version): any C++20 compiler of GCC's or Clang's ABI does. Version 0.0.0 where it does not run."""
    from cresset.torch_version import TorchVersion

    try:
        text = subprocess.run([*shlex.split(compiler), "-dumpfullversion", "-dumpversion"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False, TorchVersion("0.0.0")
    version = text.split()[0] if text.split() else "0.0.0"
    return version != "0.0.0", TorchVersion(version)

def is_ninja_available():
    return shutil.which("ninja") is not None

def verify_ninja_availability():
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions. Install it: `pip install ninja` or `apt install ninja-build`.")

def get_default_build_root():
    """Where load() keeps what it builds: $TORCH_EXTENSIONS_DIR, else a folder of the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "cresset_extensions", f"py{sys.version_info.major}{sys.version_info.minor}")

def _refuse_cuda(what):
    raise OSError(
        f"{what}: Cresset has no CUDA backend, so CUDA sources cannot be built. "
        "Build the CPU part with CppExtension (most packages have a switch such as FORCE_CUDA=0), or write the device as a Cresset backend."
    )

# --- flags

def _with_standard(flags):
    """The flags with C++20 unless they ask for something newer."""
    kept = [f for f in flags if not _OLDER_STANDARD.match(f)]
    return kept if any(f.startswith("-std=") for f in kept) else [*kept, _STANDARD]

def _heap_flags():
    """GCC looks for garbage each time its heap has doubled; PyTorch's headers fill half a gigabyte in which it finds next to none."""
    return ["--param", "ggc-min-heapsize=524288"] if check_compiler_is_gcc(get_cxx_compiler()) else []

# PyTorch's class names are known before a source can declare them, which would make other classes of the same names.
_NAMES_FIRST = ["-include", "cresset_compat/namespaces.h"]

# Names of the C++ front end that torch/extension.h has only with CRESSET_WHOLE_FRONT_END, because they take long to compile.
_FRONT_END = re.compile(rb"\btorch::(nn(?:\s*;|::(?!functional\b|Module\b|Cloneable\b))|optim\b|data\b|serialize\b|save\b|load\b|python::bind_module\b)")

def _wants_front_end(source):
    try:
        with open(source, "rb") as f:
            return _FRONT_END.search(f.read()) is not None
    except OSError:
        return False  # made during the build

def _own_defines(name, sources):
    whole = ["-DCRESSET_WHOLE_FRONT_END"] if any(map(_wants_front_end, sources)) else []
    return [f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H", *whole]

def _run_path_flags(folders):
    return [f"-Wl,-rpath,{folder}" for folder in folders]

def link_flags(program=False):
    """The linker's flags for Cresset's libraries, behind the objects: graphs, the C++ front end and communication where they are used and built. A
    program of its own needs the kernels as well; in Python they are loaded already."""
    optional = [n for n in ("cresset_nn", "cresset_ir", "cresset_distributed") if any(os.path.exists(os.path.join(p, f"lib{n}.so")) for p in library_paths())]
    return [
        "-lcresset",
        *(["-Wl,--push-state,--no-as-needed,-lcresset_cpu,--pop-state"] if program else []),
        *(["-Wl,--push-state,--as-needed," + ",".join(f"-l{n}" for n in optional) + ",--pop-state"] if optional else []),
    ]

# --- setuptools

def CppExtension(name, sources, *args, **kwargs):
    """A setuptools.Extension with Cresset's headers and library. Takes what setuptools.Extension takes; extra_compile_args may
    be a dict with the compiler's flags under "cxx"."""
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths()]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), *library_paths()]
    core, *optional = link_flags()
    kwargs["libraries"] = [*kwargs.get("libraries", []), core.removeprefix("-l")]
    kwargs["extra_link_args"] = [*(kwargs.get("extra_link_args") or []), *optional]
    kwargs["runtime_library_dirs"] = [*(kwargs.get("runtime_library_dirs") or []), *library_paths()]
    kwargs.setdefault("language", "c++")
    return setuptools.Extension(name, sources, *args, **kwargs)

def CUDAExtension(name, sources, *args, **kwargs):
    """Refused (OSError): there is no CUDA backend."""
    _refuse_cuda(f"CUDAExtension({name!r})")

def SyclExtension(name, sources, *args, **kwargs):
    """Refused (OSError), like CUDAExtension."""
    _refuse_cuda(f"SyclExtension({name!r})")

class BuildExtension(build_ext):
    """build_ext for CppExtension: C++20, TORCH_EXTENSION_NAME, and ninja, which compiles in parallel ($MAX_JOBS) and only what
    changed. with_options(use_ninja=False, no_python_abi_suffix=True) gives a class with other defaults."""

    @classmethod
    def with_options(cls, **options):
        class WithOptions(cls):
            def __init__(self, *args, **kwargs):
                kwargs.update(options)
                super().__init__(*args, **kwargs)

        return WithOptions

    def __init__(self, *args, **kwargs):
        self.no_python_abi_suffix = kwargs.pop("no_python_abi_suffix", False)
        self.use_ninja = kwargs.pop("use_ninja", True) and is_ninja_available()
        super().__init__(*args, **kwargs)

    def finalize_options(self):
        super().finalize_options()
        if self.use_ninja:
            self.force = True  # ninja knows better than setuptools what is out of date

    def build_extensions(self):
        for extension in self.extensions:
            cuda = [s for s in extension.sources if os.path.splitext(s)[1] in (".cu", ".cuh")]
            if cuda:
                _refuse_cuda(f"{extension.name}: {cuda[0]}")
            self._add_flags(extension)
        self._set_compiler()
        super().build_extensions()

    def _add_flags(self, extension):
        flags = extension.extra_compile_args or []
        if isinstance(flags, dict):
            flags = flags.get("cxx", [])
        extension.extra_compile_args = _with_standard([*_NAMES_FIRST, *_heap_flags(), *flags, *_own_defines(extension.name.split(".")[-1], extension.sources)])

    def _set_compiler(self):
        compiler = shlex.split(get_cxx_compiler())
        if os.environ.get("CC") and not os.environ.get("CXX"):
            return
        # Extensions are C++, whatever the suffix of their sources.
        for part in ("compiler_so", "compiler_cxx", "compiler_so_cxx", "linker_so", "linker_so_cxx"):
            command = getattr(self.compiler, part, None)
            if command:
                setattr(self.compiler, part, [*compiler, *command[_program_words(command):]])
        self.compiler.compiler_so = [f for f in self.compiler.compiler_so if f != "-Wstrict-prototypes"]
        if self.use_ninja:
            self.compiler.compile = self._compile_with_ninja

    def _compile_with_ninja(self, sources, output_dir=None, macros=None, include_dirs=None, debug=0, extra_preargs=None,
                            extra_postargs=None, depends=None):  # fmt: skip
        output_dir = os.path.abspath(output_dir or self.build_temp)
        _, objects, postargs, preprocessor, _ = self.compiler._setup_compile(
            output_dir, macros, include_dirs, [os.path.abspath(s) for s in sources], depends, extra_postargs
        )
        # Relative folders are the setup script's.
        preprocessor = [f"-I{os.path.abspath(f[2:])}" if f.startswith("-I") else f for f in preprocessor]
        command = self.compiler.compiler_so
        program = command[: _program_words(command)]
        flags = [*command[len(program):], *(extra_preargs or []), *preprocessor, *(["-g"] if debug else []), *postargs]
        outputs = [os.path.abspath(o) for o in objects]
        for folder in {os.path.dirname(o) for o in outputs}:
            os.makedirs(folder, exist_ok=True)
        rules = _ninja_rules(shlex.join(program), flags, [])
        steps = [_ninja_compile(s, o) for s, o in zip(map(os.path.abspath, sources), outputs)]
        _run_ninja(output_dir, "\n".join([rules, *steps]) + "\n", "extension modules", verbose=self.verbose)
        return objects

    def get_ext_filename(self, name):
        file = super().get_ext_filename(name)
        if self.no_python_abi_suffix:
            parts = file.split(".")
            file = ".".join(parts[:-2] + parts[-1:]) if len(parts) > 2 else file
        return file

# --- ninja

def _program_words(command):
    """How many words name the program: two for `ccache c++`."""
    return next((i for i, word in enumerate(command) if word.startswith("-")), len(command))

def _quoted(path):
    return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")

def _ninja_rules(compiler, flags, link_flags):
    def line(words):
        return " ".join(shlex.quote(w) for w in words).replace("$", "$$")

    return "\n".join(
        [
            "ninja_required_version = 1.5",
            f"cxx = {compiler}",
            f"flags = {line(flags)}",
            f"link_flags = {line(link_flags)}",
            "rule compile",
            "  command = $cxx -MMD -MF $out.d $flags -c $in -o $out",
            "  depfile = $out.d",
            "  deps = gcc",
            "rule link",
            "  command = $cxx $in $link_flags -o $out",
        ]
    )

def _ninja_compile(source, output):
    return f"build {_quoted(output)}: compile {_quoted(source)}"

def _run_ninja(folder, text, what, verbose=False):
    """Writes build.ninja where it differs and runs ninja. A failure shows the compiler's first error first."""
    file = os.path.join(folder, "build.ninja")
    if not os.path.exists(file) or open(file).read() != text:
        with open(file, "w") as f:
            f.write(text)
    command = ["ninja", "-v"] if verbose else ["ninja"]
    if os.environ.get("MAX_JOBS", "").isdigit():
        command += ["-j", os.environ["MAX_JOBS"]]
    result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if verbose:
        sys.stdout.write(result.stdout)
    if result.returncode == 0:
        return
    first = next((line for line in result.stdout.splitlines() if re.search(r"\b(fatal )?error\b:|undefined reference|cannot find", line)), "")
    if "pybind11" in first and "No such file" in first:
        first += "\ntorch/extension.h needs pybind11: `pip install pybind11` or `apt install pybind11-dev`."
    raise RuntimeError(f"Error building {what}: {first.strip() or 'ninja failed'}\n\n{result.stdout}")

# --- while a program runs

class _Versions:
    """A module that is loaded cannot be replaced: an extension that changed in this process gets another name, name_v1, …"""

    def __init__(self):
        self.seen = {}

    def name_for(self, name, sources, settings):
        digest = hashlib.sha256(repr(settings).encode())
        for source in sources:
            with open(source, "rb") as f:
                digest.update(f.read())
        version, last = self.seen.get(name, (0, None))
        changed = last is not None and last != digest.hexdigest()
        self.seen[name] = (version + changed, digest.hexdigest())
        return f"{name}_v{version + 1}" if changed else (f"{name}_v{version}" if version else name)

_versions = _Versions()

def _get_build_directory(name, verbose):
    root = os.environ.get("TORCH_EXTENSIONS_DIR") or get_default_build_root()
    folder = os.path.join(root, name)
    if verbose:
        print(f"Using {folder} as the build directory of extension {name}", file=sys.stderr)
    _make_private(folder)
    return folder

def _make_private(folder):
    """A folder that nobody else can write to, made if it is not there: what lies in it is loaded as code. PermissionError for others."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    for place in (os.path.dirname(folder), folder):
        info = os.stat(place)
        if info.st_uid not in (os.geteuid(), 0):
            raise PermissionError(f"{place}, where compiled extensions are kept, belongs to another user. Choose another folder with TORCH_EXTENSIONS_DIR.")
        others = stat.S_IWOTH if info.st_gid == os.getegid() else stat.S_IWOTH | stat.S_IWGRP
        # In a folder like /tmp nobody can exchange another's files.
        if info.st_mode & others and not (place != folder and info.st_mode & stat.S_ISVTX):
            raise PermissionError(f"{place}, where compiled extensions are kept, can be written to by other users. Take that right away (chmod go-w).")

def _as_list(value):
    return [os.fspath(value)] if isinstance(value, (str, os.PathLike)) else [os.fspath(v) for v in value or []]

def _stripped(value):
    """Entries without the spaces and line ends around them, which lists that were pasted together have."""
    return [entry.strip() for entry in _as_list(value) if entry.strip()]

def load(name, sources, extra_cflags=None, extra_cuda_cflags=None, extra_sycl_cflags=None, extra_ldflags=None,
         extra_include_paths=None, build_directory=None, verbose=False, with_cuda=None, with_sycl=None, is_python_module=True,
         is_standalone=False, keep_intermediates=True, use_pch=False):  # fmt: skip
    """Compile sources and load them: the Python module, or with is_python_module=False nothing (operators are registered), or
    with is_standalone=True the path of a program. Only files that changed are compiled again; -O2 unless extra_cflags says
    otherwise. RuntimeError with the compiler's first error when it fails."""
    sources = [os.path.abspath(s) for s in _stripped(sources)]
    if with_cuda or extra_cuda_cflags or any(s.endswith((".cu", ".cuh")) for s in sources):
        _refuse_cuda(f"load({name!r})")
    verify_ninja_availability()
    flags = [word for entry in _as_list(extra_cflags) for word in shlex.split(entry)]  # as a shell takes them
    link = [word for entry in _as_list(extra_ldflags) for word in shlex.split(entry)]
    includes = [os.path.abspath(p) for p in _stripped(extra_include_paths)]
    name = _versions.name_for(name, sources, (flags, link, includes, is_standalone))
    folder = os.path.abspath(build_directory) if build_directory else _get_build_directory(name, verbose)

    compile_flags = [
        *_own_defines(name, sources),
        *(f"-I{p}" for p in includes),
        *(f"-I{p}" for p in include_paths()),
        f"-I{sysconfig.get_path('include')}",
        "-fPIC",
        *_NAMES_FIRST,
        *_heap_flags(),
        *([] if any(f.startswith("-O") for f in flags) else ["-O2"]),
        *_with_standard(flags),
    ]
    linking = [*([] if is_standalone else ["-shared"]), *(f"-L{p}" for p in library_paths()), *_run_path_flags(library_paths()), *link, *link_flags(is_standalone)]
    # Two sources may have one name.
    objects = []
    for source in sources:
        stem = os.path.splitext(os.path.basename(source))[0]
        while stem + ".o" in objects:
            stem += "_"
        objects.append(stem + ".o")
    target = name if is_standalone else name + ".so"
    steps = [_ninja_compile(s, o) for s, o in zip(sources, objects)]
    steps.append(f"build {_quoted(target)}: link {' '.join(map(_quoted, objects))}")
    text = "\n".join([_ninja_rules(get_cxx_compiler(), compile_flags, linking), *steps, f"default {_quoted(target)}"]) + "\n"
    with _Lock(os.path.join(folder, "lock")):
        _run_ninja(folder, text, f"extension {name!r}", verbose)
    file = os.path.join(folder, target)
    if not keep_intermediates:
        for leftover in [*(os.path.join(folder, o) for o in objects), os.path.join(folder, ".ninja_log")]:
            if os.path.exists(leftover):
                os.remove(leftover)
    if is_standalone:
        return file
    if not is_python_module:
        from .._ops import ops

        ops.load_library(file)
        return None
    import cresset  # noqa: F401  (the module converts tensors through it)

    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

class _Lock:
    """One build at a time in a folder, among processes as well."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        import fcntl

        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *error):
        self.file.close()

def load_inline(name, cpp_sources, cuda_sources=None, sycl_sources=None, functions=None, extra_cflags=None, extra_cuda_cflags=None,
                extra_sycl_cflags=None, extra_ldflags=None, extra_include_paths=None, build_directory=None, verbose=False,
                with_cuda=None, with_sycl=None, is_python_module=True, with_pytorch_error_handling=True, keep_intermediates=True,
                use_pch=False, no_implicit_headers=False):  # fmt: skip
    """load() for sources given as text, with `#include <torch/extension.h>` in front. `functions` names what the module shows: a
    name, a list of names, or a dict from names to their documentation."""
    if cuda_sources or with_cuda:
        _refuse_cuda(f"load_inline({name!r})")
    folder = os.path.abspath(build_directory) if build_directory else _get_build_directory(name, verbose)
    parts = _as_list(cpp_sources)
    if not no_implicit_headers:
        parts.insert(0, "#include <torch/extension.h>")
    if functions is not None:
        if isinstance(functions, (str, list, tuple)):
            functions = {f: f for f in _as_list(functions)}
        if not isinstance(functions, dict):
            raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")
        lines = [f'  m.def("{f}", &{f}, "{_c_text(doc)}");' for f, doc in functions.items()]
        parts.append("\n".join(["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *lines, "}"]))
    source = os.path.join(folder, "main.cpp")
    text = "\n".join(parts) + "\n"
    if not os.path.exists(source) or open(source).read() != text:
        with open(source, "w") as f:
            f.write(text)
    return load(name, [source], extra_cflags, None, None, extra_ldflags, extra_include_paths, folder, verbose, False, False,
                is_python_module, False, keep_intermediates, use_pch)  # fmt: skip

def _c_text(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

def remove_extension_h_precompiler_headers():
    """Nothing is kept: torch/extension.h compiles quickly enough as it is."""

