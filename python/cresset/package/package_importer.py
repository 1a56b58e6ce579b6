"""Reading packages."""

import builtins
import importlib
import importlib.machinery
import importlib.util
import inspect
import io
import json
import linecache
import os
import types

import cresset
from cresset.serialization._checkpoint import check_persistent_id
from cresset.serialization._locations import location_tag, restorer
from cresset.serialization._zip import ZipReader, ZipWriter

from ._directory_reader import DirectoryReader
from ._mangling import PackageMangler, demangle
from ._package_pickler import PackageUnpickler
from .file_structure_representation import _create_directory_from_file_list
from .importer import Importer, import_own, module_of_builtin

__all__ = ["PackageImporter"]

_IMPLICIT = ("torch", "cresset")


class _Entry:
    """A name in the tree of a package's modules. `source`: its file, None without one; `extern`: it is imported from outside."""

    def __init__(self, source=None, is_package=False, extern=False):
        self.source, self.is_package, self.extern = source, is_package, extern
        self.children = {}


_files = {}  # name of a module from a package -> the name of its source
_getfile = inspect.getfile


def _getfile_of_packages(object):
    """inspect.getfile, which looks for the modules of classes among those of this Python only."""
    if inspect.isclass(object) and object.__module__ in _files:
        return _files[object.__module__]
    return _getfile(object)


