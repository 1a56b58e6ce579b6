from answers import show
import contextlib
import io

import ptflops
import thop
import torch
import torchinfo
import torchsummary
from torchcrf import CRF

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(128, 10)
)
attention = torch.nn.TransformerEncoderLayer(8, 2, 16)
columns = ("input_size", "output_size", "num_params", "mult_adds", "kernel_size")
show("torchinfo", str(torchinfo.summary(model, (2, 3, 8, 8), verbose=0, col_names=columns, depth=3)))
for layer, shape in ((torch.nn.LSTM(4, 5, 2, batch_first=True), (2, 7, 4)), (attention, (5, 2, 8))):
    show("torchinfo", str(torchinfo.summary(layer, shape, verbose=0)))
with contextlib.redirect_stdout(io.StringIO()) as printed:
    torchsummary.summary(model, (3, 8, 8), device="cpu")
show("torchsummary", printed.getvalue())
show("thop", thop.profile(model, (torch.randn(1, 3, 8, 8),), verbose=False))
for backend, network, shape in (("pytorch", model, (3, 8, 8)), ("pytorch", attention, (5, 8)), ("aten", model, (3, 8, 8))):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        counts = ptflops.get_model_complexity_info(network, shape, print_per_layer_stat=True, backend=backend)
    show(f"ptflops {backend}", [*map(str, counts), printed.getvalue()])
crf = CRF(5, batch_first=True)
scores, tags = torch.randn(3, 6, 5, requires_grad=True), torch.randint(0, 5, (3, 6))
mask = torch.arange(6)[None] < torch.tensor([6, 4, 2])[:, None]
score = crf(scores, tags, mask=mask)
show("crf", [score, torch.autograd.grad(score, scores)[0], crf.decode(scores, mask=mask), crf(scores, tags, reduction="token_mean")])
