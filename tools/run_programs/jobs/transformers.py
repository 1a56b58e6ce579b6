from answers import show
import tempfile

import torch
from transformers import (
    AutoModel, BertConfig, BertForMaskedLM, CLIPConfig, CLIPModel, DistilBertConfig, DistilBertForSequenceClassification, GPT2Config, GPT2LMHeadModel,
    LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM, RobertaConfig, RobertaModel, T5Config,
    T5ForConditionalGeneration, ViTConfig, ViTForImageClassification, WhisperConfig, WhisperForConditionalGeneration,
)  # fmt: skip

tiny = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=99)
heads = dict(num_key_value_heads=2, max_position_embeddings=64)
ids = torch.arange(2 * 9).reshape(2, 9) % 97 + 1


def tried(name, make):
    torch.manual_seed(3)
    try:
        show(name, make())
    except Exception as error:
        show(name, f"{type(error).__name__}: {error}"[:300])


def causal(kind, config):
    def run():
        model = kind(config).eval()
        out = model(ids, labels=ids)
        out.loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None][:3]
        return [out.loss, out.logits, grads, model.generate(ids[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=0)]

    return run


tried("gpt2", causal(GPT2LMHeadModel, GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64)))
tried("llama", causal(LlamaForCausalLM, LlamaConfig(**tiny, **heads)))
tried("mistral", causal(MistralForCausalLM, MistralConfig(**tiny, **heads, sliding_window=8)))
tried("qwen2", causal(Qwen2ForCausalLM, Qwen2Config(**tiny, **heads)))


def bert():
    model = BertForMaskedLM(BertConfig(**tiny)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        loss = model(ids, attention_mask=(ids > 3).long(), labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
    return losses


tried("bert", bert)
tried("roberta", lambda: RobertaModel(RobertaConfig(**tiny)).eval()(ids).last_hidden_state)
tried("distilbert", lambda: DistilBertForSequenceClassification(DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, vocab_size=99)).eval()(ids).logits)
t5 = T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=99, decoder_start_token_id=0)


def sequence():
    model = T5ForConditionalGeneration(t5).eval()
    return [model(ids, labels=ids).loss, model.generate(ids, max_new_tokens=5, num_beams=2, do_sample=False)]


tried("t5", sequence)
tried("vit", lambda: ViTForImageClassification(ViTConfig(**{k: v for k, v in tiny.items() if k != "vocab_size"}, image_size=32, patch_size=8)).eval()(torch.randn(2, 3, 32, 32)).logits)
part = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
clip = CLIPConfig(text_config=dict(part, vocab_size=99, eos_token_id=98), vision_config=dict(part, image_size=32, patch_size=8), projection_dim=16)
tried("clip", lambda: CLIPModel(clip).eval()(input_ids=ids, pixel_values=torch.randn(2, 3, 32, 32)).logits_per_image)
whisper = WhisperConfig(
    d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
    vocab_size=99, num_mel_bins=8, max_source_positions=20, max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
)  # fmt: skip
tried("whisper", lambda: WhisperForConditionalGeneration(whisper).eval()(input_features=torch.randn(2, 8, 40), decoder_input_ids=ids).logits)


def folder():
    model = LlamaForCausalLM(LlamaConfig(**tiny, **heads)).eval()
    with tempfile.TemporaryDirectory() as place:
        model.save_pretrained(place)
        again, body = LlamaForCausalLM.from_pretrained(place).eval(), AutoModel.from_pretrained(place, dtype=torch.bfloat16)
    torch.manual_seed(5)
    sampled = again.generate(ids[:, :4], max_new_tokens=6, do_sample=True, top_k=20, temperature=0.9, pad_token_id=0)
    return [bool(torch.equal(model(ids).logits, again(ids).logits)), str(body.dtype), sampled]


tried("from_pretrained", folder)
