"""`op_db`: an OpInfo for each row of the operator table that has samples. Names of the fields are PyTorch's.

The samples are those of the derived tests (cresset.testing.samples); dtypes are found by trying the samples on the CPU.
"""

import functools

import cresset
from cresset.testing.samples import cast, rows
from cresset.testing._internal.common_dtype import get_all_dtypes

__all__ = ["OpInfo", "SampleInput", "op_db", "ops_by_name"]

_REFUSALS = (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError)


class SampleInput:
    """Arguments of one call: op(sample.input, *sample.args, **sample.kwargs)."""

    __slots__ = ("input", "args", "kwargs", "output_process_fn_grad", "broadcasts_input", "name")

    def __init__(self, input, *var_args, args=None, kwargs=None, output_process_fn_grad=None, broadcasts_input=False, name="", **var_kwargs):
        self.input = input
        self.args = tuple(args) if args is not None else var_args
        self.kwargs = kwargs if kwargs is not None else var_kwargs
        self.output_process_fn_grad = output_process_fn_grad or (lambda x: x)
        self.broadcasts_input, self.name = broadcasts_input, name

    def __repr__(self):
        return f"SampleInput(input={self.input!r}, args={self.args!r}, kwargs={self.kwargs!r}, name={self.name!r})"

    def transform(self, f):
        """The same sample with every tensor (and dtype) t replaced by f(t)."""

        def change(value):
            if isinstance(value, (cresset.Tensor, cresset.dtype)):
                return f(value)
            if isinstance(value, (list, tuple)) and not isinstance(value, cresset.Size):
                return type(value)(map(change, value))
            return {k: change(v) for k, v in value.items()} if isinstance(value, dict) else value

        return SampleInput(change(self.input), args=change(self.args), kwargs=change(self.kwargs), broadcasts_input=self.broadcasts_input,
                           output_process_fn_grad=self.output_process_fn_grad, name=self.name)

    def noncontiguous(self):
        """The same sample with gaps between the elements of its tensors."""
        from cresset.testing._internal.common_utils import noncontiguous_like

        return self.transform(lambda t: noncontiguous_like(t) if isinstance(t, cresset.Tensor) else t)

    def numpy(self):
        """The same sample with NumPy arrays."""

        def array(t):
            if isinstance(t, cresset.Tensor):
                return (t.float() if t.dtype == cresset.bfloat16 else t).detach().cpu().numpy()
            return cresset.empty(0, dtype=t).numpy().dtype

        return self.transform(array)


class OpInfo:
    """One operator: how to call it, its dtypes, samples, and what it supports."""

    def __init__(self, row):
        self.row, self.op = row, row.op()
        self.name = row["name"].partition("::")[2]
        self.variant_test_name = row["overload"]
        self.aten_name, self.aliases, self.ref = self.name, (), None
        self.supports_out, self.supports_inplace_autograd = row.out is not None, row.inplace is not None and row.differentiable
        self.supports_autograd = self.supports_gradgrad = row.differentiable
        # A formula of its own needs a forward formula of its own; a composition has what its parts have.
        self.supports_forward_ad = row.differentiable and not (row["differentiable"] == "formula" and row["jvp"] is None)
        self.supports_fwgrad_bwgrad = self.supports_forward_ad
        self.is_factory_function = not any("Tensor" in a["type"] for a in row["arguments"])
        self.has_nondeterministic_output = row.random
        self.is_view = bool(row["view"])
        self.gradcheck_wrapper = lambda op, *args, **kwargs: op(*args, **kwargs)
        self.gradcheck_nondet_tol, self.gradcheck_fast_mode = 0.0, None
        self.check_batched_grad = self.check_batched_gradgrad = False
        self.decorators, self.skips = (), ()
        method = self.name if "method" in row["python"] else None
        self.method_variant = getattr(cresset.Tensor, method, None) if method else None
        self.inplace_variant = row.op(row.inplace) if row.inplace else None
        self.out_variant = row.op(row.out) if row.out else None
        self.operator_variant = self.inplace_operator_variant = None

    def __repr__(self):
        return f"OpInfo({self.full_name})"

    def __call__(self, *args, **kwargs):
        return self.op(*args, **kwargs)

    @property
    def full_name(self):
        return f"{self.name}.{self.variant_test_name}" if self.variant_test_name else self.name

    @property
    def formatted_name(self):
        return self.full_name.replace(".", "_")

    def get_op(self):
        return self.op

    def get_method(self):
        return self.method_variant

    def get_inplace(self):
        return self.inplace_variant

    def get_decorators(self, test_class, test_name, device, dtype, param_kwargs):
        return list(self.decorators)

    def _calls(self, dtype, requires_grad=False):
        wanted = dtype.is_floating_point or dtype.is_complex
        for _, call in self.row.calls():
            leaves = [t.requires_grad for t in call.tensors()]
            changed = cast(call, dtype)
            if requires_grad and wanted:
                order = iter(leaves)
                changed = changed.map(lambda t: t.requires_grad_(next(order) and (t.is_floating_point() or t.is_complex())))
            yield changed

    def sample_inputs(self, device, dtype, requires_grad=False, **kwargs):
        """Samples whose floating tensors have the dtype; index, mask and integer arguments stay what they are."""
        for number, call in enumerate(self._calls(dtype, requires_grad)):
            moved = self.row.place(call, device)
            if self.is_factory_function:
                moved.kwargs["device"] = cresset.device(device)
            first = moved.args[0] if moved.args else None
            yield SampleInput(first, args=moved.args[1:], kwargs=moved.kwargs, name=self.row["samples"][number])

    reference_inputs = sample_inputs

    def error_inputs(self, device, **kwargs):
        return iter(())

    @functools.cached_property
    def dtypes(self):
        """dtypes in which the CPU takes all samples. An operator without floating arguments has its samples' own dtype only."""
        dtype = self._own_dtype()
        if dtype is not None:
            return {dtype}
        return {d for d in get_all_dtypes() if self._runs(d)}

    def _own_dtype(self):
        tensors = self.row.call(0).tensors()
        if any(t.is_floating_point() or t.is_complex() for t in tensors):
            return None
        return tensors[0].dtype if tensors else cresset.get_default_dtype()

    def _runs(self, dtype):
        try:
            for call in self._calls(dtype):
                self.op(*call.args, **call.kwargs)
        except _REFUSALS:
            return False
        return True

    @functools.cached_property
    def backward_dtypes(self):
        return {d for d in self.dtypes if d.is_floating_point or d.is_complex} if self.supports_autograd else set()

    def supported_dtypes(self, device_type):
        return self.dtypes

    def supported_backward_dtypes(self, device_type):
        return self.backward_dtypes

    def supports_dtype(self, dtype, device_type):
        return dtype in self.dtypes


op_db = [OpInfo(row) for row in rows()]


def ops_by_name(*names):
    """The OpInfos whose name, with or without overload, is among the names."""
    return [op for op in op_db if op.name in names or op.full_name in names]
