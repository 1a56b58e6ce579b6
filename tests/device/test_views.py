"""Views on every device: what is written to a view is in its base, versions count, and views of views know the first base."""

import cresset
from cresset.testing import make_tensor
from cresset.testing._internal.common_device_type import OpDTypes, dtypes, instantiate_device_type_tests, ops
from cresset.testing._internal.common_methods_invocations import op_db
from cresset.testing._internal.common_utils import TestCase, parametrize, run_tests
from cresset.testing.samples import flat

VIEWS = [op for op in op_db if op.is_view]

CASES = {
    "view": lambda x: x.view(4, 6), "reshape": lambda x: x.reshape(8, 3), "transpose": lambda x: x.transpose(0, 2), "permute": lambda x: x.permute(2, 0, 1),
    "select": lambda x: x.select(1, 1), "slice": lambda x: x[:, 1:, ::2], "narrow": lambda x: x.narrow(2, 1, 2), "diagonal": lambda x: x.diagonal(0, 1, 2),
    "unsqueeze": lambda x: x.unsqueeze(1), "flatten": lambda x: x.flatten(0, 1), "unfold": lambda x: x.unfold(2, 2, 2), "movedim": lambda x: x.movedim(0, 1),
    "split": lambda x: x.split(1, 1)[1], "chunk": lambda x: x.chunk(2, 2)[0], "unbind": lambda x: x.unbind(0)[1], "mT": lambda x: x.mT,
    "view_of_view": lambda x: x.t_() if x.dim() == 2 else x.view(6, 4).t()[1:],
}  # fmt: skip


class TestViews(TestCase):
    def source(self, device, dtype):
        return make_tensor(2, 3, 4, dtype=dtype, device=device)

    @dtypes(cresset.float32, cresset.int64, cresset.bool)
    @parametrize("name", list(CASES))
    def test_shares_memory(self, device, dtype, name):
        x = self.source(device, dtype)
        want = x.cpu() if device != "meta" else x.clone()
        v, w = CASES[name](x), CASES[name](want)
        self.assertTrue(v._is_view())
        self.assertIs(v._base, x)
        self.assertEqual((v.shape, v.stride(), v.storage_offset()), (w.shape, w.stride(), w.storage_offset()))
        self.assertEqual(v, w)
        version = x._version
        v.fill_(1)
        w.fill_(1)
        self.assertGreater(x._version, version)
        self.assertEqual(x, want)

    @ops(VIEWS, dtypes=OpDTypes.any_one)
    def test_operators(self, device, dtype, op):
        """Every operator of the table that is a view: the same numbers, and a view of its input."""
        for here, there in zip(op.sample_inputs(device, dtype), op.sample_inputs("cpu", dtype)):
            have, want = flat(op(here.input, *here.args, **here.kwargs)), flat(op(there.input, *there.args, **there.kwargs))
            self.assertEqual(have, want)
            self.assertEqual([t._is_view() for t in have], [t._is_view() for t in want])

    def test_gradient_of_a_changed_base(self, device):
        x = cresset.ones(2, 3, device=device, requires_grad=True)
        y = x * 2
        y[0].mul_(3)
        y.sum().backward()
        self.assertEqual(x.grad, cresset.tensor([[6.0] * 3, [2.0] * 3]))

    def test_refuses_views_of_leaves_that_change(self, device):
        x = cresset.ones(3, device=device, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "a view of a leaf Variable that requires grad is being used in an in-place operation"):
            x[0].fill_(2)


instantiate_device_type_tests(TestViews, globals())

if __name__ == "__main__":
    run_tests()
