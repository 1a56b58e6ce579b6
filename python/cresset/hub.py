"""Models of repositories that have a `hubconf.py`, local or on GitHub, and files of weights by their address.

Everything is kept under `get_dir()`: `$TORCH_HOME/hub`, where TORCH_HOME is by default `$XDG_CACHE_HOME/torch` or `~/.cache/torch`, so that what was fetched
for PyTorch is there already. A repository's code is run: `trust_repo` says which may.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import cresset

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # resnet18-bfd8deac.pth has the first digits of its SHA256 in its name
READ_DATA_CHUNK = 128 * 1024
ENV_GITHUB_TOKEN, ENV_TORCH_HOME, ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR = "GITHUB_TOKEN", "TORCH_HOME", "XDG_CACHE_HOME", "~/.cache"
MODULE_HUBCONF, VAR_DEPENDENCY = "hubconf.py", "dependencies"

_GITHUB, _GITHUB_API = "https://github.com", "https://api.github.com"
_TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_hub_dir = None


class _Bar:
    """Progress on a terminal, for want of tqdm."""

    def __init__(self, total=None, disable=False, **_):
        self.total, self.n, self.disable = total, 0, disable or not sys.stderr.isatty()

    def update(self, n):
        self.n += n
        if not self.disable:
            text = f"{100.0 * self.n / self.total:.1f}%" if self.total else f"{self.n} bytes"
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if not self.disable:
            sys.stderr.write("\n")


def __getattr__(name):
    if name == "tqdm":
        try:
            from tqdm import tqdm as bar
        except ImportError:
            bar = _Bar
        globals()[name] = bar
        return bar
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# --- folders ------------------------------------------------------------------------------------------------------------------


def _get_torch_home():
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir():
    """The folder of the hub: that of set_dir, or `$TORCH_HOME/hub`."""
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Keep repositories and weights in the folder `d` from now on."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


# --- repositories ---------------------------------------------------------------------------------------------------------------


def _request(url):
    headers = {"Accept": "application/vnd.github.v3+json"}
    if token := os.getenv(ENV_GITHUB_TOKEN):
        headers["Authorization"] = f"token {token}"
    return Request(url, headers=headers)


def _repository(github):
    """(owner, name, ref) of "owner/name[:ref]"; without a ref it is main or master, whichever is there. ValueError for another text."""
    repository, _, ref = github.partition(":")
    owner, separator, name = repository.partition("/")
    if not (owner and separator and name) or "/" in name:
        raise ValueError(f"hub: a repository 'owner/name[:ref]' was required; given: {github!r}")
    if ref:
        return owner, name, ref
    try:
        with urlopen(f"{_GITHUB}/{owner}/{name}/tree/main/"):
            return owner, name, "main"
    except HTTPError as error:
        if error.code == 404:
            return owner, name, "master"
        raise
    except URLError:
        for ref in ("main", "master"):
            if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{ref}")):
                return owner, name, ref
        raise RuntimeError(
            f"It looks like there is no internet connection and the repo could not be found in the cache ({get_dir()})"
        ) from None


def _check_belongs_to_owner(owner, name, ref):
    """ValueError when no branch, tag or commit of the repository is `ref`: GitHub gives commits of forks under the name of the original, too."""
    for kind in ("branches", "tags"):
        page = 0
        while True:
            page += 1
            with urlopen(_request(f"{_GITHUB_API}/repos/{owner}/{name}/{kind}?per_page=100&page={page}")) as answer:
                found = json.loads(answer.read().decode())
            if not found:
                break
            if any(entry["name"] == ref or entry["commit"]["sha"].startswith(ref) for entry in found):
                return
    raise ValueError(
        f"Cannot find {ref} in https://github.com/{owner}/{name}. If it's a commit from a forked repo, please call hub.load() with forked repo directly."
    )


def _check_trusted(owner, name, trust_repo):
    """Ask, or look up, whether the repository's code may run; an Exception says that it may not."""
    if trust_repo not in (True, False, "check", None):
        raise ValueError(f"hub: trust_repo True, False or 'check' was required; given: {trust_repo!r}")
    path, entry = os.path.join(get_dir(), "trusted_list"), f"{owner}_{name}"
    os.makedirs(get_dir(), exist_ok=True)
    Path(path).touch()
    with open(path) as file:
        known = {line.strip() for line in file}
    if trust_repo is True:
        if entry not in known:
            _append_line(path, entry)
        return
    if entry in known or (trust_repo is not False and owner in _TRUSTED_OWNERS):
        return
    answer = input(
        f"The repository {owner}_{name} does not belong to the list of trusted repositories and as such cannot be downloaded. "
        "Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
    )
    if answer.lower() in ("y", "yes"):
        _append_line(path, entry)
    elif answer.lower() in ("", "n", "no"):
        raise Exception("Untrusted repository.")
    else:
        raise ValueError(f"Unrecognized response {answer}.")


def _append_line(path, line):
    with open(path, "a") as file:
        file.write(line + "\n")


def _extract(archive, folder):
    """Unpack a zip archive; RuntimeError for a member that would lie outside of `folder`. The name of its one top folder."""
    root = os.path.realpath(folder)
    names = archive.namelist()
    for name in names:
        if os.path.commonpath([root, os.path.realpath(os.path.join(root, name))]) != root or os.path.isabs(name):
            raise RuntimeError(f"hub: the archive has a member outside of its folder: {name!r}")
    archive.extractall(root)
    return names[0].split("/")[0]


