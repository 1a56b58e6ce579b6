"""Compiled modules for running only, and versions as packages import them from here."""

import pytest

import cresset as torch
from cresset._vendor.packaging.version import InvalidVersion, Version, parse
from cresset.utils.mobile_optimizer import LintCode, MobileOptimizerType, generate_mobile_module_lints, optimize_for_mobile


def test_a_module_is_frozen():
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 1), torch.nn.BatchNorm2d(2), torch.nn.Dropout(0.5))
    scripted = torch.jit.script(model)
    x = torch.randn(2, 1, 3, 3)
    made = optimize_for_mobile(scripted)
    assert scripted.training and torch.allclose(made(x), model.eval()(x), atol=1e-6) and not list(made.parameters()) and "aten::dropout" not in str(made.graph)
    kept = optimize_for_mobile(scripted, {MobileOptimizerType.CONV_BN_FUSION, MobileOptimizerType.REMOVE_DROPOUT})
    assert len(list(kept.parameters())) == 4
    for run, error in (
        (lambda: optimize_for_mobile(model), TypeError),
        (lambda: optimize_for_mobile(scripted, preserved_methods=["missing"]), AttributeError),
        (lambda: optimize_for_mobile(scripted, backend="Vulkan"), ValueError),
        (lambda: optimize_for_mobile(scripted, {MobileOptimizerType.REMOVE_DROPOUT}), RuntimeError),
    ):
        with pytest.raises(error):
            run()
    names = {lint["name"] for lint in generate_mobile_module_lints(scripted.train())}
    assert names == {code.name for code in LintCode}


def test_versions():
    v = Version("1!2.0.1rc1.post2.dev3+abc.5")
    assert repr(v) == "<Version('1!2.0.1rc1.post2.dev3+abc.5')>" and (v.epoch, v.release, v.pre, v.post, v.dev, v.local) == (1, (2, 0, 1), ("rc", 1), 2, 3, "abc.5")
    assert v.public == "1!2.0.1rc1.post2.dev3" and v.base_version == "1!2.0.1" and v.is_prerelease and (v.major, v.minor, v.micro) == (2, 0, 1)
    assert str(parse("v1.0-ALPHA.1")) == "1.0a1" and parse("1.0") == parse("1.0.0") and hash(parse("1")) == hash(parse("1.0")) and parse("2.13.0+c") > parse("2.9")
    with pytest.raises(InvalidVersion, match="Invalid version: 'x'"):
        Version("x")
