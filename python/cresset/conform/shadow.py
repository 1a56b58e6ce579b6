"""A shadow run: each operator runs on the device and, with the same inputs, on the CPU; the first difference stops the run."""

import contextlib

import cresset
from cresset import _C
from cresset.testing._comparison import Options, compare, default_tolerances
from cresset.testing.capabilities import Capabilities
from cresset.testing.devices import backend_key, state_of, with_tensors
from cresset.testing.samples import flat, operators, qualified
from cresset.utils._python_dispatch import TorchDispatchMode
from cresset.utils._pytree import tree_map_only

from . import reproduce

__all__ = ["Shadow", "WrongOperator"]

# The contents of their results are not defined.
_UNDEFINED = ("aten::empty", "aten::new_empty", "aten::resize", "aten::set_")


class WrongOperator(AssertionError):
    """An operator of a shadow run differs from the CPU. `operator` is its name, `script` the path of the script that repeats the call."""

    def __init__(self, operator, problem, script):
        self.operator, self.problem, self.script = operator, problem, script
        super().__init__(f"{operator}: {problem}\nNext: python {script}")


class Shadow:
    """with Shadow("mychip", folder) as shadow: …

    Every operator of the block that has a tensor on the device is compared with the CPU, below autograd, backward included. Operators that
    the device composes of others are opened, so the first wrong one is the one to repair. WrongOperator is raised at the first
    difference, after a script that repeats the call was written into the folder. `compared` counts the calls that agreed.
    """

    def __init__(self, device, folder=".", *, capabilities=None, loads=()):
        if cresset.device(device).type == "meta":
            raise ValueError("Shadow: a device with values was required; meta was given.")
        self.mode = _ShadowMode(device, folder, capabilities or Capabilities(), loads)
        self._stack = contextlib.ExitStack()

    @property
    def compared(self):
        return self.mode.compared

    def __enter__(self):
        # Backward runs on the thread of this block: modes belong to a thread.
        self._stack.enter_context(cresset.autograd.set_multithreading_enabled(False))
        self._stack.enter_context(self.mode)
        return self

    def __exit__(self, *exception):
        return self._stack.__exit__(*exception)


class _ShadowMode(TorchDispatchMode):
    def __init__(self, device, folder, capabilities, loads):
        super().__init__()
        self.device, self.folder, self.capabilities, self.loads = cresset.device(device), folder, capabilities, loads
        self.key, self.compared = backend_key(device), 0
        self.random = {qualified(r) for r in operators() if "nondeterministic_seeded" in r["tags"]}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        args = with_tensors(func, args)
        name = str(func._schema).partition("(")[0]
        if not self._on_device((args, kwargs)):
            return func(*args, **kwargs)
        if name in self.random or name.startswith(_UNDEFINED):
            return self._run(name, func, args, kwargs)
        before = tree_map_only(cresset.Tensor, _Copies().of, (args, kwargs))
        shadow = _Copies()
        cpu_args, cpu_kwargs = tree_map_only(cresset.Tensor, shadow.of, (args, kwargs))
        cpu_kwargs = {k: cresset.device("cpu") if isinstance(v, cresset.device) else v for k, v in cpu_kwargs.items()}
        cpu_args = tuple(cresset.device("cpu") if isinstance(v, cresset.device) else v for v in cpu_args)
        try:
            want = func(*cpu_args, **cpu_kwargs)
        except NotImplementedError:
            want = None  # only the device has it
        result = self._run(name, func, args, kwargs)
        if want is not None:
            # Arguments too: some operators write what their schema does not mark.
            given, copies_after = zip(*shadow.pairs()) if shadow.copies else ((), ())
            self._compare(name, func, [*flat(result), *given], [*flat(want), *copies_after], len(flat(want)), before)
        return result

    def _on_device(self, arguments):
        found = []
        tree_map_only((cresset.Tensor, cresset.device), lambda v: found.append(v.device if isinstance(v, cresset.Tensor) else v), arguments)
        return any(d.type == self.device.type for d in found)

    def _run(self, name, func, args, kwargs):
        if state_of(name, self.key) != "derived":
            return func(*args, **kwargs)
        with self:
            return func.redispatch(_C.DispatchKeySet(getattr(_C.DispatchKey, self.key)), *args, **kwargs)

    def _compare(self, name, func, have, want, results, before):
        for number, (h, w) in enumerate(zip(have, want)):
            rtol, atol = self.capabilities.tolerances(name.partition("::")[2], w.dtype) or default_tolerances(w)
            problem = compare(h.detach(), w.detach(), Options(rtol=rtol, atol=atol, equal_nan=True, check_device=False))
            if problem:
                what = f"result {number}" if number < results else f"argument {number - results} after the call"
                problem = f"{what}: {' '.join(problem.split())}"
                path = reproduce.write(self.folder, func, *before, self.device, problem=problem, loads=self.loads, tolerances=(rtol, atol))
                raise WrongOperator(name, problem, path)
        self.compared += 1


class _Copies:
    """CPU copies of tensors: one for each tensor, with its strides, and shared memory where the tensors share it."""

    def __init__(self):
        self.copies, self.storages = {}, {}

    def pairs(self):
        return self.copies.values()

    def of(self, t):
        if id(t) not in self.copies:
            self.copies[id(t)] = t, self._copy(t.detach())
        return self.copies[id(t)][1]

    def _copy(self, t):
        try:
            storage = t.untyped_storage()
            key = (storage.data_ptr(), t.dtype, str(t.device))
            if key not in self.storages:
                everything = t.as_strided((storage.nbytes() // t.element_size(),), (1,), 0)
                self.storages[key] = everything.cpu().clone()
            return self.storages[key].as_strided(t.shape, t.stride(), t.storage_offset())
        except (RuntimeError, NotImplementedError):
            return t.cpu().clone()  # memory that cannot be looked at as a whole
