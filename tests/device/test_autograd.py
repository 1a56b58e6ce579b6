"""Autograd on every device: gradients of every operator against the CPU's, the graph, hooks, modes."""

import cresset
from cresset import autograd
from cresset.testing._internal.common_device_type import instantiate_device_type_tests, ops
from cresset.testing._internal.common_methods_invocations import op_db
from cresset.testing._internal.common_utils import TestCase, parametrize, run_tests
from cresset.testing.samples import flat

DIFFERENTIABLE = [op for op in op_db if op.supports_autograd and not op.has_nondeterministic_output]


class Cube(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


class TestAutograd(TestCase):
    def gradients(self, op, sample):
        tensors = []
        sample.transform(lambda t: tensors.append(t) or t)
        leaves = [t for t in tensors if isinstance(t, cresset.Tensor) and t.requires_grad]
        outputs = [t for t in flat(op(sample.input, *sample.args, **sample.kwargs)) if t.requires_grad]
        if not leaves or not outputs:
            return None
        weights = [cresset.arange(t.numel(), dtype=cresset.float64).remainder(5).reshape(t.shape).sub(1.5).to(t.dtype).to(t.device) for t in outputs]
        return autograd.grad(outputs, leaves, weights, allow_unused=True)

    @ops(DIFFERENTIABLE, dtypes=(cresset.float64, cresset.complex128))
    def test_gradients(self, device, dtype, op):
        for here, there in zip(op.sample_inputs(device, dtype, requires_grad=True), op.sample_inputs("cpu", dtype, requires_grad=True)):
            try:
                want = self.gradients(op, there)
            except (RuntimeError, TypeError):
                continue  # a sample that has no gradient in this dtype
            if want is not None:
                self.assertEqual(self.gradients(op, here), want)

    def test_accumulates(self, device):
        x = cresset.tensor([1.0, 2.0], device=device, requires_grad=True)
        (x * x).sum().backward()
        (x * x).sum().backward()
        self.assertEqual(x.grad, cresset.tensor([4.0, 8.0]))
        self.assertEqual(x.grad.device, x.device)

    def test_second_order(self, device):
        x = cresset.tensor([2.0], device=device, requires_grad=True)
        (first,) = autograd.grad(x**3, x, create_graph=True)
        (second,) = autograd.grad(first, x)
        self.assertEqual(second, cresset.tensor([12.0]))

    def test_across_devices(self, device):
        """A graph that goes from the CPU to the device and back."""
        x = cresset.tensor([1.0, 3.0], requires_grad=True)
        y = (x.to(device) * 2).to("cpu")
        y.sum().backward()
        self.assertEqual(x.grad, cresset.tensor([2.0, 2.0]))

    def test_hooks(self, device):
        x = cresset.ones(2, device=device, requires_grad=True)
        seen = []
        y = x * 2
        y.register_hook(lambda g: seen.append(g.device) or g * 10)
        y.sum().backward()
        self.assertEqual(seen, [x.device])
        self.assertEqual(x.grad, cresset.tensor([20.0, 20.0]))

    def test_custom_function(self, device):
        x = cresset.tensor([1.0, 2.0], device=device, requires_grad=True)
        Cube.apply(x).sum().backward()
        self.assertEqual(x.grad, cresset.tensor([3.0, 12.0]))

    @parametrize("mode", ["no_grad", "inference_mode"])
    def test_modes(self, device, mode):
        x = cresset.ones(2, device=device, requires_grad=True)
        with getattr(cresset, mode)():
            self.assertFalse((x * 2).requires_grad)
        self.assertTrue((x * 2).requires_grad)

    def test_detects_changed_saved_values(self, device):
        x = cresset.ones(2, device=device, requires_grad=True)
        y = x.exp()
        y.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()


instantiate_device_type_tests(TestAutograd, globals())

if __name__ == "__main__":
    run_tests()
