from answers import show
import lpips
import piq
import pytorch_msssim
import torch

a = torch.rand(2, 3, 192, 192)
b = (a + 0.1 * torch.randn_like(a)).clamp(0, 1).requires_grad_()
for name in ("psnr", "ssim", "multi_scale_ssim", "information_weighted_ssim", "vif_p", "fsim", "srsim", "gmsd", "multi_scale_gmsd", "vsi", "dss", "haarpsi", "mdsi"):
    try:
        value = getattr(piq, name)(a, b, data_range=1.0)
        show(name, [value, torch.autograd.grad(value.sum(), b)[0]])
    except Exception as error:
        show(name, f"{type(error).__name__}: {error}"[:300])
show("tv", piq.total_variation(a))
f, g = torch.rand(20, 16), torch.rand(20, 16)
for kind in (piq.FID, piq.KID, piq.IS, piq.MSID, piq.PR):
    try:
        show(kind.__name__, kind()(f, g))
    except Exception as error:
        show(kind.__name__, f"{type(error).__name__}: {error}"[:300])
show("msssim", [pytorch_msssim.ssim(a, b, data_range=1), pytorch_msssim.ms_ssim(a, b, data_range=1, size_average=False)])
for net in ("alex", "squeeze", "vgg"):
    torch.manual_seed(4)
    measure = lpips.LPIPS(net=net, pretrained=False, pnet_rand=True, verbose=False)
    d = measure(a[..., :64, :64] * 2 - 1, b[..., :64, :64] * 2 - 1)
    show(net, [d, torch.autograd.grad(d.sum(), b)[0]])
