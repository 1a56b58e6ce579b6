from answers import show
import segmentation_models_pytorch as smp
import torch

x = torch.randn(2, 3, 128, 128)
for kind in (smp.Unet, smp.UnetPlusPlus, smp.FPN, smp.Linknet, smp.PSPNet, smp.DeepLabV3Plus, smp.MAnet, smp.PAN):
    torch.manual_seed(1)
    model = kind("resnet18", encoder_weights=None, classes=2).eval()
    show(kind.__name__, model(x))
torch.manual_seed(2)
model = smp.Unet("mobilenet_v2", encoder_weights=None, classes=1)
loss_of = smp.losses.DiceLoss("binary")
optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-3), []
for _ in range(2):
    loss = loss_of(model(x), (x[:, :1] > 0).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
show("training", losses)
stats = smp.metrics.get_stats(torch.rand(2, 1, 8, 8) > 0.5, torch.rand(2, 1, 8, 8) > 0.5, mode="binary")
show("metrics", smp.metrics.iou_score(*stats, reduction="micro"))
show("focal", smp.losses.FocalLoss("multiclass")(torch.randn(2, 3, 4, 4), torch.randint(0, 3, (2, 4, 4))))
