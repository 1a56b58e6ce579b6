"""Real tensors beside fake ones: every operator runs on them too, and what operators of programs' libraries say of themselves is compared with what they do."""

import cresset
from cresset._library.fake import sizes_given
from cresset.utils._python_dispatch import no_dispatch
from cresset.utils._pytree import keystr, tree_flatten_with_path, tree_leaves, tree_map_only

__all__ = ["MetadataMismatchError", "RealRun", "inferred"]

_OWN = ("aten", "prim", "prims", "cresset")


class MetadataMismatchError(RuntimeError):
    """A fake result has another form than the real one."""


class RealRun:
    """One operator on the real tensors of its arguments. `values`: what it gives; `known`: could it run?"""

    def __init__(self, mode, func, args, kwargs):
        self.func, self.known, self.values = func, False, None
        lifted = func._schema.name in ("aten::lift_fresh", "aten::lift")
        real = lambda t: getattr(t, "real_tensor", None) if getattr(t, "_has_no_values", False) else t if lifted else mode.from_tensor(t).real_tensor  # noqa: E731
        self.args, self.kwargs = tree_map_only(cresset.Tensor, real, (args, kwargs))
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, cresset.Tensor)]
        self.tensors = [real(t) for t in given]
        device = cresset.device(kwargs.get("device") or "cpu")
        self.may = all(t is not None for t in self.tensors) and device.type == "cpu" and all(t.device.type == "cpu" for t in given)

    def run(self):
        """Run it, if it may. RuntimeError for operators of libraries that write what their schemas do not say."""
        if not self.may:
            return
        own = self.func.namespace in _OWN
        before = () if own else self._unwritten()
        with no_dispatch(), cresset.no_grad():
            self.values = self.func(*self.args, **self.kwargs)
            for name, tensor, copy in before:
                if not cresset.allclose(tensor, copy, rtol=0, atol=0, equal_nan=True):
                    raise RuntimeError(
                        f"{self.func.name()}: for argument '{name}': the operator's schema {self.func._schema} says that the operator does not write to it, and it does. "
                        "Say what is written: mutates_args of custom_op, Tensor(a!) in a schema."
                    )
        self.known = True

    def _unwritten(self):
        """(name, tensor, copy) of the tensors that the schema says are not written."""
        found = []
        with no_dispatch(), cresset.no_grad():
            for at, parameter in enumerate(self.func._schema.arguments):
                value = self.args[at] if at < len(self.args) else self.kwargs.get(parameter.name)
                if not parameter.is_write:
                    found += [(parameter.name, t, t.clone()) for t in tree_leaves(value) if isinstance(t, cresset.Tensor)]
        return found

    def check(self, results):
        """MetadataMismatchError where the fake results of an operator of a library are of another form."""
        if not self.known or self.func.namespace in _OWN or sizes_given():  # sizes that somebody gives are no real ones
            return
        (fakes, _), (reals, _) = tree_flatten_with_path(results), tree_flatten_with_path(self.values)
        for (path, fake), (_, real) in zip(fakes, reals):
            if not isinstance(fake, cresset.Tensor) or not isinstance(real, cresset.Tensor):
                continue
            place = f"output{keystr(path)}"
            aliases = any(getattr(fake, "real_tensor", None) is t for t in self.tensors)
            if aliases and not any(real is t for t in self.tensors):
                raise MetadataMismatchError(f"Real tensor propagation found an aliasing mismatch between fake output {fake} and real output {real},  for func: {self.func}")
            for d, (a, b) in enumerate(zip(fake.shape, real.shape)):
                if a != b:
                    raise MetadataMismatchError(f"Real tensor propagation found an output size mismatch between fake shape {a} and real shape {b}, at {place}.size({d}), for func: {self.func}")
            if (fake.dtype, fake.dim(), fake.stride()) != (real.dtype, real.dim(), real.stride()):
                raise MetadataMismatchError(f"Real tensor propagation found a metadata mismatch between fake tensor {fake} and real tensor {real},  at {place}, for func: {self.func}")


def _is_dense(tensor):
    step = 1
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape) if n != 1):
        if stride != step:
            return False
        step *= size
    return True


def inferred(mode, run):
    """Fake results of an operator without a fake implementation, by what it gives for the real tensors. RuntimeError for results of a form that does not follow from their sizes."""
    with no_dispatch():
        for real in tree_leaves(run.values):
            if not isinstance(real, cresset.Tensor):
                continue
            words = f"{run.func}: no fake implementation was registered, and none can be inferred: a result"
            if real.storage_offset():
                raise RuntimeError(f"{words} has a non-zero storage offset. Register one with register_fake.")
            if not _is_dense(real):
                raise RuntimeError(f"{words} is not dense in memory. Register one with register_fake.")
        return tree_map_only(cresset.Tensor, lambda t: mode._wrap(cresset.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta"), t.device), run.values)
