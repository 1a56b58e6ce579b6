"""Builds the distribution cresset-as-torch: the package `torch` that stands for Cresset, and metadata of a distribution `torch`.

A build backend of its own, without requirements, because of two things that others cannot do: the wheel carries the metadata of a second
distribution, so that `Requires-Dist: torch` is satisfied; and it is not built for an environment that has PyTorch, whose files it would replace.
"""

import base64
import hashlib
import importlib.util
import io
import re
import sysconfig
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "cresset_as_torch"


def _as_torch():
    """cresset.as_torch without cresset: the metadata is its word."""
    file = next(f for f in (HERE / "as_torch.py", HERE.parents[1] / "python/cresset/as_torch.py") if f.exists())
    spec = importlib.util.spec_from_file_location("as_torch", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _version():
    if (HERE / "PKG-INFO").exists():
        return re.search(r"^Version: (.*)$", (HERE / "PKG-INFO").read_text(), re.M)[1]
    return re.search(r"project\(Cresset VERSION ([0-9.]+)", (HERE.parents[1] / "CMakeLists.txt").read_text())[1]


def _metadata():
    return (
        f"Metadata-Version: 2.1\nName: cresset-as-torch\nVersion: {_version()}\nSummary: `import torch` is Cresset\n"
        f"License: Apache-2.0\nRequires-Python: >=3.11\nRequires-Dist: cresset-runtime=={_version()}\n\n"
        "Installs a package `torch` that stands for Cresset. It cannot be installed beside PyTorch.\n"
    )


def _refuse_beside_pytorch():
    for folder in {Path(sysconfig.get_paths()[key]) for key in ("purelib", "platlib")}:
        for metadata in folder.glob("torch-*.dist-info/METADATA"):
            version = re.search(r"^Version: (.*)$", metadata.read_text(), re.M)[1]
            if "+cresset" not in version:
                raise SystemExit(
                    f"cresset-as-torch: PyTorch {version} is installed in {folder}, and its files would be replaced. "
                    "Run `pip uninstall torch` first, or use another environment; `python -m cresset.as_torch` needs neither."
                )


def _files():
    """Path in the wheel to its text."""
    texts = {str(f.relative_to(HERE / "python")): f.read_text() for f in sorted((HERE / "python").rglob("*.py"))}
    for file in sorted((HERE / "cmake").iterdir()):
        texts[f"torch/share/cmake/Torch/{file.name}"] = file.read_text().replace("@torch_version@", _torch_version().partition("+")[0])
    return texts


def _torch_version():
    return _as_torch().torch_version(_version())


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel and returns its name. SystemExit where PyTorch is installed."""
    _refuse_beside_pytorch()
    stem = f"{NAME}-{_version()}"
    torch_info = f"{stem}.data/purelib/torch-{_torch_version()}.dist-info"
    # Without a RECORD: what removes the distribution `torch` is `pip uninstall cresset-as-torch`, and pip says that it cannot.
    texts = {
        **_files(),
        f"{torch_info}/METADATA": _as_torch().torch_metadata(_version()),
        f"{torch_info}/INSTALLER": "cresset-as-torch\n",
        f"{stem}.dist-info/METADATA": _metadata(),
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: cresset-as-torch\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = []
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in texts.items():
            data = text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
            wheel.writestr(zipfile.ZipInfo(path), data)
        wheel.writestr(zipfile.ZipInfo(f"{stem}.dist-info/RECORD"), "\n".join([*record, f"{stem}.dist-info/RECORD,,", ""]))
    return name


def build_sdist(sdist_directory, config_settings=None):
    """Writes the source distribution, which is checked again where it is installed, and returns its name."""
    stem = f"{NAME}-{_version()}"
    as_torch = next(f for f in (HERE / "as_torch.py", HERE.parents[1] / "python/cresset/as_torch.py") if f.exists())
    files = {"PKG-INFO": _metadata(), "as_torch.py": as_torch.read_text()}
    for file in [HERE / "pyproject.toml", HERE / "build_backend.py", *(HERE / "python").rglob("*.py"), *(HERE / "cmake").iterdir()]:
        files[str(file.relative_to(HERE))] = file.read_text()
    with tarfile.open(Path(sdist_directory, f"{stem}.tar.gz"), "w:gz") as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(f"{stem}/{path}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return f"{stem}.tar.gz"
