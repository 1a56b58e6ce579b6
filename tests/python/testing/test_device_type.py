"""instantiate_device_type_tests and parametrize: classes, names, arguments, decorators, environment, other devices' bases."""

import io
import os
import re
import subprocess
import sys
import textwrap
import unittest

import cresset
import pytest
from cresset.testing import capabilities
from cresset.testing._internal import common_device_type as device_type
from cresset.testing._internal.common_device_type import (
    OpDTypes, deviceCountAtLeast, dtypes, dtypesIfCPU, expectedFailure, instantiate_device_type_tests, largeTensorTest, onlyAccelerator, onlyCPU,
    onlyOn, ops, precisionOverride, skipCPUIf, skipIf, skipMeta, tol, toleranceOverride,
)  # fmt: skip
from cresset.testing._internal.common_methods_invocations import ops_by_name
from cresset.testing._internal.common_utils import TestCase, decorateIf, instantiate_parametrized_tests, parametrize, subtest


def run(cls):
    """{test: "ok", skip reason or last line of the error} of a class."""
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(cls).run(result)
    found = {name: "ok" for name in unittest.defaultTestLoader.getTestCaseNames(cls)}
    found |= {test._testMethodName: reason for test, reason in result.skipped}
    return found | {test._testMethodName: text.strip().splitlines()[-1] for test, text in result.failures + result.errors}


def instantiate(cls, **options):
    scope = {cls.__name__: cls}
    instantiate_device_type_tests(cls, scope, **options)
    return scope


def names(cls):
    return sorted(n for n in vars(cls) if n.startswith("test"))


def test_names_of_parametrized_tests():
    class TestP(TestCase):
        @parametrize("x", [1, 2.5, "a-b", None, True, cresset.float32, cresset.device("cpu"), [1], -1, "a.b"])
        def test_one(self, x): ...

        @parametrize("x,y", [(1, 2), subtest((3, 4), name="foo")])
        def test_two(self, x, y): ...

        @parametrize("x", [1, 2])
        @parametrize("y", [3])
        def test_both(self, x, y): ...

        @parametrize("x", [1], name_fn=lambda x: f"<{x}>")
        def test_fn(self, x): ...

        @decorateIf(unittest.skip("seven"), lambda arguments: arguments["x"] == 7)
        @parametrize("x", [6, 7])
        def test_if(self, x): ...

    instantiate_parametrized_tests(TestP)
    # PyTorch makes the same names.
    assert names(TestP) == sorted([
        "test_one_x_1", "test_one_x_2_5", "test_one_x_a-b", "test_one_x3", "test_one_x_True", "test_one_float32", "test_one_cpu", "test_one_x7", "test_one_x_-1",
        "test_one_x_a_b", "test_two_x_1_y_2", "test_two_foo", "test_both_x_1_y_3", "test_both_x_2_y_3", "test_fn_<1>", "test_if_x_6", "test_if_x_7",
    ])  # fmt: skip
    outcome = run(TestP)
    assert outcome.pop("test_if_x_7") == "seven" and set(outcome.values()) == {"ok"}


def test_classes_names_and_arguments():
    seen = []

    class TestD(TestCase):
        kept = "attributes of the generic class"

        def setUp(self):
            super().setUp()
            seen.append("setUp")

        @dtypes(cresset.float32, cresset.int64)
        @parametrize("x", [1, 2])
        def test_a(self, device, dtype, x):
            seen.append((device, dtype, x))

        @dtypes((cresset.float32, cresset.int64))
        def test_pair(self, device, dtypes): ...

        @dtypes(cresset.float32)
        @dtypesIfCPU(cresset.float64)
        def test_own(self, device, dtype): ...

        @ops(ops_by_name("relu", "linalg_inv"), dtypes=OpDTypes.any_one)
        def test_ops(self, device, dtype, op):
            for sample in op.sample_inputs(device, dtype):
                assert sample.input.device.type == cresset.device(device).type and sample.input.dtype == dtype

        @ops(ops_by_name("relu"), dtypes=OpDTypes.none)
        def test_no_dtype(self, device, op): ...

        def helper(self):
            return self.kept

        def test_plain(self, device):
            assert self.helper()

    scope = instantiate(TestD)
    assert sorted(scope) == ["TestDCPU", "TestDMETA"]
    assert names(scope["TestDCPU"]) == [
        "test_a_x_1_cpu_float32", "test_a_x_1_cpu_int64", "test_a_x_2_cpu_float32", "test_a_x_2_cpu_int64", "test_no_dtype_relu_cpu",
        "test_ops_linalg_inv_cpu_float32", "test_ops_relu_cpu_float32", "test_own_cpu_float64", "test_pair_cpu_float32_int64", "test_plain_cpu",
    ]  # fmt: skip
    assert "test_own_meta_float32" in names(scope["TestDMETA"])
    assert set(run(scope["TestDCPU"]).values()) == {"ok"} and set(run(scope["TestDMETA"]).values()) == {"ok"}
    assert ("cpu", cresset.int64, 2) in seen and ("meta", cresset.float32, 1) in seen and "setUp" in seen
    assert sorted(instantiate(type("TestE", (TestCase,), {}), only_for="cpu")) == ["TestECPU"]
    assert sorted(instantiate(type("TestF", (TestCase,), {}), except_for=("cpu",))) == ["TestFMETA"]


