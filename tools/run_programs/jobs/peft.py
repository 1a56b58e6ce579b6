from answers import show
import tempfile

import torch
from peft import AdaLoraConfig, IA3Config, LoraConfig, PeftModel, PrefixTuningConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

ids = torch.arange(18).reshape(2, 9) + 1


def base():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=64, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))


configs = {
    "lora": LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM", lora_dropout=0.0),
    "dora": LoraConfig(r=4, target_modules=["c_attn"], use_dora=True, task_type="CAUSAL_LM"),
    "ia3": IA3Config(target_modules=["c_attn"], feedforward_modules=[], task_type="CAUSAL_LM"),
    "prefix": PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
    "adalora": AdaLoraConfig(init_r=4, target_r=2, total_step=10, target_modules=["c_attn"], task_type="CAUSAL_LM"),
}
for name, config in configs.items():
    try:
        model = get_peft_model(base(), config)
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
        losses = []
        for _ in range(3):
            loss = model(input_ids=ids, labels=ids).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        show(name, [losses, model.get_nb_trainable_parameters()])
    except Exception as error:
        show(name, f"{type(error).__name__}: {error}"[:300])
model = get_peft_model(base(), configs["lora"])
with tempfile.TemporaryDirectory() as place:
    model.save_pretrained(place)
    again = PeftModel.from_pretrained(base(), place)
show("merged", [model.merge_and_unload()(ids).logits, again(ids).logits])
