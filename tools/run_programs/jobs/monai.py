from answers import show
import torch
from monai.data import CacheDataset, DataLoader, MetaTensor, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric
from monai.networks.nets import UNet, BasicUNet, DenseNet121, SegResNet, UNETR
from monai.transforms import Compose, EnsureChannelFirstd, RandFlipd, RandGaussianNoised, Resized, ScaleIntensityd
from monai.utils import set_determinism

set_determinism(3)
for net in (
    UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2)), BasicUNet(2, 1, 2, features=(4, 4, 8, 8, 16, 4)),
    SegResNet(2, 8, 1, 2), DenseNet121(2, 1, 3), UNETR(1, 2, (32, 32), feature_size=4, hidden_size=16, mlp_dim=32, num_heads=2, spatial_dims=2),
):  # fmt: skip
    show(type(net).__name__, net.eval()(torch.randn(1, 1, 32, 32)))
out, target = torch.randn(2, 2, 8, 8, requires_grad=True), torch.randint(0, 2, (2, 1, 8, 8))
for loss in (DiceLoss(to_onehot_y=True, softmax=True), DiceCELoss(to_onehot_y=True, softmax=True), FocalLoss(to_onehot_y=True)):
    show(type(loss).__name__, loss(out, target))
one = torch.nn.functional.one_hot(out.argmax(1), 2).permute(0, 3, 1, 2)
show("metrics", [DiceMetric()(one, one.flip(-1)), HausdorffDistanceMetric()(one, one.flip(-1))])
steps = Compose([EnsureChannelFirstd("image", channel_dim="no_channel"), ScaleIntensityd("image"), RandFlipd("image", prob=0.5), RandGaussianNoised("image", prob=1.0), Resized("image", (12, 12))])
data = CacheDataset([{"image": torch.rand(16, 16)} for _ in range(4)], steps, progress=False)
for batch in DataLoader(data, batch_size=2):
    show("batch", [batch["image"].as_tensor(), type(batch["image"]).__name__, len(decollate_batch(batch))])
show("meta", [MetaTensor(torch.eye(3)).affine, (MetaTensor(torch.ones(2)) + 1).as_tensor()])
show("windows", sliding_window_inference(torch.rand(1, 1, 24, 24), (16, 16), 2, lambda x: x * 2, overlap=0.5))