def test_decorators():
    class TestS(TestCase):
        @onlyCPU
        def test_only_cpu(self, device): ...

        @onlyOn(["xla", "meta"])
        def test_only_on(self, device): ...

        @onlyAccelerator
        def test_accelerator(self, device): ...

        @skipCPUIf(True, "why")
        def test_cpu_if(self, device): ...

        @skipIf(lambda test: test.device_type == "meta", "a reason")
        def test_function(self, device): ...

        @skipMeta
        def test_no_meta(self, device): ...

        @expectedFailure("cpu")
        @onlyCPU
        def test_fails(self, device):
            raise ValueError

        @expectedFailure("cpu")
        @onlyCPU
        def test_should_fail(self, device): ...

        @deviceCountAtLeast(1)
        def test_devices(self, devices):
            assert isinstance(devices, list)

        @deviceCountAtLeast(50)
        def test_many(self, devices): ...

        @largeTensorTest("900000GB")
        def test_large(self, device): ...

        @precisionOverride({cresset.float32: 0.5})
        @dtypes(cresset.float32, cresset.float64)
        def test_precision(self, device, dtype):
            assert (self.precision, self.rel_tol) == ((0.5, 0.0) if dtype == cresset.float32 else (0.0, 0.0))
            if dtype == cresset.float32:
                self.assertEqual(cresset.tensor(1.0), cresset.tensor(1.4))

        @toleranceOverride({cresset.float32: tol(atol=0.1, rtol=0.01)})
        @dtypes(cresset.float32)
        def test_tolerance(self, device, dtype):
            assert (self.precision, self.rel_tol) == (0.1, 0.01)

    scope = instantiate(TestS)
    cpu, meta = run(scope["TestSCPU"]), run(scope["TestSMETA"])
    large = cpu.pop("test_large_cpu")
    assert re.fullmatch(r"Insufficient memory: \d+ bytes were required; \d+ are free", large)
    assert {n: r for n, r in cpu.items() if r != "ok"} == {
        "test_only_on_cpu": "Only runs on ['xla', 'meta']", "test_accelerator_cpu": "onlyAccelerator: doesn't run on CPU or meta devices", "test_cpu_if_cpu": "why",
        "test_should_fail_cpu": "AssertionError: expected test to fail, but it passed", "test_many_cpu": "fewer than 50 devices detected",
    }  # fmt: skip
    assert meta["test_only_cpu_meta"] == "Only runs on cpu" and meta["test_function_meta"] == "a reason"
    assert meta["test_no_meta_meta"] == "test doesn't work with meta tensors" and meta["test_cpu_if_meta"] == "ok"


def test_meta_stops_where_values_are_needed():
    class TestM(TestCase):
        def test_value(self, device):
            cresset.ones(2, device=device).sum().item()

        def test_error(self, device):
            cresset.ones(2, device=device) + cresset.ones(3, device=device)

    outcome = run(instantiate(TestM, only_for="meta")["TestMMETA"])
    assert outcome["test_value_meta"] == "needs values, which meta tensors do not have"
    assert "must match" in outcome["test_error_meta"]