def _fetched(github, force_reload, trust_repo, verbose, skip_validation):
    """The folder of a repository of GitHub, fetched when it is not there or has to be fetched again."""
    owner, name, ref = _repository(github)
    folder = os.path.join(get_dir(), "_".join([owner, name, ref.replace("/", "_")]))
    _check_trusted(owner, name, trust_repo)
    os.makedirs(get_dir(), exist_ok=True)
    if not force_reload and os.path.exists(folder):
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    if not skip_validation:
        _check_belongs_to_owner(owner, name, ref)
    url = f"{_GITHUB}/{owner}/{name}/zipball/{ref}"
    sys.stderr.write(f'Downloading: "{url}" to {folder}\n')
    with tempfile.TemporaryDirectory(dir=get_dir()) as temporary:
        packed = os.path.join(temporary, "repository.zip")
        try:
            download_url_to_file(url, packed, progress=False)
        except HTTPError as error:
            if error.code != 300:
                raise
            # A branch and a tag have the same name: the branch is meant.
            warnings.warn(
                f"The ref {ref} is ambiguous. Perhaps it is both a tag and a branch in the repo? Torchhub will now assume that it's a branch.",
                stacklevel=4,
            )
            download_url_to_file(f"{_GITHUB}/{owner}/{name}/zipball/refs/heads/{ref}", packed, progress=False)
        with zipfile.ZipFile(packed) as archive:
            top = _extract(archive, os.path.join(temporary, "unpacked"))
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(os.path.join(temporary, "unpacked", top), folder)
    return folder


@contextlib.contextmanager
def _on_path(folder):
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _hubconf(folder):
    """The module of a folder's hubconf.py."""
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _entry(module, model):
    """The callable `model` of a hubconf; RuntimeError when there is none, or when packages that it needs are missing."""
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    missing = [name for name in getattr(module, VAR_DEPENDENCY, None) or () if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True):
    """Names of what `github` ("owner/name[:ref]") offers: the public callables of its hubconf.py."""
    folder = _fetched(github, force_reload, trust_repo, verbose, skip_validation)
    with _on_path(folder):
        module = _hubconf(folder)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check"):
    """The documentation of `model` of the repository `github`."""
    folder = _fetched(github, force_reload, trust_repo, True, skip_validation)
    with _on_path(folder):
        return _entry(_hubconf(folder), model).__doc__


def load(
    repo_or_dir, model, *args, source="github", trust_repo="check", force_reload=False, verbose=True, skip_validation=False, **kwargs
):  # fmt: skip
    """`model(*args, **kwargs)` of a repository's hubconf.py: "owner/name[:ref]" of GitHub, or with source="local" a folder.

    `trust_repo`: True adds the repository to the trusted list, False asks unless it is there, "check" asks unless it is there or its owner is
    PyTorch's. ValueError for another source.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        repo_or_dir = _fetched(repo_or_dir, force_reload, trust_repo, verbose, skip_validation)
    return _load_local(repo_or_dir, model, *args, **kwargs)


def _load_local(hubconf_dir, model, *args, **kwargs):
    with _on_path(os.fspath(hubconf_dir)):
        return _entry(_hubconf(hubconf_dir), model)(*args, **kwargs)


# --- files ----------------------------------------------------------------------------------------------------------------------


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Save what is at `url` as the file `dst`, which appears when it is complete.

    RuntimeError when its SHA256 does not begin with `hash_prefix`; urllib's errors where it cannot be read.
    """
    dst = os.path.expanduser(dst)
    digest = hashlib.sha256() if hash_prefix is not None else None
    with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as answer:
        length = answer.headers.get("Content-Length")
        handle, partial = tempfile.mkstemp(prefix=os.path.basename(dst) + ".", suffix=".partial", dir=os.path.dirname(dst) or ".")
        try:
            bar = sys.modules[__name__].tqdm
            size = int(length) if length else None
            with open(handle, "wb") as file, bar(total=size, disable=not progress, unit="B", unit_scale=True, unit_divisor=1024) as shown:
                while chunk := answer.read(READ_DATA_CHUNK):
                    file.write(chunk)
                    if digest is not None:
                        digest.update(chunk)
                    shown.update(len(chunk))
                if size is not None and file.tell() != size:
                    raise URLError(f"retrieval incomplete: got only {file.tell()} out of {size} bytes")
            if digest is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            _set_usual_mode(partial)
            os.replace(partial, dst)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(partial)


def _set_usual_mode(path):
    """The permissions of a new file; those of temporary files are stricter."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)


def _only_file_of(path, folder, map_location, weights_only):
    """What the one file in a zip archive holds: files of weights were packed so once."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) != 1:
            raise RuntimeError("Only one file(not dir) is allowed in the zipfile")
        _extract(archive, folder)
    return cresset.load(os.path.join(folder, members[0].filename), map_location=map_location, weights_only=weights_only)


def _is_packed(path):
    """Is it a zip archive that is not itself a file of `save`?"""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return len(archive.infolist()) == 1 and not archive.infolist()[0].filename.endswith("/data.pkl")


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False):
    """What the file at `url` holds, fetched into `model_dir` (`get_dir()/checkpoints`) unless it is there.

    `check_hash`: the name has the form `name-<first digits of its SHA256>.ext`, and RuntimeError is raised when they differ. `file_name` instead of the
    name in the address; `map_location` and `weights_only` as in `load`.
    """
    if os.getenv("TORCH_MODEL_ZOO"):
        warnings.warn("TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress=progress)
    if _is_packed(path):
        return _only_file_of(path, model_dir, map_location, weights_only)
    return cresset.load(path, map_location=map_location, weights_only=weights_only)
