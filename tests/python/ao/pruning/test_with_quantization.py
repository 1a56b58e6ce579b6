"""Masks go along when a model is quantized: what is zero stays zero, in whatever order the two are prepared."""

import cresset as torch
import pytest
from cresset import nn
from cresset.ao import nn as aonn
from cresset.ao import pruning
from cresset.ao import quantization as quant
from cresset.ao.quantization.quantize_fx import convert_fx, convert_to_reference_fx, prepare_fx, prepare_qat_fx

CONFIG = {"sparsity_level": 0.7, "sparse_block_shape": (1, 4), "zeros_per_block": 4}


def model(qconfig=None):
    made = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), quant.QuantStub(), nn.Linear(4, 4), nn.ReLU(), quant.DeQuantStub())
    if qconfig:
        made[2].qconfig = made[3].qconfig = qconfig
    return made


def zeros(weight):
    return (weight == 0).float().mean().item()


@pytest.mark.parametrize("squash", [True, False])
@pytest.mark.parametrize("sparsity_first", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_modules(training, sparsity_first, squash):
    net = model(quant.get_default_qat_qconfig("x86") if training else quant.get_default_qconfig("x86"))
    sparsifier = pruning.WeightNormSparsifier(**CONFIG)
    steps = [lambda: sparsifier.prepare(net, [{"tensor_fqn": "3.weight"}]), lambda: (quant.prepare_qat if training else quant.prepare)(net, inplace=True)]
    for step in steps if sparsity_first else steps[::-1]:
        step()
    assert isinstance(net[3], aonn.qat.Linear if training else nn.Linear) and isinstance(net[3].parametrizations.weight[0], pruning.FakeSparsity)
    sparsifier.step()
    assert zeros(net[3].weight) == 0.75
    if squash and not (training and sparsity_first):  # groups have the module that was replaced
        sparsifier.squash_mask()
    net(torch.ones(2, 4))
    quant.convert(net, inplace=True)
    assert isinstance(net[3], aonn.quantized.Linear) and zeros(net[3]._weight_bias()[0].dequantize()) >= 0.75


@pytest.mark.parametrize("convert", [convert_fx, convert_to_reference_fx])
@pytest.mark.parametrize("sparsity_first", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_graphs(training, sparsity_first, convert):
    net = model()
    sparsifier = pruning.WeightNormSparsifier(**CONFIG)
    qconfig = quant.get_default_qat_qconfig("x86") if training else quant.get_default_qconfig("x86")
    mapping = quant.QConfigMapping().set_module_name("2", qconfig).set_module_name("3", qconfig)
    prepare = prepare_qat_fx if training else prepare_fx
    name = "3.weight"
    if sparsity_first:
        sparsifier.prepare(net, [{"tensor_fqn": name}])
    net = prepare(net, mapping, (torch.ones(2, 4),))
    if not training:
        name = "3.0.weight"  # Linear and ReLU are fused
    if not sparsity_first:
        sparsifier.prepare(net, [{"tensor_fqn": name}])
    sparsifier.step()
    assert zeros(pruning.fqn_to_module(net, name)) == 0.75
    net(torch.ones(2, 4))
    net = convert(net)
    if convert is convert_fx:
        weight = pruning.fqn_to_module(net, "3")._weight_bias()[0].dequantize()
    else:
        weight = pruning.fqn_to_module(net, "3.0.weight")
    assert zeros(weight) >= 0.75 and net(torch.ones(2, 4)).shape == (2, 4)
