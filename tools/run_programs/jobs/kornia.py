from answers import show
import kornia
import kornia.augmentation as K
import torch

x = torch.rand(2, 3, 32, 32, requires_grad=True)
show("color", [kornia.color.rgb_to_grayscale(x), kornia.color.rgb_to_hsv(x), kornia.color.rgb_to_lab(x)])
show("filters", [kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)), kornia.filters.sobel(x), kornia.filters.median_blur(x, (3, 3)), kornia.filters.canny(x)[0]])
show("geometry", [kornia.geometry.rotate(x, torch.tensor([30.0, -10.0])), kornia.geometry.resize(x, (17, 19)), kornia.geometry.warp_affine(x, torch.eye(2, 3)[None].repeat(2, 1, 1), (20, 20))])
show("morphology", kornia.morphology.dilation(x, torch.ones(3, 3)))
show("losses", [kornia.losses.ssim_loss(x, x.flip(-1), 5), kornia.losses.total_variation(x)])
show("features", kornia.feature.harris_response(x))
show("homography", kornia.geometry.find_homography_dlt(torch.rand(1, 6, 2, dtype=torch.float64), torch.rand(1, 6, 2, dtype=torch.float64)))
pipeline = K.AugmentationSequential(K.RandomHorizontalFlip(p=0.5), K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0), K.RandomAffine(20.0, p=1.0), data_keys=["input"])
show("augmentation", pipeline(x))
kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)).square().sum().backward()
show("gradient", x.grad)