def test_mistakes_are_named():
    with pytest.raises(RuntimeError, match="dtypes redefinition for all"):
        dtypes(cresset.float32)(dtypes(cresset.float64)(lambda self, device, dtype: None))
    with pytest.raises(RuntimeError, match="Expected # values == # arg names, but got: 3 values and 2 names"):
        instantiate_parametrized_tests(type("TestX", (TestCase,), {"test_x": parametrize("x,y", [(1, 2, 3)])(lambda self, x, y: None)}))
    with pytest.raises(ValueError, match="An empty arg_values was passed to @parametrize"):
        instantiate_parametrized_tests(type("TestY", (TestCase,), {"test_x": parametrize("x", [])(lambda self, x: None)}))
    with pytest.raises(RuntimeError, match="The @ops decorator is only intended to be used in a device-specific context"):
        instantiate_parametrized_tests(type("TestZ", (TestCase,), {"test_x": ops(ops_by_name("relu"))(lambda self, op: None)}))


def test_capabilities(tmp_path):
    (tmp_path / "chip.toml").write_text(textwrap.dedent("""
        [device]
        dtypes = ["float32", "int64"]
        [skip]
        "linalg_*" = "no LAPACK"
        test_slow = "takes minutes"
        [tolerance]
        float32 = [1e-2, 1e-3]
        [tolerance."relu*"]
        float32 = [0.5, 0.25]
    """))
    table = capabilities.Capabilities.load(tmp_path / "chip.toml")
    assert table.reason_to_skip("linalg_inv") == "no LAPACK" and table.reason_to_skip("add.Tensor") is None
    assert table.reason_to_skip("add.Tensor", cresset.float16) == "the device has no float16"
    assert table.tolerances("relu", cresset.float32) == (0.5, 0.25) and table.tolerances("add.Tensor", cresset.float32) == (1e-2, 1e-3)
    assert table.tolerances("add.Tensor", cresset.float64) is None
    (tmp_path / "bad.toml").write_text("[device]\nspeed = 1\n[colour]\n")
    with pytest.raises(ValueError, match=r"device.dtypes, device.only, device.denormals, skip and tolerance are known; colour, device.speed was given"):
        capabilities.Capabilities.load(tmp_path / "bad.toml")

    class TestC(TestCase):
        @ops(ops_by_name("relu", "linalg_inv"), dtypes=OpDTypes.any_one)
        def test_ops(self, device, dtype, op):
            assert (self.rel_tol, self.precision) == (0.5, 0.25)

        @dtypes(cresset.float16)
        def test_half(self, device, dtype): ...

        def test_slow(self, device): ...

    class Limited(device_type.CPUTestBase):
        device_type, capabilities = "cpu", table

    made = type("TestCCPU", (Limited, TestC), {})
    for name in ("test_ops", "test_half", "test_slow"):
        made.instantiate_test(name, vars(TestC)[name], generic_cls=TestC)
        delattr(TestC, name)
    assert run(made) == {"test_ops_relu_cpu_float32": "ok", "test_ops_linalg_inv_cpu_float32": "no LAPACK", "test_half_cpu_float16": "the device has no float16",
                         "test_slow_cpu": "takes minutes"}


def test_only_listed_operators_run():
    table = capabilities.Capabilities(only=("add", "mul*"))
    assert table.reason_to_skip("add.Tensor") is None and table.reason_to_skip("mul.Scalar") is None
    assert table.reason_to_skip("sub.Tensor") == "not in the device's allow list"


SCRIPT = """
import cresset
from cresset.testing._internal.common_device_type import instantiate_device_type_tests, ops, onlyPRIVATEUSE1, dtypes
from cresset.testing._internal.common_methods_invocations import ops_by_name
from cresset.testing._internal.common_utils import TestCase, run_tests

class TestThing(TestCase):
    @ops(ops_by_name("add", "relu"), dtypes=(cresset.float32,))
    def test_ops(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype):
            op(sample.input, *sample.args, **sample.kwargs)

    @onlyPRIVATEUSE1
    def test_here(self, device):
        self.assertEqual(cresset.ones(2, device=device).device.type, self.device_type)
        print("device", device)

instantiate_device_type_tests(TestThing, globals())

if __name__ == "__main__":
    run_tests()
"""


