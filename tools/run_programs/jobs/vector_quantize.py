from answers import show
import torch
from vector_quantize_pytorch import VectorQuantize, ResidualVQ, FSQ, LFQ

torch.manual_seed(0)
v = VectorQuantize(dim=8, codebook_size=16, decay=0.8, commitment_weight=1.0)
x = torch.randn(1, 20, 8, requires_grad=True)
for _ in range(3):
    q, i, l = v(x)
show("vq", [q, i, l])
show("rvq", list(ResidualVQ(dim=8, num_quantizers=2, codebook_size=16)(x)))
show("fsq", list(FSQ([4, 4, 3])(torch.randn(1, 5, 3))))
show("lfq", list(LFQ(codebook_size=16, dim=8)(x))[:2])
