from answers import show
import copy

import torch
import torchao.quantization as q
import torchao.quantization.quant_primitives as primitives
from torchao.optim import AdamW4bit, AdamW8bit
from torchao.quantization.qat import IntxFakeQuantizeConfig, QATConfig

base = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64))
x = torch.randn(4, 64)
for make in (
    q.Int8WeightOnlyConfig,
    q.Int8DynamicActivationInt8WeightConfig,
    q.Float8WeightOnlyConfig,
    lambda: q.IntxWeightOnlyConfig(torch.int4, q.PerGroup(32)),
    lambda: q.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=q.PerGroup(32)),
):
    model = copy.deepcopy(base)
    q.quantize_(model, make())
    show(type(model[0].weight).__name__, model(x))
    torch.save(model.state_dict(), "model.pt")
    again = copy.deepcopy(base)
    again.load_state_dict(torch.load("model.pt", weights_only=False), assign=True)
    show("loaded", again(x))
scale, zero = primitives.choose_qparams_affine(base[0].weight, primitives.MappingType.ASYMMETRIC, (1, 32), torch.int8)
quantized = primitives.quantize_affine(base[0].weight, (1, 32), scale, zero, torch.int8)
show("primitives", [scale, zero, quantized, primitives.dequantize_affine(quantized, (1, 32), scale, zero, torch.int8)])
trained = copy.deepcopy(base)
activations = IntxFakeQuantizeConfig(torch.int8, "per_token", is_symmetric=False)
q.quantize_(trained, QATConfig(activation_config=activations, weight_config=IntxFakeQuantizeConfig(torch.int4, group_size=32), step="prepare"))
for name, model, optimizer in (
    ("fake", trained, torch.optim.SGD(trained.parameters(), 0.1)),
    *((make.__name__, m, make(m.parameters(), lr=1e-3)) for make in (AdamW8bit, AdamW4bit) for m in [copy.deepcopy(base)]),
):
    for _ in range(3):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        show(name, loss)
