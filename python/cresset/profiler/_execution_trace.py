"""Execution traces: files of what ran inside of what, with all that calls were given and gave out, for programs that replay or compare them."""

import json
import math
import os
import tempfile
import time
import warnings
import weakref

from cresset import _C

__all__ = ["ExecutionTraceObserver"]

_SCHEMA = "1.1.1-chakra.0.0.4"
_USER_SCOPE, _BACKWARD = 7, 1
_TENSOR = "Tensor"


def _plain(kind, value):
    """A value as files have it."""
    if kind == "None" or (value is None and kind.startswith(_TENSOR)):
        return "<None>"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (bool, int, float, str)):
        return value
    return f"<{kind}>" if value is None else str(value)


def _attribute(name, kind, value):
    return {"name": name, "type": kind, "value": value}


class _Writer:
    """One file. Operators, tensors and storages are numbered together; 1 is the process."""

    def __init__(self, path):
        self._file = open(path, "w")
        self._nodes, self._last, self._known, self._started = [], 1, {}, time.monotonic_ns()
        self._threads, self._schemas = {}, {}
        self._time = time.strftime("%Y-%m-%d %H:%M:%S")

    def _next(self):
        self._last += 1
        return self._last

    def _number_of(self, kind, address):
        if (kind, address) not in self._known:
            self._known[kind, address] = self._next()
        return self._known[kind, address]

    def _shown(self, observed):
        """(value, shape, type, strides) of a value, each nested as it is."""
        kind, tensor, value, elements = observed
        if tensor is not None:
            dtype, sizes, strides, address, storage, offset, numel, device = tensor
            number = self._number_of("tensor", address)
            if not storage:
                return [number, 0, 0, 0, 0, ""], sizes, kind, strides
            return [number, self._number_of("storage", storage), offset, numel, dtype.itemsize, device], sizes, kind, strides
        if kind in ("GenericList", "Tuple"):
            values, shapes, kinds, strides = self._all(elements)
            return values, shapes, f"{kind}[{','.join(kinds)}]", strides
        return _plain(kind, value), [], "None" if kind == _TENSOR else kind, []

    def _all(self, observed):
        rows = [self._shown(o) for o in observed]
        return tuple([row[i] for row in rows] for i in range(4))

    def _values(self, observed):
        return dict(zip(("values", "shapes", "types", "strides"), self._all(observed)))

    def _schema_of(self, name, overload):
        if (name, overload) not in self._schemas:
            found = [s for s in _C._jit_get_schemas_for_operator(name) if s.overload_name == overload] if "::" in name else []
            self._schemas[name, overload] = str(found[0]) if found else ""
        return self._schemas[name, overload]

    def _add(self, number, name, around, *, given=(), results=(), record=0, fw_parent=0, sequence=-1, scope=_USER_SCOPE, thread=0, fw_thread=0, schema=""):
        attributes = [
            _attribute("rf_id", "uint64", record), _attribute("fw_parent", "uint64", fw_parent), _attribute("seq_id", "int64", sequence),
            _attribute("scope", "uint64", scope), _attribute("tid", "uint64", thread), _attribute("fw_tid", "uint64", fw_thread),
            _attribute("op_schema", "string", schema), _attribute("kernel_backend", "string", ""), _attribute("kernel_file", "string", ""),
            _attribute("tensor_range", "string", ""),
        ]  # fmt: skip
        inputs, outputs = self._values(given), self._values(results)
        self._nodes.append({"id": number, "name": name, "ctrl_deps": around, "inputs": inputs, "outputs": outputs, "attrs": attributes})

    def add(self, threads):
        """Add what was observed: the threads as the library gives them."""
        by_autograd = {autograd: number for number, autograd, _ in threads}
        for number, _, records in threads:
            if number not in self._threads:
                self._threads[number] = self._next()
                self._add(self._threads[number], "[pytorch|profiler|execution_trace|thread]", 1, thread=number)
            numbers = []
            for id, name, overload, _, _, parent, scope, sequence, forward, args, given, results in records:
                numbers.append(self._next())
                around = numbers[parent] if parent >= 0 else self._threads[number]
                is_backward = scope == _BACKWARD
                self._add(
                    numbers[-1], name, around, given=[("String", None, args, ())] if args else given, results=results, record=id,
                    fw_parent=around if is_backward else 0, sequence=sequence, scope=scope, thread=number,
                    fw_thread=by_autograd.get(forward, 0) if is_backward else 0, schema=self._schema_of(name, overload),
                )  # fmt: skip

    def finish(self):
        """Write the file."""
        self._add(1, "[pytorch|profiler|execution_trace|process]", 1)
        about = {"schema": _SCHEMA, "pid": os.getpid(), "time": self._time, "start_ts": self._started // 1_000_000}
        with self._file as file:
            file.write(f"{json.dumps(about)[:-1]},\n \"nodes\": [\n  ")
            file.write(",\n  ".join(map(json.dumps, self._nodes)))
            file.write(f"\n ],\n \"finish_ts\": {time.monotonic_ns() // 1_000_000}}}\n")


class ExecutionTraceObserver:
    """Writes what this thread runs between `start` and `stop`, and what it hands on, to a file: JSON with a node for each operator, backward step and
    named range, its inputs and outputs (tensors as [number, number of the storage, offset, elements, bytes of one, device]), and `ctrl_deps`, the node
    around it.

    `register_callback` names the file, `unregister_callback` writes it; in between it may start and stop several times, alone or as
    `profile(execution_trace_observer=...)`, which starts and stops it with its own sessions. One observer of a process is registered at a time.
    """

    _current = staticmethod(lambda: None)  # gives the registered one, as long as it lives

    def __init__(self):
        self._writer, self._execution_trace_running = None, False
        self.output_file_path, self.extra_resources_collection = None, False

    def __del__(self):
        self.cleanup()

    def register_callback(self, output_file_path):
        """Write to this file from now on; gives the observer. A warning when another one is registered, or the file cannot be written."""
        if self._writer is not None:
            return self
        if ExecutionTraceObserver._current() is not None:
            warnings.warn("Execution trace observer is already registered.", stacklevel=2)
            return self
        self.output_file_path = output_file_path
        try:
            self._writer = _Writer(output_file_path)
        except OSError as error:
            warnings.warn(f"Failed to open output file: {output_file_path}: {error}", stacklevel=2)
            return self
        ExecutionTraceObserver._current = weakref.ref(self)
        return self

    def unregister_callback(self):
        """Stop, and write the file. Nothing when the observer is not registered."""
        if self._writer is None:
            return
        self.stop()
        ExecutionTraceObserver._current = staticmethod(lambda: None)
        writer, self._writer = self._writer, None
        writer.finish()

    @property
    def is_registered(self):
        """Whether there is a file to write."""
        return self._writer is not None

    def is_running(self):
        """Whether it observes now."""
        return self._execution_trace_running

    def start(self):
        """Begin to observe. Nothing when the observer is not registered or runs already. RuntimeError when a profile runs in another thread."""
        if self._writer is not None and not self._execution_trace_running:
            _C._profiler_observe()
            self._execution_trace_running = True

    def stop(self):
        """Observe no more, for now."""
        if self._execution_trace_running:
            self._execution_trace_running = False
            self._writer.add(_C._profiler_observed())

    def cleanup(self):
        """The same as unregister_callback."""
        self.unregister_callback()

    def get_output_file_path(self):
        """The file's name, None before register_callback."""
        return self.output_file_path or None

    def set_extra_resource_collection(self, val):
        """Whether there is a directory for what programs put beside the file."""
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create=False):
        """The directory beside the file, None without set_extra_resource_collection or before register_callback."""
        if not self.extra_resources_collection or not self.output_file_path:
            return None
        return self.get_resources_dir_for_et_path(self.output_file_path, create_dir=can_create)

    @staticmethod
    def get_resources_dir_for_et_path(trace_path, create_dir=False):
        """The directory beside a file of this name; None when it does not exist and is not to be made, or cannot be."""
        path = os.path.splitext(trace_path)[0] + "_resources"
        if create_dir:
            try:
                os.makedirs(path, exist_ok=True)
            except OSError as error:
                warnings.warn(f"Failed to create the directory {path}: {error}", stacklevel=2)
        return path if os.path.isdir(path) else None

    @staticmethod
    def build_execution_trace_obs_from_env():
        """A registered observer with a new temporary file when the environment has ENABLE_PYTORCH_EXECUTION_TRACE=1, else None;
        ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS=1 gives it a directory."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE") != "1":
            return None
        handle, path = tempfile.mkstemp(".et.json")
        os.close(handle)
        observer = ExecutionTraceObserver().register_callback(path)
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS") == "1":
            observer.set_extra_resource_collection(True)
        return observer
