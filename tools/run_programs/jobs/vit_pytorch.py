from answers import show
import torch
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.deepvit import DeepViT
from vit_pytorch.pit import PiT
from vit_pytorch.t2t import T2TViT

common = dict(image_size=32, patch_size=8, num_classes=5, dim=32, heads=2, mlp_dim=64)
x = torch.randn(2, 3, 32, 32)
models = {
    "vit": lambda: ViT(**common, depth=2), "simple": lambda: SimpleViT(**common, depth=2), "deep": lambda: DeepViT(**common, depth=2),
    "cait": lambda: CaiT(**common, depth=2, cls_depth=1), "pit": lambda: PiT(image_size=32, patch_size=8, dim=32, num_classes=5, depth=(1, 1), heads=2, mlp_dim=32),
    "t2t": lambda: T2TViT(dim=32, image_size=32, depth=1, heads=2, mlp_dim=32, num_classes=5, t2t_layers=((7, 4), (3, 2))),
    "cct": lambda: CCT(img_size=32, embedding_dim=32, n_conv_layers=1, num_layers=1, num_heads=2, mlp_ratio=2.0, num_classes=5),
}  # fmt: skip
for name, make in models.items():
    torch.manual_seed(1)
    model = make().eval()
    out = model(x)
    out.square().sum().backward()
    show(name, [out, next(model.parameters()).grad])
