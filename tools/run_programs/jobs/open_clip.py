from answers import show
import numpy
import open_clip
import torch
from open_clip.loss import ClipLoss, SigLipLoss
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg
from open_clip.transformer import AttentionalPooler
from PIL import Image

words = CLIPTextCfg(context_length=8, vocab_size=60, width=32, heads=2, layers=2)
model = CLIP(32, CLIPVisionCfg(layers=2, width=32, head_width=16, patch_size=8, image_size=32), words)
pictures, texts = torch.randn(3, 3, 32, 32), torch.randint(1, 60, (3, 8))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for _ in range(2):
    of_pictures, of_texts, scale = model(pictures, texts)
    loss = ClipLoss()(of_pictures, of_texts, scale)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show("loss", [loss, of_pictures, of_texts])
show("pairs", SigLipLoss()(of_pictures, of_texts, scale, torch.tensor(-1.0)))
show("residual", CLIP(32, CLIPVisionCfg(layers=(1, 1, 1, 1), width=16, image_size=64), words).eval().encode_image(torch.randn(1, 3, 64, 64)))
scripted = torch.jit.script(model.eval())
torch.jit.save(scripted, "clip.pt")
for f in (scripted, torch.jit.load("clip.pt")):
    show("script", list(f(pictures, texts)))
show("pool", AttentionalPooler(32, 32, n_head=2, n_queries=4)(torch.randn(2, 5, 32)))
picture = Image.fromarray((numpy.arange(48 * 40 * 3) % 255).reshape(48, 40, 3).astype(numpy.uint8))
show("picture", open_clip.image_transform(32, is_train=False)(picture))
