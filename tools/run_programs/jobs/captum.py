from answers import show
import torch
from captum.attr import (
    DeepLift, FeatureAblation, GradientShap, GuidedBackprop, InputXGradient, IntegratedGradients, KernelShap, LayerConductance, LayerGradCam, LRP, NoiseTunnel,
    Occlusion, Saliency,
)  # fmt: skip

net = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(108, 4)).eval()
flat = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))  # LRP has no rule for Flatten
x = torch.randn(2, 1, 8, 8)
zero = torch.zeros_like(x)
simple = {
    "gradients": lambda: IntegratedGradients(net).attribute(x, zero, target=1, n_steps=8), "saliency": lambda: Saliency(net).attribute(x, target=1),
    "deeplift": lambda: DeepLift(net).attribute(x, zero, target=1), "product": lambda: InputXGradient(net).attribute(x, target=2),
    "guided": lambda: GuidedBackprop(net).attribute(x, target=0), "occlusion": lambda: Occlusion(net).attribute(x, (1, 3, 3), target=1),
    "ablation": lambda: FeatureAblation(net).attribute(x, target=1), "shap": lambda: GradientShap(net).attribute(x, torch.cat([zero, x]), target=1, n_samples=3),
    "noise": lambda: NoiseTunnel(Saliency(net)).attribute(x, nt_samples=3, target=1), "conductance": lambda: LayerConductance(net, net[0]).attribute(x, zero, target=1),
    "gradcam": lambda: LayerGradCam(net, net[0]).attribute(x, target=1), "lrp": lambda: LRP(flat).attribute(x.flatten(1), target=1),
    "kernel": lambda: KernelShap(torch.nn.Linear(4, 1)).attribute(torch.ones(1, 4), n_samples=20),
}  # fmt: skip
for name, run in simple.items():
    torch.manual_seed(7)
    show(name, run())
