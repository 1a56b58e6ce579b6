"""Every operator on every device against the CPU: results, gaps between elements, out= and in place."""

import cresset
from cresset.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops, skipMeta
from cresset.testing._internal.common_methods_invocations import op_db
from cresset.testing._internal.common_utils import TestCase, noncontiguous_like, run_tests
from cresset.testing.samples import flat

SEEDLESS = [op for op in op_db if not op.has_nondeterministic_output]
# Those whose result depends on strides, or that need particular ones.
STRIDED = {"as_strided_scatter", "as_strided_copy", "view_as_complex_copy", "_unsafe_view"}
FUNCTIONS = [op for op in SEEDLESS if not op.is_view and op.name not in STRIDED]
COMMON = (cresset.float32, cresset.complex64, cresset.int64, cresset.bool)


class TestOperators(TestCase):
    def pairs(self, device, dtype, op):
        """(sample on the device, the same on the CPU)."""
        return zip(op.sample_inputs(device, dtype), op.sample_inputs("cpu", dtype))

    def call(self, function, sample, **kwargs):
        first = () if sample.input is None and not sample.args else (sample.input,)
        return function(*first, *sample.args, **sample.kwargs, **kwargs)

    @ops(SEEDLESS, dtypes=COMMON)
    def test_values(self, device, dtype, op):
        for here, there in self.pairs(device, dtype, op):
            self.assertEqual(flat(self.call(op, here)), flat(self.call(op, there)))

    @ops(FUNCTIONS, dtypes=OpDTypes.any_one)
    def test_gaps(self, device, dtype, op):
        """Arguments with gaps between their elements give the same values."""
        for here, there in self.pairs(device, dtype, op):
            spread = here.transform(lambda t: noncontiguous_like(t.detach()) if isinstance(t, cresset.Tensor) else t)
            self.assertEqual(flat(self.call(op, spread)), flat(self.call(op, there)))

    @ops([op for op in SEEDLESS if op.supports_out and op.row.out["returns"]], dtypes=OpDTypes.any_one)
    def test_out(self, device, dtype, op):
        form = op.row.out
        names = [a["name"] for a in form["arguments"] if a["write"]]
        known = {a["name"] for a in form["arguments"]}
        for here, there in self.pairs(device, dtype, op):
            want = flat(self.call(op, there))
            outs = [cresset.empty(t.shape, dtype=t.dtype, device=device) for t in want]
            here.kwargs = {k: v for k, v in here.kwargs.items() if k in known}
            self.call(op.out_variant, here, **dict(zip(names, outs)))
            self.assertEqual(outs, want)

    @ops([op for op in SEEDLESS if op.inplace_variant and op.row.inplace["returns"]], dtypes=OpDTypes.any_one)
    def test_in_place(self, device, dtype, op):
        for here, there in self.pairs(device, dtype, op):
            want = flat(self.call(op, there))
            if not isinstance(here.input, cresset.Tensor) or want[0].shape != here.input.shape or want[0].dtype != here.input.dtype:
                continue
            self.assertIs(self.call(op.inplace_variant, here), here.input)
            self.assertEqual(here.input, want[0])

    def test_in_place_keeps_the_size(self, device):
        for change in (
            lambda x, y: x.mul_(y), lambda x, y: x.igamma_(y), lambda x, y: x.hypot_(y), lambda x, y: x.addcmul_(y, y), lambda x, y: x.lerp_(y, 0.5),
        ):  # fmt: skip
            x, y = cresset.ones(3, 4, 1, device=device), cresset.ones(4, device=device)
            with self.assertRaisesRegex(RuntimeError, "doesn't match the broadcast shape"):
                change(x, y)
            self.assertEqual(x.shape, (3, 4, 1))

    def test_an_out_with_an_element_twice_is_refused(self, device):
        out = cresset.ones(1, device=device).expand(3)
        for call in (lambda x: cresset.erfc(x, out=out), lambda x: cresset.cumsum(x, 0, out=out), lambda x: cresset.maximum(x, x, out=out)):
            with self.assertRaisesRegex(RuntimeError, "more than one element of the written-to tensor"):
                call(cresset.ones(3, device=device))

    @skipMeta
    def test_copies(self, device):
        x = cresset.arange(12, dtype=cresset.float32).reshape(3, 4)
        y = x.to(device)
        self.assertEqual(y.device.type, cresset.device(device).type)
        self.assertEqual(y.cpu(), x)
        self.assertEqual(y.t().contiguous().cpu(), x.t())
        self.assertEqual(y.to(cresset.int64).cpu(), x.to(cresset.int64))
        self.assertEqual(y.numel(), 12)
        self.assertEqual(y[1, 2].item(), 6.0)


instantiate_device_type_tests(TestOperators, globals())

if __name__ == "__main__":
    run_tests()
