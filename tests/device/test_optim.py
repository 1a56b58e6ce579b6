"""Optimisers on every device against the CPU: five steps, with and without lists."""

import cresset
from cresset.testing._internal.common_device_type import instantiate_device_type_tests
from cresset.testing._internal.common_optimizers import optim_db, optims
from cresset.testing._internal.common_utils import TestCase, run_tests


class TestOptimizers(TestCase):
    def train(self, info, settings, device, dtype):
        """Parameters after five steps towards fixed targets."""
        shapes = [(3, 4), (4, 2)] if info.matrices_only else [(3, 4), (5,)]
        parameters = [cresset.linspace(-1, 1, cresset.Size(s).numel(), dtype=dtype).reshape(s).to(device).requires_grad_() for s in shapes]
        optimizer = info.optim_cls(parameters, **settings)

        def closure():
            optimizer.zero_grad()
            loss = sum(((p - 0.3) ** 2 * (1 + i)).sum() for i, p in enumerate(parameters))
            loss.backward()
            return loss

        for _ in range(5):
            if info.step_requires_closure:
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
        return [p.detach() for p in parameters], optimizer

    @optims(optim_db, dtypes=[cresset.float32, cresset.float64])
    def test_steps(self, device, dtype, optim_info):
        for case in optim_info.optim_inputs_func(device=device):
            want, _ = self.train(optim_info, case.kwargs, "cpu", dtype)
            have, optimizer = self.train(optim_info, case.kwargs, device, dtype)
            self.assertEqual(have, want, atol=1e-4, rtol=1e-4)
            for state in optimizer.state.values():
                for value in state.values():
                    if isinstance(value, cresset.Tensor) and value.dim() > 0:  # counters and factors may lie on the CPU
                        self.assertEqual(value.device.type, cresset.device(device).type)

    @optims([info for info in optim_db if "foreach" in info.supported_impls], dtypes=[cresset.float32])
    def test_lists(self, device, dtype, optim_info):
        for case in optim_info.optim_inputs_func(device=device):
            want, _ = self.train(optim_info, case.kwargs, device, dtype)
            have, _ = self.train(optim_info, {**case.kwargs, "foreach": True}, device, dtype)
            self.assertEqual(have, want, atol=1e-5, rtol=1e-5)

    @optims(optim_db, dtypes=[cresset.float32])
    def test_state_dict(self, device, dtype, optim_info):
        """The state comes back on the device."""
        parameters, optimizer = self.train(optim_info, optim_info.settings[0], device, dtype)
        other = optim_info.optim_cls([cresset.nn.Parameter(p.clone()) for p in parameters], **optim_info.settings[0])
        other.load_state_dict(optimizer.state_dict())
        for one, two in zip(optimizer.state.values(), other.state.values()):
            self.assertEqual({k: v for k, v in one.items() if isinstance(v, cresset.Tensor)}, {k: v for k, v in two.items() if isinstance(v, cresset.Tensor)})


instantiate_device_type_tests(TestOptimizers, globals())

if __name__ == "__main__":
    run_tests()
