from answers import show
import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3

NAMES = """resnet18 resnet26t resnext50_32x4d.a1_in1k seresnet18 resnetv2_50 res2net50_26w_4s regnetx_002 regnety_002 densenet121 vgg11_bn mobilenetv2_050
mobilenetv3_small_050 mobilenetv4_conv_small_035 efficientnet_b0 efficientnet_lite0 efficientnetv2_rw_t mnasnet_small spnasnet_100 fbnetc_100 ghostnet_050 lcnet_035 tinynet_e
hardcorenas_a convnext_atto convnextv2_atto repvgg_a0 dla34 hrnet_w18_small vovnet39a cspresnet50 darknet17 dpn48b
vit_tiny_patch16_224 deit_tiny_patch16_224 vit_small_patch32_224 mixer_s32_224 gmlp_ti16_224 resmlp_12_224 cait_xxs24_224 xcit_nano_12_p16_224
swin_tiny_patch4_window7_224 pvt_v2_b0 levit_128s mobilevit_xxs edgenext_xx_small poolformer_s12 efficientformer_l1 fastvit_t8 repvit_m0_9
coat_lite_tiny crossvit_9_240 visformer_tiny eva02_tiny_patch14_224 beit_base_patch16_224""".split()
torch.set_grad_enabled(False)
for name in NAMES:
    try:
        torch.manual_seed(1)
        size = 240 if "240" in name else 224
        fixed = any(word in name for word in ("224", "240", "levit", "visformer", "efficientformer"))
        model = timm.create_model(name, num_classes=10).eval()
        show(name, model(torch.randn(1, 3, size if fixed else 96, size if fixed else 96)))
    except Exception as error:
        show(name, f"{type(error).__name__}: {error}"[:200])
torch.set_grad_enabled(True)
torch.manual_seed(2)
model = timm.create_model("resnet10t", num_classes=4)
optimizer = create_optimizer_v2(model, "adamw", lr=1e-3, weight_decay=0.05)
schedule = CosineLRScheduler(optimizer, t_initial=10, warmup_t=2)
ema, loss_of = ModelEmaV3(model, decay=0.9), LabelSmoothingCrossEntropy(0.1)
losses = []
for step in range(3):
    loss = loss_of(model(torch.randn(4, 3, 64, 64)), torch.tensor([0, 1, 2, 3]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step(step)
    ema.update(model)
    losses.append(loss)
show("training", losses)
features = timm.create_model("resnet10t", features_only=True).eval()(torch.ones(1, 3, 64, 64))
show("features", [list(f.shape) for f in features])
for name in ("lamb", "adafactor", "lion", "nadamw", "sgdw", "adopt"):
    p = torch.nn.Parameter(torch.linspace(-1, 1, 6).reshape(2, 3))
    optimizer = create_optimizer_v2([p], name, lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        p.square().sum().backward()
        optimizer.step()
    show(name, p)
