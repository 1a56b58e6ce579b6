from answers import show
import torch
from pytorch_metric_learning import losses, miners

e = torch.randn(12, 8, requires_grad=True)
y = torch.arange(12) % 4
for L in (
    losses.TripletMarginLoss(),
    losses.ContrastiveLoss(),
    losses.NTXentLoss(),
    losses.MultiSimilarityLoss(),
    losses.CircleLoss(),
    losses.SupConLoss(),
    losses.ArcFaceLoss(4, 8),
    losses.ProxyAnchorLoss(4, 8),
    losses.AngularLoss(),
    losses.LiftedStructureLoss(),
    losses.NPairsLoss(),
    losses.SoftTripleLoss(4, 8),
):
    l = L(e, y)
    show(type(L).__name__, l)
    show("g", torch.autograd.grad(l, e)[0])
m = miners.MultiSimilarityMiner()
show("miner", losses.TripletMarginLoss()(e, y, m(e, y)))
