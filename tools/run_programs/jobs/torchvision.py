from answers import show
import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import models, transforms
from torchvision.datasets import FakeData
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms import v2
from torchvision.utils import make_grid

for name in (
    "resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "efficientnet_b0", "alexnet", "googlenet", "vit_b_32", "convnext_tiny",
    "regnet_y_400mf", "densenet121", "mnasnet0_5", "swin_t",
):  # fmt: skip
    torch.manual_seed(1)
    model = getattr(models, name)(weights=None).eval()
    with torch.no_grad():
        show(name, model(torch.randn(1, 3, 224, 224)))
image = Image.fromarray((np.arange(40 * 50 * 3) % 255).astype(np.uint8).reshape(40, 50, 3))
old = transforms.Compose([
    transforms.Resize(32), transforms.RandomCrop(24), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.2, 0.2), transforms.ToTensor(),
    transforms.Normalize((0.5,) * 3, (0.2,) * 3),
])  # fmt: skip
show("transforms", old(image))
new = v2.Compose([v2.ToImage(), v2.RandomResizedCrop(24, antialias=True), v2.RandomRotation(20), v2.GaussianBlur(3), v2.ToDtype(torch.float32, scale=True), v2.RandomErasing(1.0)])
show("v2", new(image))
show("grid", make_grid(torch.rand(5, 3, 8, 8), nrow=3))
show("fake", [FakeData(4, (3, 8, 8), 3, transforms.ToTensor())[i][0] for i in range(2)])
extractor = create_feature_extractor(models.resnet18().eval(), {"layer2": "two"})
show("extracted", list(extractor(torch.ones(1, 3, 64, 64))["two"].shape))
boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
show("boxes", [torchvision.ops.box_iou(boxes, boxes), torchvision.ops.generalized_box_iou(boxes, boxes), torchvision.ops.sigmoid_focal_loss(torch.randn(4), torch.ones(4))])
show("segmentation", models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None).eval()(torch.ones(1, 3, 64, 64))["out"].shape)
