"""Runs the tests of one file of PyTorch's, each in a process of its own forked from this one; results are lines of JSON on a pipe.

Started by runs.py, in the interpreter that is to run the tests. Its one argument is a JSON object: side ("cresset" or "torch"), tests (the
folder), file, helpers (folders that hold `torch/testing`), sample, seed, only, seconds (for one test), out (a file descriptor).
"""

import contextlib
import faulthandler
import functools
import gc
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import unittest
import warnings
from pathlib import Path

import absent
import shims

MEMORY = 12 << 30
SPAWNED = "CRESSET_PEER_TESTS_OPTIONS"  # for processes that tests spawn: they run this file as their main module first


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a file of tests or helpers. No bytecode is read or written: that of the unchanged file has the same name."""

    package = None  # that relative imports of a file of tests are from

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        package = self.package or (fullname if os.path.basename(path) == "__init__.py" else fullname.rpartition(".")[0])
        return absent.compiled(self.get_data(path).decode(), path, package or None)


class _CressetHelperLoader(_Loader):
    def exec_module(self, module):
        super().exec_module(module)
        shims.complete(module)


class _HelperLoader(_Loader):
    """On the control's side the real PyTorch imports its helpers, too: names that the tests' version lacks come from the installed one, which
    also stands in for a helper that does not load with a newer PyTorch."""

    def exec_module(self, module):
        import torch

        file = Path(torch.__file__).parents[1].joinpath(*module.__name__.split("."))
        file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        try:
            super().exec_module(module)
        except Exception:
            if not file.exists():
                raise
            _Loader(module.__name__, str(file)).exec_module(module)
        shims.complete_both(module)
        installed = []

        def from_installed(name):
            if name.startswith("__") or not file.exists():
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            if not installed:
                spec = importlib.util.spec_from_file_location(module.__name__, file)
                installed.append(importlib.util.module_from_spec(spec))
                spec.loader.exec_module(installed[0])
            return getattr(installed[0], name)

        module.__getattr__ = from_installed


class _Finder(importlib.abc.MetaPathFinder):
    """Finds helpers in their tree, and marks everything below the folder of tests for the loader above."""

    def __init__(self, tests, helpers, control):
        self.tests, self.helpers = str(tests) + os.sep, [Path(h) for h in helpers]
        self.loader = _HelperLoader if control else _CressetHelperLoader

    def find_spec(self, name, path=None, target=None):
        if self.helpers and any(name == helper or name.startswith(helper + ".") for helper in shims.HELPERS):
            for place in (folder.joinpath(*name.split(".")) for folder in self.helpers):
                for file in (f for f in (place / "__init__.py", place.with_suffix(".py")) if f.exists()):
                    folders = [str(place)] if file.name == "__init__.py" else None
                    return importlib.util.spec_from_file_location(name, file, loader=self.loader(name, str(file)), submodule_search_locations=folders)
            return None
        if name.split(".")[0] in absent.ROOTS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and spec.origin and spec.origin.startswith(self.tests) and spec.origin.endswith(".py"):
            spec.loader = _Loader(name, spec.origin)
            return spec
        return None


def prepare(options):
    """Makes `torch` what the side says, with helpers and stand-ins."""
    if options["side"] == "cresset":
        from cresset import as_torch

        as_torch.install()
        shims.install()

    for name in [n for n in sys.modules if options["helpers"] and n.startswith(shims.HELPERS)]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(options["tests"], options["helpers"], options["side"] == "torch"))
    folder = Path(options["tests"], options["file"]).parent
    sys.path[:0] = [str(folder), options["tests"]]


def _path_of(owner):
    """(module, names of what to look up there one after the other) of what got a placeholder."""
    if absent.is_operator(owner):
        return "torch.ops", str(owner)
    return (owner.__name__, "") if isinstance(owner, type(sys)) else (owner.__module__, owner.__qualname__)


def load(options):
    """The module of the file. A name of `torch` that it looks up in vain while it loads becomes a placeholder, and it is loaded again."""
    path = Path(options["tests"], options["file"])
    name = path.stem
    placed = []
    absent.loading = True
    try:
        for home, owner, attribute in options.get("placed", ()):
            with contextlib.suppress(ImportError):  # (some modules are attributes of others only)
                importlib.import_module(home)
            found = functools.reduce(getattr, [*home.split(".")[1:], *owner.split(".")] if owner else home.split(".")[1:], importlib.import_module(home.split(".")[0]))
            setattr(found, attribute, absent.placeholder(f"{found.__name__}.{attribute}"))
            placed.append((found, attribute))
        for _ in range(300):
            loader = _Loader(name, str(path))
            if (path.parent / "__init__.py").exists():
                loader.package = ".".join(Path(options["file"]).parent.parts)
            spec = importlib.util.spec_from_file_location(name, path, loader=loader)
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(module)
                for helper in shims.HELPERS[1:] if options["helpers"] else ():
                    importlib.import_module(helper)  # tests look them up without an import
                return module
            except Exception as error:
                if not absent.lookup_of(error):
                    if not placed or options.get("again"):
                        raise
                    # What the file did to tables of its helpers was done twice: all afresh, with the placeholders in place.
                    options["again"] = True
                    options["placed"] = [(*_path_of(owner), name) for owner, name in placed if name != "__getattr__"]
                    os.execv(sys.executable, [sys.executable, __file__, json.dumps(options)])
                owner, attribute = absent.lookup_of(error)
                setattr(owner, attribute, absent.placeholder(f"{owner.__name__}.{attribute}"))
                placed.append((owner, attribute))
                if sum(known is owner for known, _ in placed) == 5 and isinstance(owner, type(sys)) and not hasattr(owner, "__getattr__"):
                    # A table of all functions (the overrides' tests): the rest of this module's names at once.
                    owner.__getattr__ = lambda name, path=owner.__name__: absent.placeholder(f"{path}.{name}")
                    placed.append((owner, "__getattr__"))
        raise ImportError(f"{path}: more than 300 names are absent")
    finally:
        absent.loading = False
        for owner, attribute in placed:
            delattr(owner, attribute)


def tests_of(module):
    """{id: (class, method)} of the file. Names that helpers make of classes' modules are those of PyTorch."""
    loader = unittest.defaultTestLoader
    found = {}
    for value in list(vars(module).values()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            for method in loader.getTestCaseNames(value):
                found[f"{value.__name__}.{method}".replace("_cresset_", "_")] = (value, method)
    return found


def chosen(ids, options):
    """The tests to run: those asked for by name, or a sample that depends on their names only."""
    if options.get("ids") is not None:
        return [i for i in options["ids"] if i in ids]
    names = [i for i in ids if re.search(options["only"], i)]
    names.sort(key=lambda i: hashlib.sha1((options["seed"] + i).encode()).hexdigest())
    return names[: options["sample"]] if options["sample"] else names


class _Result(unittest.TestResult):
    """Keeps the first thing that went wrong."""

    def __init__(self):
        super().__init__()
        self.answer = {"outcome": "pass"}

    def _wrong(self, error):
        if self.answer["outcome"] == "fail":
            return
        kind, value, stack = error
        while value.__cause__ is not None and re.match(r"Originating a|Comparing\n|Caused by (sample|reference|error)|\s*Error testing .* variant", str(value)):
            value = value.__cause__
            kind, stack = type(value), value.__traceback__
        frames = [[os.path.basename(f.filename), f.name, f.lineno] for f in traceback.extract_tb(stack)]
        try:
            message = str(value)
        except Exception as failure:
            message = f"(no text: {failure!r})"
        self.answer = {"outcome": "fail", "type": kind.__name__, "message": message[:3000], "frames": frames[-12:], "mro": [c.__name__ for c in kind.__mro__]}
        if isinstance(value, (AttributeError, ImportError)):
            self.answer["name"] = value.name
            self.answer["owner"] = getattr(getattr(value, "obj", None), "__name__", None)

    def addError(self, test, error):
        self._wrong(error)

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        # (A sample that is expected to fail, and passes: as addUnexpectedSuccess.)
        if error is not None and not re.search(r" not raised\nAssociated xfail rule: ", str(error[1])):
            self._wrong(error)

    def addSkip(self, test, reason):
        if self.answer["outcome"] == "pass":
            self.answer = {"outcome": "skip", "message": str(reason)[:300]}

    def addUnexpectedSuccess(self, test):
        pass  # what PyTorch cannot do yet, and Cresset can


def run_here(test, pipe, log):
    """In the child: runs the test and leaves."""
    os.setpgid(0, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable(2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    result = _Result()
    try:
        cls, method = test
        with warnings.catch_warnings():
            unittest.TestSuite([cls(method)]).run(result)
    except BaseException:
        result._wrong(sys.exc_info())
    os.write(pipe, json.dumps(result.answer).encode() + b"\n")
    os._exit(0)


def run(test, seconds, log):
    """The answer of a test that runs in a child. A child that says nothing has crashed, or hangs."""
    log.seek(0)
    log.truncate()
    here, there = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if not child:
        os.close(here)
        run_here(test, there, log.fileno())
    os.close(there)
    text, hangs = b"", False
    while not text.endswith(b"\n"):
        left = start + seconds - time.monotonic()
        if left <= 0 or not select.select([here], [], [], left)[0]:
            hangs = True
            break
        piece = os.read(here, 65536)
        if not piece:
            break
        text += piece
    os.close(here)
    for kill in (lambda: os.killpg(child, signal.SIGKILL), lambda: os.kill(child, signal.SIGKILL)):
        if hangs or text:
            try:
                kill()
            except (ProcessLookupError, PermissionError):
                pass
    status = os.waitpid(child, 0)[1]
    if text.endswith(b"\n"):
        answer = json.loads(text)
    else:
        log.seek(0)
        said = log.read().decode(errors="replace")[-3000:]
        what = f"no end after {seconds:.0f} s" if hangs else f"ended by {signal.Signals(status & 127).name}" if status & 127 else f"exited with {status >> 8}"
        answer = {"outcome": "hang" if hangs else "crash", "message": what, "log": said}
    answer["seconds"] = round(time.monotonic() - start, 2)
    return answer


def main():
    options = json.loads(sys.argv[1])
    sys.argv = [options["file"]]
    sys.dont_write_bytecode = True
    out = os.fdopen(options["out"], "w", buffering=1)

    def send(**line):
        out.write(json.dumps(line) + "\n")

    os.chdir(tempfile.gettempdir())
    warnings.simplefilter("ignore")
    os.environ[SPAWNED] = json.dumps({k: options[k] for k in ("side", "tests", "file", "helpers")})
    try:
        prepare(options)
        tests = tests_of(load(options))
    except BaseException as error:
        kind, value, stack = sys.exc_info()
        frames = [[os.path.basename(f.filename), f.name, f.lineno] for f in traceback.extract_tb(stack)]
        send(load={"outcome": "fail", "type": kind.__name__, "message": str(error)[:3000], "frames": frames[-12:], "mro": [c.__name__ for c in kind.__mro__],
                   "name": getattr(error, "name", None)})  # fmt: skip
        return
    names = chosen(tests, options)
    send(tests=len(tests), chosen=names, absent=sorted(absent.found))
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryFile(buffering=0) as log, tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # Sources of extensions, which tests name relative to their own folder.
        if (sources := Path(options["tests"]).resolve() / "cpp_extensions").is_dir():
            os.symlink(sources, "cpp_extensions")
        for name in names:
            send(id=name, **run(tests[name], options["seconds"], log))
        os.chdir("/")
    send(done=True)


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__" and SPAWNED in os.environ:
    spawned = json.loads(os.environ[SPAWNED])
    prepare(spawned)
    load(spawned | {"again": True})
