from answers import show
import torch
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

torch.manual_seed(1)
model = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True))
ids = torch.arange(20).reshape(2, 10)
show("decoder", model(ids))
wrapped = AutoregressiveWrapper(model)
loss = wrapped(ids)
loss.backward()
show("loss", [loss, model.token_emb.emb.weight.grad])
show("generated", wrapped.generate(ids[:, :3], 5, temperature=0.0))
encoder = TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=Encoder(dim=32, depth=1, heads=2, ff_glu=True, use_rmsnorm=True))
show("encoder", encoder(ids, mask=ids > 2))
