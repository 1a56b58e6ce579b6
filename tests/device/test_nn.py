"""Layers and the example models on every device against the CPU."""

import copy

import cresset
from cresset.testing import models
from cresset.testing._internal.common_device_type import instantiate_device_type_tests
from cresset.testing._internal.common_modules import module_db, modules
from cresset.testing._internal.common_utils import TestCase, freeze_rng_state, parametrize, run_tests
from cresset.testing.samples import flat


class TestModules(TestCase):
    def case(self, info, case, device, dtype, training):
        """A layer and its inputs on the CPU, and their copies on the device."""
        layer = info.module_cls(*case.constructor_input.args, **case.constructor_input.kwargs).to(dtype).train(training)
        inputs = case.forward_input.args
        moved = [x.detach().to(device).requires_grad_(x.requires_grad) for x in inputs]
        return layer, inputs, copy.deepcopy(layer).to(device), moved

    @modules(module_db, allowed_dtypes=[cresset.float32])
    def test_forward_and_backward(self, device, dtype, module_info, training):
        for case in module_info.module_inputs_func(module_info, device="cpu", dtype=dtype, requires_grad=True, training=training):
            layer, inputs, moved_layer, moved = self.case(module_info, case, device, dtype, training)
            with freeze_rng_state():
                want = [t for t in flat(layer(*inputs))]
            have = flat(moved_layer(*moved))
            self.assertEqual(have, want, atol=1e-4, rtol=1e-4)
            sum(t.sum() for t in want if t.requires_grad).backward()
            sum(t.sum() for t in have if t.requires_grad).backward()
            for h, w in zip([*moved, *moved_layer.parameters()], [*inputs, *layer.parameters()]):
                if w.requires_grad:
                    self.assertEqual(h.grad, w.grad, atol=1e-4, rtol=1e-4)
            self.assertEqual(moved_layer.state_dict(), layer.state_dict(), atol=1e-4, rtol=1e-4)

    @parametrize("name", list(models.MODELS))
    def test_models(self, device, name):
        """One forward and backward pass in evaluation mode (random numbers need not agree between devices)."""
        losses, gradients = [], []
        for place in ("cpu", device):
            model, inputs, loss = models.build(name, place)
            value = loss(model.eval()(*inputs))
            value.backward()
            losses.append(value)
            gradients.append([p.grad for p in model.parameters()])
        self.assertEqual(losses[1], losses[0], atol=1e-4, rtol=1e-4)
        self.assertEqual(gradients[1], gradients[0], atol=1e-3, rtol=1e-3)

    def test_state_moves(self, device):
        layer = cresset.nn.BatchNorm2d(3).to(device)
        self.assertEqual({t.device.type for t in layer.state_dict().values()}, {cresset.device(device).type})
        self.assertEqual(layer.weight.is_leaf, True)


instantiate_device_type_tests(TestModules, globals())

if __name__ == "__main__":
    run_tests()