class PackageImporter(Importer):
    """Import from a package: a path, an open file or the folder of an unpacked one.

    Modules are its own, made anew for each importer, but for those that the package names as extern, which come from this Python when
    `module_allowed(name)` is true (ImportError otherwise).
    """

    def __init__(self, file_or_buffer, module_allowed=lambda module_name: True):
        self._opened = None
        if isinstance(file_or_buffer, ZipReader):
            self.filename, self.zip_reader = "<pytorch_file_reader>", file_or_buffer
        elif isinstance(file_or_buffer, (str, os.PathLike)):
            self.filename = os.fspath(file_or_buffer)
            if os.path.isdir(self.filename):
                self.zip_reader = DirectoryReader(self.filename)
            else:
                self._opened = open(self.filename, "rb")
                self.zip_reader = ZipReader(self._opened)
        else:
            self.filename, self.zip_reader = "<binary>", ZipReader(file_or_buffer)
        self.root = _Entry(is_package=True)
        self.modules = {}
        self.extern_modules = self._read_extern()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(f"package '{self.filename}' needs the external module '{name}' but that module has been disallowed")
            self._add_extern(name)
        for record in self.zip_reader.get_all_records():
            self._add_file(record)
        self._mangler = PackageMangler()
        self.patched_builtins = dict(vars(builtins), __import__=self._import)
        self.modules["torch_package_importer"] = self

    # Objects and resources ------------------------------------------------------------------------------------------------

    def load_binary(self, package, resource):
        """The bytes that were saved under these names; RuntimeError without them."""
        return self.zip_reader.get_record(self._zipfile_path(package, resource))

    def load_text(self, package, resource, encoding="utf-8", errors="strict"):
        """The text that was saved under these names; RuntimeError without it."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package, resource, map_location=None):
        """The object that was saved under these names, of the package's own classes. `map_location` as load's. RuntimeError without it."""
        text = self.load_binary(package, resource)
        unpickler = PackageUnpickler(self, io.BytesIO(text))
        restore, self._map_location = restorer(map_location), map_location
        storages, reduced = {}, {}
        self._restored = restore, storages

        def persistent_load(saved_id):
            assert isinstance(saved_id, tuple), f"persistent id must be a tuple, got {type(saved_id).__name__}"
            kind = saved_id[0].decode("ascii") if isinstance(saved_id[0], bytes) else saved_id[0]
            if kind == "storage":
                return self._storage(saved_id, restore, storages)
            if kind != "reduce_package":
                raise RuntimeError(f"Unknown typename for persistent_load, expected 'storage' or 'reduce_package' but got '{kind}'")
            *number, function, arguments = saved_id[1:]
            if not number:
                return function(self, *arguments)
            if number[0] not in reduced:
                reduced[number[0]] = function(self, *arguments)
            return reduced[number[0]]

        unpickler.persistent_load = persistent_load
        return unpickler.load()

    def _storage(self, saved_id, restore, loaded):
        kind, storage_type, key, location, count = saved_id[:5]
        dtype, key, location, count = check_persistent_id((kind, storage_type, str(key), location, count))
        return cresset.storage.TypedStorage(wrap_storage=self._memory(key, location, count * dtype.itemsize, restore, loaded), dtype=dtype, _internal=True)

    def _memory(self, key, location, size, restore, loaded):
        if key not in loaded:
            data = self.zip_reader.get_record(f".data/{key}.storage")
            if len(data) != size:
                raise RuntimeError(f"load_pickle: the storage {key} has {len(data)} bytes, {size} were required; the file is damaged.")
            storage = cresset.UntypedStorage(len(data))
            if data:
                memoryview(storage._elements())[:] = data
            placed = restore(storage, location)
            loaded[key] = placed.untyped() if hasattr(placed, "untyped") else placed
        return loaded[key]

    def _load_script(self, number):
        """The compiled module that an exporter saved under a number."""
        from cresset.jit import load

        own = f".data/ts_code/{number}/archive.pt"
        archive = io.BytesIO(self.zip_reader.get_record(own)) if self.zip_reader.has_record(own) else self._script_archive(number)
        module = load(archive, map_location=self._map_location)
        shared = f".data/ts_code/{number}/shared.json"
        for path, key in (json.loads(self.zip_reader.get_record(shared)) if self.zip_reader.has_record(shared) else {}).items():
            self._share(module, path, key)
        return module

    def _share(self, module, path, key):
        """Put a tensor of a compiled module into the memory of this key."""
        *parts, name = path.split(".")
        for part in parts:
            module = getattr(module, part)
        tensor = getattr(module, name)
        size = tensor.untyped_storage().nbytes()
        with cresset.no_grad():
            tensor.set_(self._memory(key, location_tag(tensor.untyped_storage()), size, *self._restored), tensor.storage_offset(), tensor.size(), tensor.stride())

    def _script_archive(self, number):
        """The archive of one compiled module in a package of PyTorch, where all share their code and storages with what else is there."""
        archive = io.BytesIO()
        writer = ZipWriter(archive.write)
        for record in self.zip_reader.get_all_records():
            for start, target in ((f".data/ts_code/{number}/", ""), (".data/ts_code/code/", "code/"), (".data/", "data/"), (".data/version", "version")):
                if record.startswith(start) and (target != "data/" or record.endswith(".storage")):
                    data = self.zip_reader.get_record(record)
                    writer.write_record(target + record[len(start) :], data, len(data))
                    break
        writer.write_end_of_file()
        archive.seek(0)
        return archive

    def id(self):
        """What stands in front of the names of this importer's modules."""
        return self._mangler.parent_name()

    def file_structure(self, *, include="**", exclude=()):
        """The Directory of the files whose paths match `include` and not `exclude`."""
        return _create_directory_from_file_list(os.path.basename(self.filename), self.zip_reader.get_all_records(), include, exclude)

    def python_version(self):
        """The version of the Python that wrote the package, None when it does not say."""
        path = ".data/python_version"
        return self.zip_reader.get_record(path).decode("utf-8").strip() if self.zip_reader.has_record(path) else None

    def _read_extern(self):
        return self.zip_reader.get_record(".data/extern_modules").decode("utf-8").splitlines(keepends=False)

    # The tree of modules ----------------------------------------------------------------------------------------------------

    def _entry(self, parts):
        """The entry of a name, made with those above it; one that is extern ends the way."""
        here = self.root
        for part in parts:
            if here.extern:
                return here
            here = here.children.setdefault(part, _Entry(is_package=True))
        return here

    def _add_file(self, filename):
        *folders, last = filename.split("/")
        if folders and folders[0] == ".data":
            return
        package = self._entry(folders)
        if package.extern:
            raise ImportError(f"inconsistent module structure. package {'.'.join(folders)} is extern, but the package contains a source file {filename}.")
        if last == "__init__.py":
            package.source = filename
        elif last.endswith(".py"):
            entry = package.children.get(last[:-3])
            if entry is None or not entry.source:
                children = entry.children if entry is not None else {}
                package.children[last[:-3]] = new = _Entry(filename, bool(children))
                new.children = children

    def _add_extern(self, name):
        *above, last = name.split(".")
        package = self._entry(above)
        if not package.extern:
            package.children[last] = _Entry(extern=True)

    def _find(self, name):
        """(entry, is it extern) of a module name; entry None where there is none."""
        here = self.root
        for part in name.split("."):
            if here.extern:
                return here, True
            here = here.children.get(part)
            if here is None:
                return None, False
        return here, here.extern

    # Importing --------------------------------------------------------------------------------------------------------------

    def import_module(self, name, package=None):
        """A module of the package, or one that it names as extern. ModuleNotFoundError without it."""
        name = self._mangler.demangle(name)
        level = len(name) - len(name.lstrip("."))
        if level:
            name = self._absolute(name[level:], package or "", level)
        return self._load(name)

    @staticmethod
    def _absolute(name, package, level):
        base = package.rsplit(".", level - 1)
        if len(base) < level:
            raise ImportError("attempted relative import beyond top-level package")
        return f"{base[0]}.{name}" if name else base[0]

    def _load(self, name):
        module = self.modules.get(name)
        if module is not None:
            return module
        if name in self.modules:
            raise ModuleNotFoundError(f"import of {name} halted; None in sys.modules", name=name)
        parent = name.rpartition(".")[0]
        if parent:
            above = self._load(parent)
            if name in self.modules:  # which importing the package may have done
                return self.modules[name]
        entry, extern = self._find(name)
        if extern or (entry is None and name.partition(".")[0] in _IMPLICIT):
            module = self.modules[name] = import_own(name)
        elif entry is None:
            raise ModuleNotFoundError(
                f'No module named "{name}" in self-contained archive "{self.filename}"'
                f" and the module is also not in the list of allowed external modules: {self.extern_modules or ['']}", name=name
            )  # fmt: skip
        else:
            module = self._make_module(name, entry)
        if parent and getattr(above, "__torch_package__", False):
            setattr(above, name.rpartition(".")[2], module)
        return module

    def _make_module(self, name, entry):
        mangled = self._mangler.mangle(name)
        spec = importlib.machinery.ModuleSpec(mangled, self, origin="<package_importer>", is_package=entry.is_package)
        module = types.ModuleType(mangled)
        module.__spec__, module.__loader__ = spec, self
        module.__package__ = name if entry.is_package else name.rpartition(".")[0]
        module.__torch_package__ = True
        module.__file__ = module.__cached__ = None
        if entry.is_package:
            module.__path__ = []
        vars(module)["__builtins__"] = self.patched_builtins
        self.modules[name] = module
        if entry.source is None:
            return module
        module.__file__ = file = self._mangler.mangle(entry.source)
        source = self._source(entry)
        # Where inspect and tracebacks look for lines.
        _files[mangled] = file
        inspect.getfile = _getfile_of_packages
        linecache.cache[file] = (len(source), None, [line + "\n" for line in source.splitlines()], file)
        try:
            exec(compile(source, file, "exec", dont_inherit=True), vars(module))
        except BaseException:
            del self.modules[name]
            raise
        return self.modules[name]

    def _source(self, entry):
        return importlib.util.decode_source(self.zip_reader.get_record(entry.source))

    def get_source(self, module_name):
        """The source of a module, its name as the package or as the module has it. ModuleNotFoundError without it."""
        name = demangle(module_name)
        self.import_module(name)
        entry, extern = self._find(name)
        if entry is None or extern or entry.source is None:
            raise ModuleNotFoundError(f"get_source: {name} has no source in the package.", name=name)
        return self._source(entry)

    def _import(self, name, globals=None, locals=None, fromlist=(), level=0):
        """`__import__` of the package's modules."""
        if level:
            name = self._absolute(name, (globals or {}).get("__package__") or "", level)
        module = self._load(name)
        if not fromlist:
            if not level:
                return self._load(name.partition(".")[0])
            return module
        if hasattr(module, "__path__"):
            self._load_listed(module, name, fromlist)
        return module

    def _load_listed(self, module, name, fromlist):
        for item in fromlist:
            if item == "*":
                # A module that was mocked answers to every name.
                listed = vars(module).get("__all__")
                if listed is not None:
                    self._load_listed(module, name, listed)
            elif not hasattr(module, item) and isinstance(item, str):
                try:
                    self._load(f"{name}.{item}")
                except ModuleNotFoundError as error:
                    if error.name != f"{name}.{item}":
                        raise

    def whichmodule(self, obj, name):
        found = getattr(obj, "__module__", None)
        if found is not None:
            return module_of_builtin(obj, name, found)
        for module_name, module in self.modules.copy().items():
            if module_name in ("__main__", "torch_package_importer") or module is None:
                continue
            here = module
            try:
                for part in name.split("."):
                    here = getattr(here, part)
            except AttributeError:
                continue
            if here is obj:
                return module_name
        return "__main__"

    # Resources for importlib --------------------------------------------------------------------------------------------------

    def _zipfile_path(self, package, resource=None):
        name = package.__name__ if inspect.ismodule(package) else package
        path = demangle(name).replace(".", "/")
        return path if resource is None else f"{path}/{resource}"

    def get_resource_reader(self, fullname):
        """What importlib.resources reads the files of a package with; None when it is not one of this file."""
        name = demangle(fullname)
        entry, extern = self._find(name)
        return _ResourceReader(self, name) if entry is not None and not extern and entry.is_package else None


class _ResourceReader:
    """importlib's reader of the files beside a package's modules."""

    def __init__(self, importer, fullname):
        self.importer, self.fullname = importer, fullname

    def open_resource(self, resource):
        return io.BytesIO(self.importer.load_binary(self.fullname, resource))

    def resource_path(self, resource):
        """The path of a resource in a folder; FileNotFoundError where it lies in an archive."""
        if isinstance(self.importer.zip_reader, DirectoryReader):
            return os.path.join(self.importer.zip_reader.directory, *self.importer._zipfile_path(self.fullname, resource).split("/"))
        raise FileNotFoundError

    def is_resource(self, name):
        return self.importer.zip_reader.has_record(self.importer._zipfile_path(self.fullname, name))

    def contents(self):
        """Names of the files and folders, once each."""
        prefix = self.importer._zipfile_path(self.fullname) + "/"
        found = [r[len(prefix) :].partition("/")[0] for r in self.importer.zip_reader.get_all_records() if r.startswith(prefix)]
        return iter(dict.fromkeys(found))