def outcome_of(tmp_path, runner, **environment):
    """(exit status, {test: outcome}) of SCRIPT in a process of its own."""
    file = tmp_path / "test_thing.py"
    file.write_text(SCRIPT)
    command = [sys.executable, str(file), "-v"] if runner == "unittest" else [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, cwd=tmp_path)
    if runner == "unittest":
        return done.returncode, dict(re.findall(r"^(test_\w+) .*? \.\.\. (?:device \S+\s+)?(\w+)", done.stderr, re.M)), done.stdout
    return done.returncode, {n: s for s, n in re.findall(r"^(PASSED|FAILED) \S+::(test_\w+)", done.stdout, re.M)}, done.stdout


@pytest.mark.parametrize("runner", ["unittest", "pytest"])
def test_runners_and_environment(tmp_path, tin, runner):
    ok = {"unittest": "ok", "pytest": "PASSED"}[runner]
    status, outcome, out = outcome_of(tmp_path, runner, CRESSET_TEST_DEVICES=str(tin), PYTORCH_TESTING_DEVICE_ONLY_FOR="privateuse1")
    assert status == 0 and outcome == {n: ok for n in (
        "test_here_privateuse1", "test_ops_add_Scalar_privateuse1_float32", "test_ops_add_Tensor_privateuse1_float32", "test_ops_relu_privateuse1_float32")}
    assert "device tin:0" in out
    status, outcome, _ = outcome_of(tmp_path, runner, CRESSET_TEST_DEVICES=str(tin), CRESSET_TESTING_DEVICE_EXCEPT_FOR="tin,meta")
    assert status == 0 and outcome["test_ops_relu_cpu_float32"] == ok and not [n for n in outcome if "meta" in n or "privateuse1" in n]


def test_base_class_of_another_device(tmp_path, tin):
    """TORCH_TEST_DEVICES names files that set TEST_CLASS, as out-of-tree backends of PyTorch have them."""
    (tmp_path / "base.py").write_text(textwrap.dedent(f"""
        import cresset
        from cresset.testing.capabilities import Capabilities
        cresset.ops.load_library({str(tin)!r})

        class TinTestBase(DeviceTypeTestBase):
            device_type = "tin"
            capabilities = Capabilities(skip={{"relu": "no relu yet"}})

        TEST_CLASS = TinTestBase
    """))
    status, outcome, _ = outcome_of(tmp_path, "unittest", TORCH_TEST_DEVICES=str(tmp_path / "base.py"), CRESSET_TESTING_DEVICE_ONLY_FOR="tin")
    assert status == 0
    assert outcome == {"test_here_tin": "ok", "test_ops_add_Scalar_tin_float32": "ok", "test_ops_add_Tensor_tin_float32": "ok", "test_ops_relu_tin_float32": "skipped"}


def test_samples_say_what_an_operator_supports():
    (add,) = ops_by_name("add.Tensor")
    assert add.formatted_name == "add_Tensor" and add.supports_out and add.supports_autograd and add.supports_forward_ad
    assert add.inplace_variant is cresset.ops.aten.add_.Tensor and add.method_variant is cresset.Tensor.add
    assert {cresset.float16, cresset.int64, cresset.bool, cresset.complex64} <= add.dtypes
    (solve,) = ops_by_name("linalg_inv")
    assert cresset.int64 not in solve.dtypes and cresset.float64 in solve.backward_dtypes
    samples = list(add.sample_inputs("cpu", cresset.float32, requires_grad=True))
    assert samples[0].input.requires_grad and samples[0].input.dtype == cresset.float32
    assert samples[0].name == add.row["samples"][0]
    assert not samples[0].noncontiguous().input.is_contiguous()
    assert samples[0].numpy().input.shape == tuple(samples[0].input.shape)
    # the same numbers each time
    assert cresset.equal(samples[0].input, next(add.sample_inputs("cpu", cresset.float32)).input)


def test_failures_are_failures(capsys):
    class TestBad(TestCase):
        def test_bad(self, device):
            self.assertEqual(cresset.zeros(2, device=device), cresset.ones(2))

    scope = instantiate(TestBad, only_for="cpu")
    stream = io.StringIO()
    result = unittest.TextTestRunner(stream).run(unittest.defaultTestLoader.loadTestsFromTestCase(scope["TestBadCPU"]))
    assert len(result.failures) == 1 and "Mismatched elements: 2 / 2 (100.0%)" in stream.getvalue()
