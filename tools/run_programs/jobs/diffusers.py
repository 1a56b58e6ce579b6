from answers import show
import torch
from diffusers import AutoencoderKL, DDIMScheduler, DDPMPipeline, DDPMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler, PNDMScheduler, UNet2DConditionModel, UNet2DModel
from diffusers.training_utils import EMAModel

small = dict(block_out_channels=(32, 64), layers_per_block=1, sample_size=16)
unet = UNet2DModel(in_channels=1, out_channels=1, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), **small)
x = torch.randn(2, 1, 16, 16)
show("unet", unet(x, 10).sample)
torch.manual_seed(1)
conditional = UNet2DConditionModel(
    in_channels=4, out_channels=4, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    cross_attention_dim=32, attention_head_dim=8, **small,
)  # fmt: skip
out = conditional(torch.randn(1, 4, 16, 16), 5, torch.randn(1, 7, 32)).sample
out.square().mean().backward()
show("conditional", [out, next(conditional.parameters()).grad])
noise, steps = torch.randn_like(x), torch.tensor([3, 50])
for kind in (DDPMScheduler, DDIMScheduler, PNDMScheduler, EulerDiscreteScheduler, DPMSolverMultistepScheduler):
    torch.manual_seed(2)
    scheduler = kind(num_train_timesteps=100)
    scheduler.set_timesteps(5)
    sample = x * getattr(scheduler, "init_noise_sigma", 1.0)
    for t in scheduler.timesteps:
        sample = scheduler.step(unet(scheduler.scale_model_input(sample, t), t).sample, t, sample).prev_sample
    show(kind.__name__, [sample.detach(), scheduler.timesteps])
show("noise", DDPMScheduler(num_train_timesteps=100).add_noise(x, noise, steps))
vae = AutoencoderKL(in_channels=1, out_channels=1, down_block_types=("DownEncoderBlock2D",), up_block_types=("UpDecoderBlock2D",), block_out_channels=(32,), latent_channels=2)
show("vae", vae(x).sample)
pipeline = DDPMPipeline(unet, DDPMScheduler(num_train_timesteps=20))
pipeline.set_progress_bar_config(disable=True)
show("pipeline", pipeline(batch_size=1, num_inference_steps=3, generator=torch.Generator().manual_seed(0), output_type="np").images)
ema = EMAModel(unet.parameters(), decay=0.9)
ema.step(unet.parameters())
show("ema", ema.shadow_params[0])
