from answers import show
import torch
from fvcore.nn import FlopCountAnalysis, flop_count_table, giou_loss, parameter_count, sigmoid_focal_loss, smooth_l1_loss
from fvcore.nn.weight_init import c2_msra_fill

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4)
)
flops = FlopCountAnalysis(model.eval(), torch.ones(1, 3, 16, 16))
show("flops", [flops.total(), dict(flops.by_operator()), dict(flops.by_module())])
show("table", flop_count_table(flops))
show("parameters", dict(parameter_count(model)))
x, y = torch.randn(5, 4, requires_grad=True), torch.rand(5, 4)
show("losses", [sigmoid_focal_loss(x, y, reduction="mean"), smooth_l1_loss(x, y, 0.1, "sum")])
boxes = torch.tensor([[0.0, 0, 2, 2], [1, 1, 3, 4]])
show("boxes", giou_loss(boxes, boxes.flip(0)))
layer = torch.nn.Conv2d(2, 3, 3)
c2_msra_fill(layer)
show("filled", layer.weight)
